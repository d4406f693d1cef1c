// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
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
		ObservedGeneration: d.AddOn.Generation,
	}
	state, trouble := "progressing...", d.trouble(i)
	if p.Usable() && n.total > 0 && n.done == n.total {
		c.Status, c.Reason = metav1.ConditionFalse, addonv1alpha1.ReasonCompleted
		state, trouble = "completed with no errors", ""
		config.Complete(&d.progressions[i])
	}
	c.Message = fmt.Sprintf("selected clusters %d. configured addons %d/%d %s, 0 failed %d timeout.%s",
		len(selected), n.under+n.done, n.total, state, len(n.late), trouble)
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

// resume records in the progression of a placement that a user requested to resume its
// rollout. It returns the time before which failures are forgiven, and whether the request is
// new. The time is taken from the hub's clock, which deadlines use too; the clock of the user
// may differ. The record stays when other configurations are named, since an old request
// would otherwise seem new.
func (d *delivery) resume(i int) (at time.Time, first bool) {
	after := &d.progressions[i]
	after.Conditions = slices.Clone(after.Conditions)
	asked := d.AddOn.Annotations[addonv1alpha1.AnnotationResumeRollout]
	if asked == "" {
		apimeta.RemoveStatusCondition(&after.Conditions, addonv1alpha1.ConditionResumed)
		return time.Time{}, false
	}
	c := metav1.Condition{
		Type: addonv1alpha1.ConditionResumed, Status: metav1.ConditionTrue, Reason: addonv1alpha1.ReasonResumeRequested,
		Message: addonv1alpha1.ResumedBy(asked), ObservedGeneration: d.AddOn.Generation,
	}
	before := apimeta.FindStatusCondition(config.Stored(d.AddOn, after.PlacementRef).Conditions, c.Type)
	at, first = d.Now.Truncate(time.Second), before == nil || before.Message != c.Message
	if !first {
		at = before.LastTransitionTime.Time
	}
	reconcile.SetCondition(&after.Conditions, c, at)
	apimeta.FindStatusCondition(after.Conditions, c.Type).LastTransitionTime = metav1.NewTime(at)
	return at, first
}

// recordResumed adds the event for a new request, if these clusters held up the rollout.
func (d *delivery) recordResumed(i int, first bool, late []string) {
	if p := d.Placements[i]; first && len(late) > 0 {
		d.event(corev1.EventTypeNormal, eventResumed,
			fmt.Sprintf("The rollout of placement %s/%s continues without the clusters that timed out: %s", p.Namespace, p.Name, listed(late)))
	}
}
