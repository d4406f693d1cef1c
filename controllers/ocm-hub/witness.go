// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// witness notes when a leader, whoever it was, last renewed the lock that this
// replica contends for. What has passed since then, until this replica leads,
// is the time without a hub.
type witness struct {
	resourcelock.Interface

	mu      sync.Mutex
	renewed time.Time
}

// Get implements resourcelock.Interface. The lock is read before each try to
// take it, and not while it is held.
func (w *witness) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := w.Interface.Get(ctx)
	if err == nil {
		w.mu.Lock()
		w.renewed = record.RenewTime.Time
		w.mu.Unlock()
	}
	return record, raw, err
}

// gap is how long nobody had led by now; zero when nobody ever did.
func (w *witness) gap(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.renewed.IsZero() {
		return 0
	}
	return max(now.Sub(w.renewed), 0)
}
