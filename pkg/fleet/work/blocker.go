// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// describeWork describes the state of a work, which may be nil, whose condition kind is not True.
func describeWork(u *unstructured.Unstructured, kind string) string {
	switch {
	case u == nil:
		return "there is no such work yet"
	case u.GetDeletionTimestamp() != nil:
		return "its agent removes the objects"
	case !isObserved(u, workv1.ConditionApplied):
		return "the agent has not answered"
	}
	if b := blockerOf(u); b != nil {
		return b.Cause
	}
	return kind + " is not True"
}

// ownerOf returns what created a work; "" for a user.
func ownerOf(u *unstructured.Unstructured) string {
	labels := u.GetLabels()
	if set := labels["work.open-cluster-management.io/manifestworkreplicaset"]; set != "" {
		return "replicaset " + strings.Replace(set, ".", "/", 1)
	}
	if addon := labels[clusterv1.LabelAddOnName]; addon != "" {
		return "addon " + addon
	}
	for _, ref := range u.GetOwnerReferences() {
		return strings.ToLower(ref.Kind) + " " + ref.Name
	}
	return ""
}

// isObserved reports whether a condition is about the current spec.
func isObserved(u *unstructured.Unstructured, kind string) bool {
	c := apimeta.FindStatusCondition(fleet.ConditionsOf(u), kind)
	return c != nil && c.ObservedGeneration >= u.GetGeneration()
}

// isCurrent reports whether a condition is True for the current spec.
func isCurrent(u *unstructured.Unstructured, kind string) bool {
	c := apimeta.FindStatusCondition(fleet.ConditionsOf(u), kind)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration >= u.GetGeneration()
}

// blockerOf returns which object of a work is in trouble.
func blockerOf(u *unstructured.Unstructured) *fleet.Blocker {
	manifests, _, _ := unstructured.NestedSlice(u.Object, "status", "resourceStatus", "manifests")
	for _, kind := range []string{workv1.ConditionApplied, workv1.ConditionAvailable} {
		for _, item := range manifests {
			m, ok := item.(map[string]any)
			if !ok {
				continue
			}
			c := apimeta.FindStatusCondition(fleet.ConditionsOf(&unstructured.Unstructured{Object: map[string]any{"status": m}}), kind)
			if c == nil || c.Status == metav1.ConditionTrue {
				continue
			}
			what, _, _ := unstructured.NestedString(m, "resourceMeta", "kind")
			name, _, _ := unstructured.NestedString(m, "resourceMeta", "name")
			return &fleet.Blocker{Cause: fmt.Sprintf("%s/%s: %s=%s: %s", strings.ToLower(what), name, c.Type, c.Status, fleet.OneLine(c.Message)),
				Since: c.LastTransitionTime.Time}
		}
	}
	return nil
}
