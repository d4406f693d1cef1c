// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/internal/tunnel"
)

// Presence is what the hub knows of the tunnel of a cluster.
type Presence struct {
	// Connected is true while there is a tunnel.
	Connected bool
	// Since is when the last one was opened or, unless Connected, ended; zero if there was none
	// since this process started.
	Since time.Time
	// Why is why the last one ended; nil while Connected, or if there was none.
	Why error
}

// Registry holds the tunnels, at most one for each cluster, besides older ones that only finish
// their requests.
type Registry struct {
	now func() time.Time
	// onChange is called for every cluster whose presence has changed; it is set before the first
	// tunnel.
	onChange func(cluster string)

	mu      sync.Mutex
	tunnels map[string]*tunnel.Tunnel
	known   map[string]Presence
	waiting sync.WaitGroup
	closed  bool
}

// NewRegistry returns an empty registry.
func NewRegistry(now func() time.Time) *Registry {
	return &Registry{
		now: now, onChange: func(string) {}, tunnels: map[string]*tunnel.Tunnel{}, known: map[string]Presence{},
	}
}

// Presence returns what is known of the tunnel of a cluster.
func (r *Registry) Presence(cluster string) Presence {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[cluster]
}

// Len returns how many clusters have a tunnel.
func (r *Registry) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.tunnels)
}

// get returns the tunnel of a cluster; nil if there is none.
func (r *Registry) get(cluster string) *tunnel.Tunnel {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tunnels[cluster]
}

// add makes a tunnel that of its cluster. The one before finishes its requests.
func (r *Registry) add(cluster string, t *tunnel.Tunnel) {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		t.Close(errStopping)
		return
	}
	before := r.tunnels[cluster]
	r.tunnels[cluster] = t
	r.known[cluster] = Presence{Connected: true, Since: r.now()}
	r.waiting.Go(func() {
		<-t.Done()
		t.Close(nil)
		r.ended(cluster, t)
	})
	r.mu.Unlock()
	if before != nil {
		before.Drain()
	}
	r.onChange(cluster)
}

// ended forgets a tunnel, unless another one has replaced it.
func (r *Registry) ended(cluster string, t *tunnel.Tunnel) {
	r.mu.Lock()
	current := r.tunnels[cluster] == t
	if current {
		delete(r.tunnels, cluster)
		r.known[cluster] = Presence{Since: r.now(), Why: t.Err()}
	}
	r.mu.Unlock()
	if current {
		r.onChange(cluster)
	}
}

// cut ends the tunnel of a cluster and its requests.
func (r *Registry) cut(cluster string, why error) {
	if t := r.get(cluster); t != nil {
		t.Close(why)
	}
}

// forget drops what is known of a cluster that is gone.
func (r *Registry) forget(cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tunnels[cluster] == nil {
		delete(r.known, cluster)
	}
}

var (
	errStopping = errors.New("this process of the hub stops")
	errResigned = errors.New("another process of the hub leads")
)

// Resign ends all tunnels, because another process leads: agents open theirs to that one.
func (r *Registry) Resign() { r.end(errResigned) }

// close ends all tunnels, and waits for that.
func (r *Registry) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.end(errStopping)
	r.waiting.Wait()
}

// end ends the tunnels that there are.
func (r *Registry) end(why error) {
	r.mu.Lock()
	all := slices.Collect(maps.Values(r.tunnels))
	r.mu.Unlock()
	for _, t := range all {
		t.Close(why)
	}
}
