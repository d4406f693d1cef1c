// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
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
	for kind, news := range map[string]func(was, is *metav1.Condition) (string, string){
		workv1alpha1.ConditionPlacementVerified:   verifiedNews,
		workv1alpha1.ConditionPlacementRolledOut:  rolloutNews,
		workv1alpha1.ConditionManifestworkApplied: nameNews,
		workv1alpha1.ConditionRemovalHeld:         heldNews,
	} {
		was, is := conditionsOf(before, after, kind)
		if is == nil {
			continue
		}
		if kind, reason := news(was, is); reason != "" {
			out = append(out, reconcile.Event{Type: kind, Reason: reason, Message: is.Message})
		}
	}
	slices.SortFunc(out, func(a, b reconcile.Event) int { return strings.Compare(a.Reason, b.Reason) })
	return out
}

// verifiedNews returns the type and reason of an Event about PlacementVerified; empty for
// none.
func verifiedNews(was, is *metav1.Condition) (kind, reason string) {
	switch {
	case was != nil && was.Status == is.Status && was.Reason == is.Reason:
		return "", ""
	case is.Status == metav1.ConditionTrue || is.Reason == workv1alpha1.ReasonPlacementDecisionEmpty:
		return corev1.EventTypeNormal, is.Reason
	}
	return corev1.EventTypeWarning, is.Reason
}

// rolloutNews does so for PlacementRolledOut.
func rolloutNews(was, is *metav1.Condition) (kind, reason string) {
	if was == nil {
		was = &metav1.Condition{}
	}
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

// nameNews does so for ManifestworkApplied: no work can carry the label.
func nameNews(was, is *metav1.Condition) (kind, reason string) {
	if is.Reason != workv1alpha1.ReasonInvalidManifestWorkName || was != nil && was.Reason == is.Reason {
		return "", ""
	}
	return corev1.EventTypeWarning, is.Reason
}

// heldNews does so for RemovalHeld: works stay until a person confirms the removal.
func heldNews(was, _ *metav1.Condition) (kind, reason string) {
	if was != nil {
		return "", ""
	}
	return corev1.EventTypeWarning, workv1alpha1.ConditionRemovalHeld
}

func conditionsOf(before, after *workv1alpha1.ManifestWorkReplicaSet, kind string) (was, is *metav1.Condition) {
	return apimeta.FindStatusCondition(before.Status.Conditions, kind), apimeta.FindStatusCondition(after.Status.Conditions, kind)
}
