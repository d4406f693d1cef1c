// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/ledger"
	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// A hub that is restored from a backup shows works as they were: objects that they do not
// declare may have been deployed since, and no user has asked for their removal. Such
// objects stay, and stay recorded, until a person confirms the removal. What the work
// declares is applied as usual.

// mostNamed bounds how many objects a message names.
const mostNamed = 5

// stale reports whether the watch shows an older state of the work than the hub itself: a
// lagging cache does not mean that the hub went back.
func (c *Controller) stale(ctx context.Context, s State) (bool, error) {
	if s.WentBack == "" {
		return false, nil
	}
	live, err := c.c.Works.Live(ctx, s.Work.Name)
	if err != nil {
		return true, fmt.Errorf("asking the hub for manifestwork %s: %w", s.Work.Name, err)
	}
	return live.UID != s.Work.UID || live.ResourceVersion != s.Work.ResourceVersion, nil
}

// waiting counts the objects whose removal is retried without confirmation.
func (p *pass) waiting() int { return len(p.pending) - len(p.plan.Held) }

// setHeldCondition sets the condition RemovalHeld of the work while there is something to
// confirm.
func (p *pass) setHeldCondition(next *workv1.ManifestWorkStatus) {
	if p.applied == nil || len(p.plan.Held) == 0 {
		apimeta.RemoveStatusCondition(&next.Conditions, workv1.ConditionRemovalHeld)
		return
	}
	var names []string
	for _, r := range p.plan.Held[:min(mostNamed, len(p.plan.Held))] {
		names = append(names, apply.RecordedID(r).String())
	}
	if more := len(p.plan.Held) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	reconcile.SetCondition(&next.Conditions, metav1.Condition{
		Type: workv1.ConditionRemovalHeld, Status: metav1.ConditionTrue, Reason: workv1.ReasonHubWentBack, ObservedGeneration: p.state.Work.Generation,
		Message: fmt.Sprintf("The hub shows an older state of the work than the one that was applied, as after a restore from a backup (%s); "+
			"what it does not declare is kept: %s. Declare it again, or confirm on the managed cluster that it may be removed: %s",
			p.plan.HeldFor, strings.Join(names, ", "), ledger.Confirm(p.applied)),
	}, p.c.Clock.Now())
}

// announceHeld sends an Event when removals start to be held.
func (p *pass) announceHeld(ctx context.Context, before workv1.ManifestWorkStatus) {
	held := apimeta.FindStatusCondition(p.work.Status.Conditions, workv1.ConditionRemovalHeld)
	if held == nil || apimeta.FindStatusCondition(before.Conditions, workv1.ConditionRemovalHeld) != nil {
		return
	}
	p.warn(ctx, workv1.ConditionRemovalHeld, "Prune", held.Message)
}

// recordSuccessor records a work that replaced another of its name, before its status
// says that it is applied: a reader of that status may delete the work, and an agent that
// restarts holds the deletion of a work that is not the recorded one.
func (p *pass) recordSuccessor(ctx context.Context) error {
	if !p.replaced() {
		return nil
	}
	return p.annotate(ctx, map[string]string{workv1.AnnotationLastSeen: ledger.SightingOf(p.state.Work).String()})
}

// replaced reports whether another work of this name is recorded.
func (p *pass) replaced() bool {
	last, noted := ledger.LastSeen(p.applied)
	return noted && last.UID != p.state.Work.UID
}
