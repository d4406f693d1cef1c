// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// tick is the wheel's resolution: a cluster is found late by at most this.
const tick = time.Second

// wheel calls back for names that are due, with one timer for all of them. A name has one due
// time; a new one replaces it. Moving a name costs one map write, a tick one look at each name.
type wheel struct {
	clock clock.WithTicker

	mu   sync.Mutex
	due  map[string]int64 // second when a name is due
	last int64            // second of the last tick
}

// newWheel makes an empty wheel.
func newWheel(clk clock.WithTicker) *wheel {
	return &wheel{clock: clk, due: map[string]int64{}, last: clk.Now().Unix()}
}

// Set makes name due at t, replacing its previous due time.
func (w *wheel) Set(name string, t time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// Computed from the time left, which stays correct when the clock is set.
	now := w.clock.Now()
	w.due[name] = now.Add(t.Sub(now)).Unix() + 1
}

// Drop forgets name.
func (w *wheel) Drop(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.due, name)
}

// Run calls ring for each name that is due, until ctx ends.
func (w *wheel) Run(ctx context.Context, ring func(name string)) error {
	ticker := w.clock.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
			for _, name := range w.takeDue() {
				ring(name)
			}
		}
	}
}

// takeDue removes and returns the names that are due. If the clock was set back, every name is
// due, and gets set again.
func (w *wheel) takeDue() []string {
	now := w.clock.Now().Unix()
	w.mu.Lock()
	defer w.mu.Unlock()
	back := now < w.last
	w.last = now
	var out []string
	for name, second := range w.due {
		if back || second <= now {
			out = append(out, name)
			delete(w.due, name)
		}
	}
	return out
}
