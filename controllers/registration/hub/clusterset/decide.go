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

// recount is the minimum time between two writes of a changed member count; a change between
// empty and not empty is written at once.
const recount = 10 * time.Second

// State holds everything a decision needs.
type State struct {
	// Set is nil when no set has the name.
	Set *clusterv1beta2.ManagedClusterSet
	// Name of the set.
	Name string
	// Own is true for the sets the hub itself maintains.
	Own bool
	// Members is how many clusters are in the set; Invalid is why they cannot be counted.
	Members int
	Invalid error
	// Written is when the count was last written.
	Written time.Time
	// Now is the time of the decision.
	Now time.Time
}

// Decide is pure.
func Decide(s State) reconcile.Plan {
	switch {
	case s.Set == nil && s.Own:
		return reconcile.Plan{Writes: []reconcile.Write{reconcile.Create{Object: ownSet(s.Name), Lenient: true}}}
	case s.Set == nil || s.Set.DeletionTimestamp != nil:
		return reconcile.Plan{}
	}
	set := s.Set.DeepCopy()
	if s.Own && set.Annotations[clusterv1beta2.AnnotationAutoUpdate] != "false" {
		wanted := ownSet(s.Name).Spec.ClusterSelector
		if !apiequality.Semantic.DeepEqual(set.Spec.ClusterSelector, wanted) {
			set.Spec.ClusterSelector = wanted
			// The members are counted once the selector is correct.
			return reconcile.Plan{Object: set}
		}
	}
	if set.Spec.ClusterSelector.SelectorType == clusterv1beta2.SelectorTypeLegacyClusterSetLabel {
		// Some API servers refuse a status beside a value that they no longer allow.
		set.Spec.ClusterSelector.SelectorType = clusterv1beta2.SelectorTypeExclusiveClusterSetLabel
		return reconcile.Plan{Object: set}
	}
	plan := reconcile.Plan{Object: set}
	c := emptyCondition(s)
	have := apimeta.FindStatusCondition(set.Status.Conditions, c.Type)
	if have != nil && have.ObservedGeneration == c.ObservedGeneration && have.Status == c.Status && have.Reason == c.Reason &&
		have.Message != c.Message && s.Now.Before(s.Written.Add(recount)) {
		plan.RequeueAfter = s.Written.Add(recount).Sub(s.Now)
		return plan
	}
	reconcile.SetCondition(&set.Status.Conditions, c, s.Now)
	return plan
}

func emptyCondition(s State) metav1.Condition {
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

// ownSet returns a set as the hub maintains it: default selects clusters by its label, global
// selects all.
func ownSet(name string) *clusterv1beta2.ManagedClusterSet {
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
