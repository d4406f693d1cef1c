// SPDX-License-Identifier: Apache-2.0

package finalize

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

const (
	// manyMissed is from how many works on that are missed at once, if they are
	// more than half of all, nothing is evicted without confirmation. A hub on
	// which a person deletes works says so for each; only damage, a restored
	// backup or another hub in its place makes them vanish together.
	manyMissed = 5
	// holdEvery is how often evictions that are held up are looked at again.
	holdEvery = time.Minute
	// reasonHeld is that of the Event about them.
	reasonHeld = "EvictionHeld"
)

// guard completes the state of a missed work with how many others are missed.
func (c *Controller) guard(s State) State {
	if s.Applied == nil || s.Applied.DeletionTimestamp != nil || s.Applied.Status.EvictionStartTime == nil {
		return s
	}
	count := c.c.Applied.Count()
	s.Known, s.Missed = count.Known, count.Missed
	c.mu.Lock()
	s.Held = c.held
	c.mu.Unlock()
	return s
}

// hold says that evictions are held up, once for as long as they are.
func (c *Controller) hold(ctx context.Context, s State) {
	c.mu.Lock()
	said := !c.held.IsZero() && s.Now.Sub(c.held) < 3*holdEvery
	c.held = s.Now
	c.mu.Unlock()
	if said {
		return
	}
	message := fmt.Sprintf("%d of %d works are no longer on the hub; their objects are kept, because works that vanish together are seldom deleted on purpose. "+
		"Create the works again on the hub, or confirm on the managed cluster: kubectl delete appliedmanifestworks %s (and so on for the others)", s.Missed, s.Known, s.Applied.Name)
	logr.FromContextOrDiscard(ctx).Info("Eviction is held up", "cause", message)
	c.c.Event(ctx, s.Applied.Spec.ManifestWorkName, reconcile.Event{Type: "Warning", Reason: reasonHeld, Action: "Evict", Message: message})
}
