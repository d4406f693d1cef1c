// SPDX-License-Identifier: Apache-2.0

package watch

import "sync"

// Pulse lets whoever talks to an API server anyway tell all collections of that
// server that it answers again, so that they do not sit out the pause that has
// grown during a long outage. The zero value is ready for use; nil never beats.
// Its methods are safe for concurrent use.
type Pulse struct {
	mu      sync.Mutex
	next    int
	waiting map[int]func()
}

// Beat tells that the API server has just answered. A collection that waits
// after a failure reads at once; nothing happens to any other.
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

// feel calls f at each beat, until the returned function is called.
func (p *Pulse) feel(f func()) (forget func()) {
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
