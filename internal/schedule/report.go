// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// Report explains a Result: the verdict on every cluster of the fleet. Text in it may
// quote labels, claims and expressions; it is bounded. Package verdict publishes its parts
// in their JSON form.
type Report struct {
	// Result is what Decide returns.
	Result Result
	// Sets are the sets that are bound in the namespace or named by the Placement, by
	// name.
	Sets []SetReport
	// Prioritizers are in the order of the spec, after those that the mode adds.
	Prioritizers []Prioritizer
	// Clusters are all clusters of the fleet by name.
	Clusters []ClusterReport
}

// SetReport is what a set contributes to the candidates.
type SetReport struct {
	// Name of the ManagedClusterSet.
	Name string `json:"name"`
	// Bound is true if a binding of this name is in the namespace of the Placement, and
	// Exists if there is a set of that name.
	Bound  bool `json:"bound"`
	Exists bool `json:"exists"`
	// Eligible is true if its members are candidates.
	Eligible bool `json:"eligible"`
	// Members is the number of its clusters, including those being deleted.
	Members int `json:"members"`
	// Problem is why its selector or the binding cannot be used; empty if they can.
	Problem string `json:"problem,omitempty"`
}

// Prioritizer is one part of the score.
type Prioritizer struct {
	// Name is Balance, Steady, ResourceAllocatableCPU, ResourceAllocatableMemory or
	// AddOn/<resource>/<score>.
	Name string
	// Weight is the factor of its score.
	Weight int64
}

// Stage is how far a cluster got.
type Stage string

// The stages, in order.
const (
	// StageNotInSet: the cluster is in no set that the Placement selects from.
	StageNotInSet Stage = "NotInSet"
	// StageDeleting: the cluster is being deleted.
	StageDeleting Stage = "Deleting"
	// StagePredicate: the cluster fits no predicate.
	StagePredicate Stage = "Predicate"
	// StageTaint: the cluster has a taint that is not tolerated.
	StageTaint Stage = "Taint"
	// StageSpread: the cluster would make the spread too uneven.
	StageSpread Stage = "Spread"
	// StageRank: enough others are ranked before it.
	StageRank Stage = "Rank"
	// StageSelected: filters and rank select the cluster.
	StageSelected Stage = "Selected"
)

// ClusterReport is the verdict on one cluster.
type ClusterReport struct {
	// Name of the ManagedCluster.
	Name string `json:"name"`
	// Stage is how far the cluster got by filters and rank. It has no meaning if the spec
	// is invalid.
	Stage Stage `json:"stage"`
	// Selected is true if the cluster is in the Result. It differs from Stage if the
	// Result is kept or delayed.
	Selected bool `json:"selected"`
	// Reason is the verdict in one sentence.
	Reason string `json:"reason"`
	// Sets are the sets of the Placement that the cluster is in, sorted.
	Sets []string `json:"clusterSets,omitempty"`
	// Predicates are all predicates of the Placement, in order, for candidates.
	Predicates []PredicateReport `json:"predicates,omitempty"`
	// Taints are all taints of the cluster, for candidates.
	Taints []TaintReport `json:"taints,omitempty"`
	// Scores are by name of the prioritizer, and Total is the sum of weight times score,
	// for feasible clusters.
	Scores map[string]int64 `json:"scores,omitempty"`
	Total  *int64           `json:"total,omitempty"`
	// Rank is the position among the feasible clusters by taints, score and name, counted
	// from 1; 0 for others.
	Rank int `json:"rank,omitempty"`
	// Spread has an entry for each spread constraint, for feasible clusters.
	Spread []SpreadReport `json:"-"`
	// Group is the index of the decision group; nil if it is not selected.
	Group *int `json:"decisionGroup,omitempty"`
	// GroupName is the name of that group, which may be empty.
	GroupName string `json:"decisionGroupName,omitempty"`
}

// PredicateReport is the result of one predicate for a cluster.
type PredicateReport struct {
	// Matched is true if all parts hold.
	Matched bool `json:"matched"`
	// Parts are the requirements of the predicate, in order: labels, claims, CEL.
	Parts []PartReport `json:"parts,omitempty"`
}

// Part is a kind of requirement.
type Part string

// Kinds of requirements.
const (
	// PartLabel is a requirement of the label selector.
	PartLabel Part = "label"
	// PartClaim is a requirement of the claim selector.
	PartClaim Part = "claim"
	// PartCEL is a CEL expression.
	PartCEL Part = "cel"
)

// PartReport is the result of one requirement for a cluster.
type PartReport struct {
	// Part is the kind of requirement.
	Part Part `json:"part"`
	// Requirement is its text: a selector such as "region in (a,b)", or the expression.
	Requirement string `json:"requirement"`
	// Matched is true if it holds.
	Matched bool `json:"matched"`
	// Actual is the value of the label or claim, for PartLabel and PartClaim; nil if the
	// cluster has none.
	Actual *string `json:"actual,omitempty"`
	// Error is why a CEL expression could not be evaluated.
	Error string `json:"error,omitempty"`
	// Cost of a CEL expression, in the units that CEL counts.
	Cost uint64 `json:"cost,omitempty"`
}

// TaintReport is the effect of one taint.
type TaintReport struct {
	// Key, Value and Effect are those of the taint.
	Key    string                `json:"key"`
	Value  string                `json:"value,omitempty"`
	Effect clusterv1.TaintEffect `json:"effect"`
	// Tolerated is true if it does not keep the cluster out.
	Tolerated bool `json:"tolerated"`
	// Last is true if the taint ranks the cluster after all others.
	Last bool `json:"-"`
	// Until is when the toleration of the taint ends, or when one that would match has
	// ended. Nil means never.
	Until *metav1.Time `json:"until,omitempty"`
	// Reason is the verdict in one sentence.
	Reason string `json:"reason"`
}

// SpreadReport is the result of one spread constraint for a cluster.
type SpreadReport struct {
	// Topology is the value of the label or claim, and Present whether the cluster
	// has one.
	Topology string
	Present  bool
	// Violated is true if taking the cluster in addition to the selected ones would
	// exceed maxSkew, or did so when it was taken.
	Violated bool
}
