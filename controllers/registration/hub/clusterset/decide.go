// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// recount is how soon a changed number of members is written again; from empty
// to not empty and back is written at once.
const recount = 10 * time.Second

// State is everything that a decision needs.
type State struct {
	// Set is nil when there is none of the name.
	Set *clusterv1beta2.ManagedClusterSet
	// Name of the set.
	Name string
	// Own is true for the sets that the hub itself keeps.
	Own bool
	// Members is how many clusters are in the set, and Invalid why that cannot
	// be told.
	Members int
	Invalid error
	// Written is when the count was written last.
	Written time.Time
	// Now is the time of the decision.
	Now time.Time
}

// Decide is pure.
func Decide(s State) reconcile.Plan {
	if s.Set == nil {
		if !s.Own {
			return reconcile.Plan{}
		}
		return reconcile.Plan{Writes: []reconcile.Write{reconcile.Create{Object: own(s.Name), Lenient: true}}}
	}
	if s.Set.DeletionTimestamp != nil {
		return reconcile.Plan{}
	}
	set := s.Set.DeepCopy()
	if s.Own && set.Annotations[clusterv1beta2.AnnotationAutoUpdate] != "false" {
		wanted := own(s.Name).Spec.ClusterSelector
		if !sameSelector(set.Spec.ClusterSelector, wanted) {
			set.Spec.ClusterSelector = wanted
			// What the set selects is counted when the right selector is there.
			return reconcile.Plan{Object: set}
		}
	}
	plan := reconcile.Plan{Object: set}
	c := empty(s)
	have := apimeta.FindStatusCondition(set.Status.Conditions, c.Type)
	switch {
	case have != nil && same(*have, c):
	case have != nil && have.ObservedGeneration == c.ObservedGeneration && have.Status == c.Status && have.Reason == c.Reason &&
		s.Now.Before(s.Written.Add(recount)):
		plan.RequeueAfter = s.Written.Add(recount).Sub(s.Now)
	default:
		reconcile.SetCondition(&set.Status.Conditions, c, s.Now)
	}
	return plan
}

func same(a, b metav1.Condition) bool {
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message && a.ObservedGeneration == b.ObservedGeneration
}

func empty(s State) metav1.Condition {
	c := metav1.Condition{
		Type: clusterv1beta2.ConditionClusterSetEmpty, Status: metav1.ConditionTrue, Reason: clusterv1beta2.ReasonNoClusterMatched,
		ObservedGeneration: s.Set.Generation,
	}
	selector := s.Set.Spec.ClusterSelector
	byLabels := selector.SelectorType == clusterv1beta2.SelectorTypeLabelSelector
	switch {
	case s.Invalid != nil:
		c.Message = "The selector cannot be used, so no ManagedCluster is selected: " + s.Invalid.Error()
	case s.Members == 0 && byLabels && selector.LabelSelector == nil:
		c.Message = "No ManagedCluster selected: spec.clusterSelector.labelSelector is missing; {} selects every cluster"
	case s.Members == 0:
		c.Message = "No ManagedCluster selected"
	default:
		c.Status, c.Reason = metav1.ConditionFalse, clusterv1beta2.ReasonClustersSelected
		c.Message = fmt.Sprintf("%d ManagedClusters selected", s.Members)
	}
	if !byLabels && s.Invalid == nil && selector.LabelSelector != nil {
		c.Message += "; spec.clusterSelector.labelSelector is not used, because selectorType is ExclusiveClusterSetLabel"
	}
	return c
}

// own is a set as the hub keeps it: default takes clusters by their label,
// global takes all.
func own(name string) *clusterv1beta2.ManagedClusterSet {
	set := &clusterv1beta2.ManagedClusterSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1beta2.GroupVersion.String(), Kind: "ManagedClusterSet"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}
	set.Spec.ClusterSelector.SelectorType = clusterv1beta2.SelectorTypeExclusiveClusterSetLabel
	if name == clusterv1beta2.GlobalClusterSet {
		set.Spec.ClusterSelector.SelectorType = clusterv1beta2.SelectorTypeLabelSelector
		set.Spec.ClusterSelector.LabelSelector = &metav1.LabelSelector{}
	}
	return set
}

func sameSelector(a, b clusterv1beta2.ManagedClusterSelector) bool {
	return a.SelectorType == b.SelectorType && apiequality.Semantic.DeepEqual(a.LabelSelector, b.LabelSelector)
}
