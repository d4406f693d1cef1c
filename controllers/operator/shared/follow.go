// SPDX-License-Identifier: Apache-2.0

package shared

import (
	"cmp"
	"context"
	"sync"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// Collection is what a loop runs of a watch.Collection.
type Collection interface {
	Run(ctx context.Context) error
	Synced() <-chan struct{}
	Err() error
}

// Problem returns why not all collections have been read yet; known is true once they have.
func Problem(list []Collection) (text string, known bool) {
	known = true
	for _, one := range list {
		select {
		case <-one.Synced():
		default:
			known = false
			text = cmp.Or(text, watch.Reason(one.Err()))
		}
	}
	return text, known
}

// Follow runs collections beyond the pass that ctx is for, until end is called.
func Follow(ctx context.Context, collections []Collection) (end func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	for _, one := range collections {
		running.Go(func() { _ = one.Run(ctx) })
	}
	return func() {
		cancel()
		running.Wait()
	}
}

// Held holds what is followed on behalf of each object, by name, and ends what it no longer holds.
// The zero Held is empty. It may be used concurrently.
type Held[T interface {
	comparable
	End()
}] struct {
	mu sync.Mutex
	of map[string]T
}

// Get returns what is held for a name; the zero value if nothing is.
func (h *Held[T]) Get(name string) T {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.of[name]
}

// Set holds something else for a name; the zero value holds nothing.
func (h *Held[T]) Set(name string, next T) {
	var none T
	h.mu.Lock()
	before := h.of[name]
	delete(h.of, name)
	if next != none {
		if h.of == nil {
			h.of = map[string]T{}
		}
		h.of[name] = next
	}
	h.mu.Unlock()
	if before != none {
		before.End()
	}
}

// End ends everything that is held.
func (h *Held[T]) End() {
	h.mu.Lock()
	all := h.of
	h.of = nil
	h.mu.Unlock()
	for _, one := range all {
		one.End()
	}
}
