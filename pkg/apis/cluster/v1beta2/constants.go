// SPDX-License-Identifier: Apache-2.0

package v1beta2

// Sets that the hub creates and maintains.
const (
	// DefaultClusterSet is the set of every cluster that is in no other exclusive set.
	DefaultClusterSet = "default"
	// GlobalClusterSet is the set that includes every cluster.
	GlobalClusterSet = "global"
)

// AnnotationAutoUpdate on a ManagedClusterSet, set to "false", keeps the hub
// from rolling back changes of the selector of a set that it created.
const AnnotationAutoUpdate = "cluster.open-cluster-management.io/autoupdate"

// Conditions of sets and bindings with their reasons.
const (
	// ConditionClusterSetEmpty on a ManagedClusterSet is True when no cluster is
	// a member.
	ConditionClusterSetEmpty = "ClusterSetEmpty"
	// ReasonNoClusterMatched goes with ClusterSetEmpty True.
	ReasonNoClusterMatched = "NoClusterMatched"
	// ReasonClustersSelected goes with ClusterSetEmpty False.
	ReasonClustersSelected = "ClustersSelected"

	// ConditionBound on a ManagedClusterSetBinding is True when the set exists.
	ConditionBound = "Bound"
	// ReasonClusterSetBound goes with Bound True.
	ReasonClusterSetBound = "ClusterSetBound"
	// ReasonClusterSetNotFound goes with Bound False.
	ReasonClusterSetNotFound = "ClusterSetNotFound"
)
