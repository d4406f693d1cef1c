// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

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
	before := apimeta.FindStatusCondition(d.before(after.PlacementRef).Conditions, c.Type)
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
	if !first || len(late) == 0 || len(d.events) >= maxEvents {
		return
	}
	p := d.Placements[i]
	d.events = append(d.events, reconcile.Event{Type: corev1.EventTypeNormal, Reason: eventResumed, WithStatus: true,
		Message: fmt.Sprintf("The rollout of placement %s/%s continues without the clusters that timed out: %s", p.Namespace, p.Name, listed(late))})
}
