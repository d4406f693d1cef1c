// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// Placement selects clusters out of the sets that are bound to its namespace. The result is
// in PlacementDecisions that carry the label cluster.open-cluster-management.io/placement
// with its name. Candidates are filtered by predicates and taints, then ranked by
// prioritizers, and the best numberOfClusters are taken.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=placements,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Succeeded",type=string,JSONPath=`.status.conditions[?(@.type=="PlacementSatisfied")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="PlacementSatisfied")].reason`
// +kubebuilder:printcolumn:name="SelectedClusters",type=integer,JSONPath=`.status.numberOfSelectedClusters`
type Placement struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which clusters to select.
	// +required
	Spec PlacementSpec `json:"spec"`

	// status reports the result of the selection.
	// +optional
	Status PlacementStatus `json:"status,omitzero"`
}

// PlacementSpec says which clusters to select.
type PlacementSpec struct {
	// clusterSets are the sets to select from, out of those that are bound to the
	// namespace. Absent means all of them.
	// +optional
	ClusterSets []string `json:"clusterSets,omitempty"`

	// numberOfClusters is how many clusters to select. Absent means all that match.
	// +optional
	NumberOfClusters *int32 `json:"numberOfClusters,omitempty"`

	// predicates filter the candidates. A cluster passes if it matches one of them. Absent
	// means that every cluster passes.
	// +optional
	Predicates []ClusterPredicate `json:"predicates,omitempty"`

	// prioritizerPolicy says how the clusters that pass are ranked.
	// +optional
	PrioritizerPolicy PrioritizerPolicy `json:"prioritizerPolicy,omitzero"`

	// spreadPolicy says how evenly the selected clusters are spread, for example
	// over regions.
	// +optional
	SpreadPolicy SpreadPolicy `json:"spreadPolicy,omitzero"`

	// tolerations let the placement select clusters with taints.
	// +optional
	Tolerations []Toleration `json:"tolerations,omitempty"`

	// decisionStrategy says how the decisions are grouped.
	// +optional
	DecisionStrategy DecisionStrategy `json:"decisionStrategy,omitzero"`

	// sortBy is ClusterName to list the decisions by name, or Score to list the
	// best first. The default is ClusterName.
	// +optional
	// +kubebuilder:default=ClusterName
	// +kubebuilder:validation:Enum=ClusterName;Score
	SortBy SortBy `json:"sortBy,omitempty"`

	// scoreRateLimit is the minimum time between changes of the decisions because of scores
	// alone, a number with unit h, m or s. The default is 1m.
	// +optional
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:Pattern=`^[0-9]+[hms]$`
	ScoreRateLimit string `json:"scoreRateLimit,omitempty"`
}

// SortBy is the order of decisions.
type SortBy string

// Orders of decisions.
const (
	// SortByClusterName lists decisions by name.
	SortByClusterName SortBy = "ClusterName"
	// SortByScore lists the best clusters first.
	SortByScore SortBy = "Score"
)

// ClusterPredicate is one filter of clusters.
type ClusterPredicate struct {
	// requiredClusterSelector is what a cluster must match.
	// +optional
	RequiredClusterSelector ClusterSelector `json:"requiredClusterSelector,omitzero"`
}

// ClusterSelector selects clusters by labels, claims and expressions. A cluster must match
// every part that is given.
type ClusterSelector struct {
	// labelSelector selects by the labels of the ManagedCluster.
	// +optional
	LabelSelector metav1.LabelSelector `json:"labelSelector,omitzero"`

	// claimSelector selects by the claims in the status of the ManagedCluster.
	// +optional
	ClaimSelector ClusterClaimSelector `json:"claimSelector,omitzero"`

	// celSelector selects by CEL expressions over the ManagedCluster.
	// +optional
	CELSelector ClusterCELSelector `json:"celSelector,omitzero"`
}

// ClusterClaimSelector selects clusters by claims.
type ClusterClaimSelector struct {
	// matchExpressions must all hold; the key is the name of a claim.
	// +optional
	MatchExpressions []metav1.LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}

// ClusterCELSelector selects clusters by CEL expressions.
type ClusterCELSelector struct {
	// celExpressions must all be true. They can use the variable managedCluster.
	// +optional
	CELExpressions []string `json:"celExpressions,omitempty"`
}

// PrioritizerPolicy says how clusters are ranked.
type PrioritizerPolicy struct {
	// mode is Additive to add the configurations to the built-in ranking (Balance and
	// Steady, weight 1 each), or Exact to use only the configurations. The default is
	// Additive.
	// +optional
	// +kubebuilder:default=Additive
	Mode PrioritizerPolicyMode `json:"mode,omitempty"`

	// configurations are the prioritizers with their weights.
	// +optional
	Configurations []PrioritizerConfig `json:"configurations,omitempty"`
}

// PrioritizerPolicyMode is how configured and built-in prioritizers are combined.
type PrioritizerPolicyMode string

// Modes of a prioritizer policy.
const (
	// PrioritizerPolicyModeAdditive adds to the built-in ranking.
	PrioritizerPolicyModeAdditive PrioritizerPolicyMode = "Additive"
	// PrioritizerPolicyModeExact replaces the built-in ranking.
	PrioritizerPolicyModeExact PrioritizerPolicyMode = "Exact"
)

// PrioritizerConfig is one prioritizer with its weight.
type PrioritizerConfig struct {
	// scoreCoordinate says where the score comes from.
	// +required
	ScoreCoordinate *ScoreCoordinate `json:"scoreCoordinate"`

	// weight of the score, -10 to 10. 0 leaves the prioritizer out; a negative weight
	// prefers low scores. The default is 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=-10
	// +kubebuilder:validation:Maximum=10
	Weight *int32 `json:"weight,omitempty"`
}

// ScoreCoordinate says where a score comes from.
type ScoreCoordinate struct {
	// type is BuiltIn for a built-in prioritizer, or AddOn for scores in
	// AddOnPlacementScores. The default is BuiltIn.
	// +required
	// +kubebuilder:default=BuiltIn
	// +kubebuilder:validation:Enum=BuiltIn;AddOn
	Type ScoreCoordinateType `json:"type,omitempty"`

	// builtIn names the prioritizer when type is BuiltIn: Balance (few decisions so far),
	// Steady (already selected), ResourceAllocatableCPU or ResourceAllocatableMemory.
	// +optional
	BuiltIn string `json:"builtIn,omitempty"`

	// addOn names the score when type is AddOn.
	// +optional
	AddOn *AddOnScore `json:"addOn,omitempty"`
}

// ScoreCoordinateType is where a score comes from.
type ScoreCoordinateType string

// Sources of scores.
const (
	// ScoreCoordinateTypeBuiltIn is a built-in prioritizer.
	ScoreCoordinateTypeBuiltIn ScoreCoordinateType = "BuiltIn"
	// ScoreCoordinateTypeAddOn is an AddOnPlacementScore.
	ScoreCoordinateTypeAddOn ScoreCoordinateType = "AddOn"
)

// AddOnScore names a score that an add-on gives.
type AddOnScore struct {
	// resourceName is the name of the AddOnPlacementScore in the namespace of each
	// cluster.
	// +required
	ResourceName string `json:"resourceName"`

	// scoreName is the name of the score in it.
	// +required
	ScoreName string `json:"scoreName"`
}

// SpreadPolicy says how evenly selected clusters are spread.
type SpreadPolicy struct {
	// spreadConstraints are at most 8 constraints, the more important ones first.
	// +optional
	// +kubebuilder:validation:MaxItems=8
	SpreadConstraints []SpreadConstraintsTerm `json:"spreadConstraints,omitempty"`
}

// SpreadConstraintsTerm says how evenly selected clusters are spread over the
// values of one label or claim.
type SpreadConstraintsTerm struct {
	// topologyKey is the label or claim; its values are the domains to spread over.
	// +required
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`
	TopologyKey string `json:"topologyKey"`

	// topologyKeyType is Label or Claim.
	// +required
	// +kubebuilder:validation:Enum=Label;Claim
	TopologyKeyType TopologyKeyType `json:"topologyKeyType"`

	// maxSkew is by how many clusters the fullest domain may exceed the emptiest, at least
	// 1. The default is 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	MaxSkew int32 `json:"maxSkew,omitempty"`

	// whenUnsatisfiable is DoNotSchedule to leave out clusters that would exceed maxSkew,
	// or ScheduleAnyway to take them last. The default is ScheduleAnyway.
	// +optional
	// +kubebuilder:default=ScheduleAnyway
	// +kubebuilder:validation:Enum=DoNotSchedule;ScheduleAnyway
	WhenUnsatisfiable UnsatisfiableMaxSkewAction `json:"whenUnsatisfiable,omitempty"`
}

// TopologyKeyType is what a topology key names.
type TopologyKeyType string

// What a topology key may name.
const (
	// TopologyKeyTypeLabel is a label of the ManagedCluster.
	TopologyKeyTypeLabel TopologyKeyType = "Label"
	// TopologyKeyTypeClaim is a claim in the status of the ManagedCluster.
	TopologyKeyTypeClaim TopologyKeyType = "Claim"
)

// UnsatisfiableMaxSkewAction is what happens to clusters that would exceed maxSkew.
type UnsatisfiableMaxSkewAction string

// What may happen to clusters that would exceed maxSkew.
const (
	// DoNotSchedule leaves them out.
	DoNotSchedule UnsatisfiableMaxSkewAction = "DoNotSchedule"
	// ScheduleAnyway takes them last.
	ScheduleAnyway UnsatisfiableMaxSkewAction = "ScheduleAnyway"
)

// Toleration lets a placement select clusters with a taint.
type Toleration struct {
	// key of the taint. Absent, with operator Exists, means every taint.
	// +optional
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`
	// +kubebuilder:validation:MaxLength=316
	Key string `json:"key,omitempty"`

	// operator is Equal to compare the value, or Exists to accept every value. The default
	// is Equal.
	// +optional
	// +kubebuilder:default=Equal
	Operator TolerationOperator `json:"operator,omitempty"`

	// value of the taint when operator is Equal, at most 1024 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value,omitempty"`

	// effect of the taint. Absent means every effect.
	// +optional
	Effect clusterv1.TaintEffect `json:"effect,omitempty"`

	// tolerationSeconds is how many seconds the taint is tolerated after it was added.
	// Absent means forever.
	// +optional
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty"`
}

// TolerationOperator is how a toleration compares the value of a taint.
type TolerationOperator string

// Ways to compare the value of a taint.
const (
	// TolerationOpEqual compares the value.
	TolerationOpEqual TolerationOperator = "Equal"
	// TolerationOpExists accepts every value.
	TolerationOpExists TolerationOperator = "Exists"
)

// DecisionStrategy says how decisions are grouped.
type DecisionStrategy struct {
	// groupStrategy says how decisions are grouped.
	// +optional
	GroupStrategy GroupStrategy `json:"groupStrategy,omitzero"`
}

// GroupStrategy says how decisions are grouped, so that a rollout can change one group
// after the other.
type GroupStrategy struct {
	// decisionGroups are named groups, filled in this order. Clusters that match none form
	// unnamed groups.
	// +optional
	DecisionGroups []DecisionGroup `json:"decisionGroups,omitempty"`

	// clustersPerDecisionGroup is the maximum number of clusters in a group: a number, or a
	// share of all selected clusters such as 25%. The default is 100%.
	// +optional
	// +kubebuilder:default="100%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^((100|[1-9][0-9]{0,1})%|[1-9][0-9]*)$`
	ClustersPerDecisionGroup *intstr.IntOrString `json:"clustersPerDecisionGroup,omitempty"`
}

// DecisionGroup is a group of decisions with a name.
type DecisionGroup struct {
	// groupName is the name of the group, 2 to 63 characters.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9][-A-Za-z0-9_.]{0,61}[a-zA-Z0-9]$`
	GroupName string `json:"groupName"`

	// groupClusterSelector selects the clusters of the group.
	// +required
	GroupClusterSelector GroupClusterSelector `json:"groupClusterSelector"`
}

// GroupClusterSelector selects clusters by labels and claims. A cluster must match both.
type GroupClusterSelector struct {
	// labelSelector selects by the labels of the ManagedCluster.
	// +optional
	LabelSelector metav1.LabelSelector `json:"labelSelector,omitzero"`

	// claimSelector selects by the claims in the status of the ManagedCluster.
	// +optional
	ClaimSelector ClusterClaimSelector `json:"claimSelector,omitzero"`
}

// PlacementStatus is the result of a selection.
type PlacementStatus struct {
	// numberOfSelectedClusters is how many clusters were selected.
	// +optional
	NumberOfSelectedClusters int32 `json:"numberOfSelectedClusters,omitempty"`

	// decisionGroups are the groups of decisions, in order.
	// +optional
	DecisionGroups []DecisionGroupStatus `json:"decisionGroups,omitempty"`

	// conditions hold PlacementSatisfied and PlacementMisconfigured.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// lastScoreUpdateTime is when changed scores last changed the decisions.
	// +optional
	LastScoreUpdateTime *metav1.Time `json:"lastScoreUpdateTime,omitempty"`
}

// DecisionGroupStatus is one group of decisions.
type DecisionGroupStatus struct {
	// decisionGroupIndex is the index of the group, counted from 0.
	// +optional
	DecisionGroupIndex int32 `json:"decisionGroupIndex"`

	// decisionGroupName is the name of the group; empty for groups without one.
	// +optional
	DecisionGroupName string `json:"decisionGroupName"`

	// decisions are the names of the PlacementDecisions that hold the group.
	// +optional
	Decisions []string `json:"decisions,omitempty"`

	// clusterCount is how many clusters the group holds. The default is 0.
	// +optional
	// +kubebuilder:default=0
	ClusterCount int32 `json:"clusterCount"`
}

// PlacementList is a list of Placements.
//
// +kubebuilder:object:root=true
type PlacementList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the Placements.
	Items []Placement `json:"items"`
}
