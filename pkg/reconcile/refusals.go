// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"sync"
	"time"
)

// settling are the moments at which a grant is tried: the API server's own knowledge of
// roles comes by a watch, too, and may be later than that of who hears of a grant here.
var settling = []time.Duration{0, time.Second, 5 * time.Second}

// Refusals are the keys of a queue of which something was forbidden, so that they are
// tried again when somebody is granted something. It is safe for concurrent use.
type Refusals struct {
	queue *Queue

	mu   sync.Mutex
	keys map[Key]bool
}

// NewRefusals makes those of a queue.
func NewRefusals(q *Queue) *Refusals { return &Refusals{queue: q, keys: map[Key]bool{}} }

// Note keeps a key of which something was forbidden, and drops it when nothing is.
func (r *Refusals) Note(k Key, forbidden bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if forbidden {
		r.keys[k] = true
	} else {
		delete(r.keys, k)
	}
}

// Again has all of them tried, whatever delay they have earned.
func (r *Refusals) Again() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range r.keys {
		r.queue.Forget(k)
		for _, after := range settling {
			r.queue.AddAfter(k, after)
		}
	}
}
