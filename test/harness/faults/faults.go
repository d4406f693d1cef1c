// SPDX-License-Identifier: Apache-2.0

// Package faults makes a client fail where a test wants it to: after its n-th
// write, as if the process had been killed there. A scenario that is run once
// for every n, and then once more without a fault, shows that no crash between
// two writes leaves anything behind or does anything twice.
package faults

import (
	"errors"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
)

// ErrStopped is what every request fails with once the process counts as dead.
var ErrStopped = errors.New("the process was stopped by the test")

// Writes counts the requests of a client that change something, and can stop
// the client after some of them.
type Writes struct {
	limit int
	dead  chan struct{}

	mu   sync.Mutex
	done []string
}

// Count returns a copy of c whose writes are counted, and the counter.
func Count(c *rest.Config) (*rest.Config, *Writes) { return StopAfter(c, -1) }

// StopAfter returns a copy of c that works until its n-th write has reached the
// server, and fails every request from then on; n = 0 lets no write through and
// a negative n never stops.
func StopAfter(c *rest.Config, n int) (*rest.Config, *Writes) {
	w := &Writes{limit: n, dead: make(chan struct{})}
	out := rest.CopyConfig(c)
	out.Wrap(func(next http.RoundTripper) http.RoundTripper { return &transport{next, w} })
	return out, w
}

// Stopped is closed when the limit is reached.
func (w *Writes) Stopped() <-chan struct{} { return w.dead }

// Seen are the writes that reached the server so far, as "METHOD path".
func (w *Writes) Seen() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.done...)
}

// admit tells whether the request may go on, and notes it if it is a write.
func (w *Writes) admit(r *http.Request) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.limit >= 0 && len(w.done) >= w.limit {
		w.stop()
		return false
	}
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		w.done = append(w.done, r.Method+" "+r.URL.Path)
	}
	return true
}

func (w *Writes) stop() {
	select {
	case <-w.dead:
	default:
		close(w.dead)
	}
}

type transport struct {
	next   http.RoundTripper
	writes *Writes
}

// RoundTrip passes the request on, or fails it when the process counts as dead.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !t.writes.admit(r) {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, ErrStopped
	}
	return t.next.RoundTrip(r)
}
