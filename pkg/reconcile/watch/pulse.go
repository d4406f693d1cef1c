// SPDX-License-Identifier: Apache-2.0

package watch

import "sync"

// Pulse tells all collections of an API server that the server answers again, so that they
// do not sit out a back-off that has grown during a long outage. Any client of that server
// may Beat it. The zero value is ready for use; a nil Pulse never beats. Its methods are
// safe for concurrent use.
type Pulse struct {
	// waiting has a *func() as the key of each collection.
	waiting sync.Map
}

// Beat reports that the API server has just answered. Collections that wait after a failure
// list again at once; others are unaffected.
func (p *Pulse) Beat() {
	if p == nil {
		return
	}
	for f := range p.waiting.Range {
		if revive, ok := f.(*func()); ok {
			(*revive)()
		}
	}
}

// onBeat calls f at each beat until the returned function is called.
func (p *Pulse) onBeat(f func()) (forget func()) {
	if p == nil {
		return func() {}
	}
	p.waiting.Store(&f, nil)
	return func() { p.waiting.Delete(&f) }
}
