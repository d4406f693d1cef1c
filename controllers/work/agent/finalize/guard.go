// SPDX-License-Identifier: Apache-2.0

package finalize

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/ledger"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

const (
	// manyMissed is the number of works missed at once from which nothing is evicted
	// without confirmation, if they are more than half of all. On a hub where a person
	// deletes works, each shows a deletion; only damage, a restored backup or another hub
	// in its place makes them vanish together.
	manyMissed = 5
	// holdEvery is how often held evictions are checked again.
	holdEvery = time.Minute
	// reasonHeld is the reason of the Event about them.
	reasonHeld = "EvictionHeld"
)

// guard adds to the state of a missed work how many others are missed.
func (c *Controller) guard(s State) State {
	if s.Applied == nil || s.Applied.DeletionTimestamp != nil || s.Applied.Status.EvictionStartTime == nil {
		return s
	}
	count := c.c.Applied.Count()
	s.Known, s.Missed, s.Others = count.Known, count.Missed, count.Held
	c.mu.Lock()
	s.Held = c.held
	c.mu.Unlock()
	return s
}

// reportHeld reports that evictions are held, once for as long as they are.
func (c *Controller) reportHeld(ctx context.Context, s State) {
	c.mu.Lock()
	said := !c.held.IsZero() && s.Now.Sub(c.held) < 3*holdEvery
	c.held = s.Now
	c.mu.Unlock()
	if said {
		return
	}
	cause := "works that vanish together are rarely deleted on purpose"
	if s.doubtful() {
		cause = "the hub shows an older state than before, as after a restore from a backup"
	}
	message := fmt.Sprintf("%d of %d works are no longer on the hub; their objects are kept, because %s. "+
		"Create the works again on the hub, or confirm on the managed cluster: kubectl delete appliedmanifestworks %s (and so on for the others)",
		max(s.Missed, 1), s.Known, cause, s.Applied.Name)
	logr.FromContextOrDiscard(ctx).Info("Evictions are held", "cause", message)
	c.c.Event(ctx, s.Applied.Spec.ManifestWorkName, reconcile.Event{Type: "Warning", Reason: reasonHeld, Action: "Evict", Message: message})
}

// suspect records on an AppliedManifestWork whose work is missed if the hub is behind an
// earlier state: then the work may be younger than the backup.
func (c *Controller) suspect(ctx context.Context, s State) (*workv1.AppliedManifestWork, error) {
	last, noted := ledger.LastSeen(s.Applied)
	_, ours := c.c.Applied.Identity.Work(s.Applied.Name)
	if !ours || !noted || s.Unconfirmed != "" {
		return s.Applied, nil
	}
	why, err := c.c.Works.Behind(ctx, c.c.Applied)
	if err != nil || why == "" {
		return s.Applied, err
	}
	logr.FromContextOrDiscard(ctx).Info("The hub went back in time, and a work is missing", "work", s.Applied.Spec.ManifestWorkName, "cause", why)
	return c.c.Applied.Hold(ctx, s.Applied, why, last)
}

// markWentBack records that a work which is being deleted is older than what was last
// applied, once the hub itself has confirmed it.
func (c *Controller) markWentBack(ctx context.Context, s State) (time.Duration, error) {
	live, err := c.c.Works.Live(ctx, s.Work.Name)
	switch {
	case missing(err):
		return unseenRetry, nil
	case err != nil:
		return 0, err
	}
	now := ledger.SightingOf(live)
	if why := ledger.WentBack(s.Applied, now); why != "" {
		_, err = c.c.Applied.Hold(ctx, s.Applied, why, now)
		return 0, err
	}
	return conflictRetry, nil
}

// holdDeletion reports on the work that its objects are kept, and how to confirm the
// removal; an Event reports it once.
func (c *Controller) holdDeletion(ctx context.Context, s State) error {
	cause := fmt.Sprintf("the hub shows an older state of the work than the one that was applied, "+
		"as after a restore from a backup (%s), and its objects are kept. "+
		"Confirm on the managed cluster that they may be removed: %s", s.Unconfirmed, ledger.Confirm(s.Applied))
	said := apimeta.FindStatusCondition(s.Work.Status.Conditions, workv1.ConditionRemovalHeld) != nil
	if err := c.markDeleting(ctx, s.Work, cause, true); err != nil || said {
		return err
	}
	c.c.Event(ctx, s.Work.Name, reconcile.Event{Type: "Warning", Reason: workv1.ConditionRemovalHeld, Action: "Delete", Message: cause})
	return nil
}
