// SPDX-License-Identifier: Apache-2.0

package fakefleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Churn is how agents come and go.
type Churn struct {
	// Every is the time between the ends of two agents, and Away how long each is gone.
	Every, Away time.Duration
}

// Return starts the agent of a cluster again that Leave has ended, as a new process with the
// certificate of the old one: it connects, reports if that is due, and renews the lease.
func (f *Fleet) Return(ctx context.Context, cluster string) error {
	f.mu.Lock()
	was := f.left[cluster]
	f.mu.Unlock()
	if was == nil {
		return fmt.Errorf("returning to cluster %s: its agent has not left", cluster)
	}
	own := was.wire
	if own != f.pool {
		own = own.anew()
	}
	if err := f.start(ctx, cluster, own); err != nil {
		return fmt.Errorf("returning to cluster %s: %w", cluster, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.left, cluster)
	return nil
}

// anew returns a wire with a new connection and the identity of an agent's own one.
func (w *wire) anew() *wire {
	out := *w
	if own, ok := w.http.Transport.(*http.Transport); ok {
		out.http = &http.Client{Transport: own.Clone()}
	}
	return &out
}

// Churn ends one agent after the other, each of a cluster drawn from Options.Seed, and starts it
// again later, until ctx ends. Then it waits for those that are away, and returns how many
// there were in all.
func (f *Fleet) Churn(ctx context.Context, c Churn) (int, error) {
	random := f.draw("churn")
	var (
		n    int
		mu   sync.Mutex
		errs []error
		away sync.WaitGroup
	)
	rest := &agent{fleet: f}
	for rest.wait(ctx, c.Every) {
		f.mu.Lock()
		names := slices.Sorted(maps.Keys(f.agents))
		f.mu.Unlock()
		if len(names) == 0 {
			continue
		}
		cluster := names[random.IntN(len(names))]
		f.Leave(cluster)
		n++
		away.Go(func() {
			rest.wait(f.ctx, c.Away)
			if err := f.Return(f.ctx, cluster); err != nil && f.ctx.Err() == nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	away.Wait()
	return n, errors.Join(errs...)
}
