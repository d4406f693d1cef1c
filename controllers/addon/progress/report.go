// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/config"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// report sets the condition of one placement's progression, and records when all of its
// clusters are done.
func (d *delivery) report(i int) {
	p, plan := d.Placements[i], d.plans[i]
	selected := map[string]bool{}
	for _, c := range p.Clusters {
		selected[c] = true
	}
	n := counts{done: len(plan.Done), total: d.taking[i]}
	for _, c := range plan.Start {
		if d.members[c] != nil {
			n.under++
		}
	}
	// A cluster that only its own overrides hold up counts as done.
	own := func(c string) bool { return len(d.members[c].Configs) > 0 && d.members[c].isDone() }
	for _, c := range plan.InFlight {
		if own(c) {
			n.done++
		} else {
			n.under++
		}
	}
	for _, c := range plan.TimedOut {
		if own(c) {
			n.done++
		} else {
			n.late = append(n.late, c)
		}
	}
	c := metav1.Condition{
		Type: addonv1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: addonv1alpha1.ReasonProgressing,
		Message: fmt.Sprintf(
			"selected clusters %d. configured addons %d/%d progressing..., 0 failed %d timeout.",
			len(selected), n.under+n.done, n.total, len(n.late),
		) + d.trouble(i),
	}
	if p.Usable() && n.total > 0 && n.done == n.total {
		c.Status, c.Reason = metav1.ConditionFalse, addonv1alpha1.ReasonCompleted
		c.Message = fmt.Sprintf(
			"selected clusters %d. configured addons %d/%d completed with no errors, 0 failed %d timeout.",
			len(selected), n.done, n.total, len(n.late),
		)
		config.Complete(&d.progressions[i])
	}
	c.ObservedGeneration = d.AddOn.Generation
	conditions := slices.Clone(d.progressions[i].Conditions)
	reconcile.SetCondition(&conditions, c, d.Now)
	d.progressions[i].Conditions = conditions
	d.recordEvents(i, n, c)
}

// trouble returns what blocks a placement; empty if nothing does.
func (d *delivery) trouble(i int) string {
	p := d.Placements[i]
	switch {
	case !p.Found:
		return fmt.Sprintf(" There is no placement %s/%s; create it, or remove it from spec.installStrategy.placements.", p.Namespace, p.Name)
	case p.Invalid != nil:
		return fmt.Sprintf(" Placement %s/%s cannot be used: %s.", p.Namespace, p.Name, p.Invalid)
	case !p.Decided:
		return fmt.Sprintf(" Placement %s/%s has no decision yet.", p.Namespace, p.Name)
	case d.plans[i].Breach:
		return addonv1alpha1.MessageRolloutStopped
	}
	return ""
}
