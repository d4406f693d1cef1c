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
// time; a new one replaces it. Moving a name costs no more than map writes.
type wheel struct {
	clock clock.WithTicker

	mu    sync.Mutex
	due   map[string]int64              // second when a name is due
	slots map[int64]map[string]struct{} // names by second
	last  int64
}

// newWheel makes an empty wheel.
func newWheel(clk clock.WithTicker) *wheel {
	return &wheel{clock: clk, due: map[string]int64{}, slots: map[int64]map[string]struct{}{}, last: clk.Now().Unix()}
}

// Set makes name due at t, replacing its previous due time.
func (w *wheel) Set(name string, t time.Time) {
	// Computed from the time left, which stays correct when the clock is set.
	now := w.clock.Now()
	second := now.Add(t.Sub(now)).Unix() + 1
	w.mu.Lock()
	defer w.mu.Unlock()
	if have, ok := w.due[name]; ok {
		if have == second {
			return
		}
		w.removeFromSlot(name, have)
	}
	second = max(second, w.last+1)
	w.due[name] = second
	slot := w.slots[second]
	if slot == nil {
		slot = map[string]struct{}{}
		w.slots[second] = slot
	}
	slot[name] = struct{}{}
}

// Drop forgets name.
func (w *wheel) Drop(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if have, ok := w.due[name]; ok {
		w.removeFromSlot(name, have)
		delete(w.due, name)
	}
}

func (w *wheel) removeFromSlot(name string, second int64) {
	slot := w.slots[second]
	delete(slot, name)
	if len(slot) == 0 {
		delete(w.slots, second)
	}
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

// takeDue removes and returns the names that are due.
func (w *wheel) takeDue() []string {
	now := w.clock.Now().Unix()
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	if now < w.last {
		// The clock was set back: every name is due and gets set again.
		for name := range w.due {
			out = append(out, name)
		}
		clear(w.due)
		clear(w.slots)
		w.last = now
		return out
	}
	for second := w.last + 1; second <= now; second++ {
		for name := range w.slots[second] {
			delete(w.due, name)
			out = append(out, name)
		}
		delete(w.slots, second)
	}
	w.last = now
	return out
}
