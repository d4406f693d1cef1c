// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"sync"
	"time"
)

// grantDelays are when keys are retried after a grant: the API server's authorizer learns
// of roles through a watch, too, and may lag behind the watch that reported the grant here.
var grantDelays = []time.Duration{0, time.Second, 5 * time.Second}

// Refusals remembers the keys of a queue whose last pass was forbidden something, so that
// they can be retried when a permission is granted. It is safe for concurrent use.
type Refusals struct {
	queue *Queue

	mu   sync.Mutex
	keys map[Key]bool
}

// NewRefusals returns an empty Refusals for a queue.
func NewRefusals(q *Queue) *Refusals { return &Refusals{queue: q, keys: map[Key]bool{}} }

// Note records whether something was forbidden for a key.
func (r *Refusals) Note(k Key, forbidden bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if forbidden {
		r.keys[k] = true
	} else {
		delete(r.keys, k)
	}
}

// Again requeues all recorded keys, whatever back-off they have reached.
func (r *Refusals) Again() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range r.keys {
		r.queue.Forget(k)
		for _, after := range grantDelays {
			r.queue.AddAfter(k, after)
		}
	}
}
