// SPDX-License-Identifier: Apache-2.0

package watch

import "sync"

// Pulse tells all collections of an API server that the server answers again, so that they
// do not sit out a back-off that has grown during a long outage. Any client of that server
// may Beat it. The zero value is ready for use; a nil Pulse never beats. Its methods are
// safe for concurrent use.
type Pulse struct {
	mu      sync.Mutex
	next    int
	waiting map[int]func()
}

// Beat reports that the API server has just answered. Collections that wait after a failure
// list again at once; others are unaffected.
func (p *Pulse) Beat() {
	if p == nil {
		return
	}
	p.mu.Lock()
	var revive []func()
	for _, f := range p.waiting {
		revive = append(revive, f)
	}
	p.mu.Unlock()
	for _, f := range revive {
		f()
	}
}

// onBeat calls f at each beat until the returned function is called.
func (p *Pulse) onBeat(f func()) (forget func()) {
	if p == nil {
		return func() {}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == nil {
		p.waiting = map[int]func(){}
	}
	p.next++
	id := p.next
	p.waiting[id] = f
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.waiting, id)
	}
}
