// SPDX-License-Identifier: Apache-2.0

package taint

import (
	"reflect"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// wantedTaint returns the key of the taint for these conditions; empty for none.
func wantedTaint(conditions []metav1.Condition) string {
	c := apimeta.FindStatusCondition(conditions, clusterv1.ConditionAvailable)
	switch {
	case c == nil || c.Status == metav1.ConditionUnknown:
		return clusterv1.TaintUnreachable
	case c.Status == metav1.ConditionFalse:
		return clusterv1.TaintUnavailable
	default:
		return ""
	}
}

// hasRightTaints reports whether a cluster already has the taints it should have, as nearly all
// clusters found at startup do.
func hasRightTaints(mc *clusterv1.ManagedCluster) bool {
	after, decided := Decide(mc).Object.(*clusterv1.ManagedCluster)
	return !decided || reflect.DeepEqual(after.Spec.Taints, mc.Spec.Taints)
}

// Decide is pure: it adds the correct taint and removes the other one.
func Decide(current *clusterv1.ManagedCluster) reconcile.Plan {
	if current.DeletionTimestamp != nil {
		return reconcile.Plan{}
	}
	wanted, mc := wantedTaint(current.Status.Conditions), current.DeepCopy()
	has := false
	mc.Spec.Taints = slices.DeleteFunc(mc.Spec.Taints, func(t clusterv1.Taint) bool {
		ours := t.Key == clusterv1.TaintUnreachable || t.Key == clusterv1.TaintUnavailable
		right := t.Key == wanted && t.Effect == clusterv1.TaintEffectNoSelect && t.Value == ""
		has = has || right
		return ours && !right
	})
	if wanted != "" && !has {
		// Admission adds the time.
		mc.Spec.Taints = append(mc.Spec.Taints, clusterv1.Taint{Key: wanted, Effect: clusterv1.TaintEffectNoSelect})
	}
	return reconcile.Plan{Object: mc}
}
