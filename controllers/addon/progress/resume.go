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

// resume notes in the progression of a placement that somebody lets its rollout go on,
// and returns since when failures before are forgiven, and whether the request is new.
// The moment is the hub's own: deadlines are counted by its clock, and that of the
// person who asks may be another. What was noted stays when other configurations are
// named, or they would make an old request new.
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

// tellResumed makes the Event of a new request that lets go on what these clusters held
// up.
func (d *delivery) tellResumed(i int, first bool, late []string) {
	if !first || len(late) == 0 || len(d.events) >= maxEvents {
		return
	}
	p := d.Placements[i]
	d.events = append(d.events, reconcile.Event{Type: corev1.EventTypeNormal, Reason: eventResumed, WithStatus: true,
		Message: fmt.Sprintf("The rollout of placement %s/%s goes on without what is out of time: %s", p.Namespace, p.Name, listed(late))})
}
