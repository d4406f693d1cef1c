// SPDX-License-Identifier: Apache-2.0

package setbinding

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// State holds everything a decision needs.
type State struct {
	// Binding is the current binding.
	Binding *clusterv1beta2.ManagedClusterSetBinding
	// Exists is true when a set of the name exists, and Deleting when it is being deleted.
	Exists, Deleting bool
	// Now is the time of the decision.
	Now time.Time
}

// Decide is pure.
func Decide(s State) reconcile.Plan {
	if s.Binding.DeletionTimestamp != nil {
		return reconcile.Plan{}
	}
	binding := s.Binding.DeepCopy()
	if !reconcile.SetCondition(&binding.Status.Conditions, boundCondition(s), s.Now) {
		return reconcile.Plan{}
	}
	return reconcile.Plan{Object: binding}
}

func boundCondition(s State) metav1.Condition {
	name, set := s.Binding.Name, s.Binding.Spec.ClusterSet
	c := metav1.Condition{
		Type: clusterv1beta2.ConditionBound, Status: metav1.ConditionFalse, Reason: clusterv1beta2.ReasonClusterSetNotFound,
		ObservedGeneration: s.Binding.Generation,
	}
	switch {
	case set != name:
		c.Message = fmt.Sprintf(
			"spec.clusterSet is %.100q but metadata.name is %.100q: nothing is bound; create a binding in which both are the name of the set",
			set, name,
		)
	case !s.Exists:
		c.Message = fmt.Sprintf("There is no ManagedClusterSet %s; it is bound once it is created", set)
	default:
		c.Status, c.Reason = metav1.ConditionTrue, clusterv1beta2.ReasonClusterSetBound
		c.Message = "ManagedClusterSet " + set + " is bound"
		if s.Deleting {
			c.Message += " until it is gone; it is being deleted"
		}
	}
	return c
}
