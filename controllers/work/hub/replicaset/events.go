// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Reasons of Events, besides those of the condition PlacementVerified.
const (
	eventRolledOut = "RolledOut"
	eventStarted   = "RolloutStarted"
	eventStopped   = "RolloutStopped"
)

// stopped ends the message of PlacementRolledOut while failures stop a rollout.
const stopped = "; more failed than maxFailures allows, no further one is started"

// events reports what changed between two statuses of a replica set: whether its
// placements can be used, and the start, the end and the stop of a rollout. The progress
// of single clusters is not reported, because there may be thousands.
func events(before, after *workv1alpha1.ManifestWorkReplicaSet) []reconcile.Event {
	var out []reconcile.Event
	for _, is := range after.Status.Conditions {
		was := cmp.Or(apimeta.FindStatusCondition(before.Status.Conditions, is.Type), &metav1.Condition{})
		if kind, reason := news(*was, is); reason != "" {
			out = append(out, reconcile.Event{Type: kind, Reason: reason, Message: is.Message})
		}
	}
	slices.SortFunc(out, func(a, b reconcile.Event) int { return strings.Compare(a.Reason, b.Reason) })
	return out
}

// news returns the type and reason of the Event about a condition; empty for none. was is
// empty if the condition is new.
func news(was, is metav1.Condition) (kind, reason string) {
	ended := is.Status == metav1.ConditionTrue
	switch is.Type {
	case workv1alpha1.ConditionPlacementVerified:
		switch {
		case was.Status == is.Status && was.Reason == is.Reason:
		case ended || is.Reason == workv1alpha1.ReasonPlacementDecisionEmpty:
			return corev1.EventTypeNormal, is.Reason
		default:
			return corev1.EventTypeWarning, is.Reason
		}
	case workv1alpha1.ConditionPlacementRolledOut:
		return newsOfRollout(was, is)
	case workv1alpha1.ConditionManifestworkApplied: // no work can carry the label
		if is.Reason == workv1alpha1.ReasonInvalidManifestWorkName && was.Reason != is.Reason {
			return corev1.EventTypeWarning, is.Reason
		}
	case workv1alpha1.ConditionRemovalHeld: // works stay until a person confirms the removal
		if was.Type == "" {
			return corev1.EventTypeWarning, is.Type
		}
	}
	return "", ""
}

func newsOfRollout(was, is metav1.Condition) (kind, reason string) {
	ended, held := is.Status == metav1.ConditionTrue, strings.HasSuffix(is.Message, stopped)
	switch {
	case ended && was.Status != is.Status:
		return corev1.EventTypeNormal, eventRolledOut
	case held && !strings.HasSuffix(was.Message, stopped):
		return corev1.EventTypeWarning, eventStopped
	case !ended && !held && was.Status == metav1.ConditionTrue:
		return corev1.EventTypeNormal, eventStarted
	}
	return "", ""
}
