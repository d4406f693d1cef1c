// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1alpha1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// ManifestWorkReplicaSet creates one ManifestWork in the namespace of every cluster that
// its placements select. Its namespace and name, joined with a dot, may have at most 63
// characters.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=manifestworkreplicasets,scope=Namespaced,shortName=mwrs
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Placement",type=string,JSONPath=`.status.conditions[?(@.type=="PlacementVerified")].reason`
// +kubebuilder:printcolumn:name="Found",type=string,JSONPath=`.status.conditions[?(@.type=="PlacementVerified")].status`
// +kubebuilder:printcolumn:name="ManifestWorks",type=string,JSONPath=`.status.conditions[?(@.type=="ManifestworkApplied")].reason`
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="ManifestworkApplied")].status`
type ManifestWorkReplicaSet struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata. Labels are copied to the
	// ManifestWorks.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec holds the template and says which clusters get it.
	// +optional
	Spec ManifestWorkReplicaSetSpec `json:"spec,omitempty"`

	// status summarizes the ManifestWorks.
	// +optional
	Status ManifestWorkReplicaSetStatus `json:"status,omitzero"`
}

// ManifestWorkReplicaSetSpec is the desired state of a ManifestWorkReplicaSet.
type ManifestWorkReplicaSetSpec struct {
	// manifestWorkTemplate is the spec of every ManifestWork.
	// +optional
	ManifestWorkTemplate workv1.ManifestWorkSpec `json:"manifestWorkTemplate,omitzero"`

	// placementRefs name the placements, in the namespace of the
	// ManifestWorkReplicaSet, that select the clusters; at least one.
	// +required
	// +kubebuilder:validation:MinItems=1
	PlacementRefs []LocalPlacementReference `json:"placementRefs"`

	// cascadeDeletionPolicy is Background to remove the ManifestWorkReplicaSet at once when
	// it is deleted, or Foreground to keep it until its ManifestWorks are gone. The default
	// is Background.
	// +required
	// +kubebuilder:default=Background
	CascadeDeletionPolicy CascadeDeletionPolicy `json:"cascadeDeletionPolicy,omitempty"`
}

// CascadeDeletionPolicy is when a deleted ManifestWorkReplicaSet is removed.
//
// +kubebuilder:validation:Enum=Background;Foreground
type CascadeDeletionPolicy string

// Deletion policies.
const (
	// CascadeDeletionPolicyBackground removes it at once.
	CascadeDeletionPolicyBackground CascadeDeletionPolicy = "Background"
	// CascadeDeletionPolicyForeground keeps it until its ManifestWorks are gone.
	CascadeDeletionPolicyForeground CascadeDeletionPolicy = "Foreground"
)

// LocalPlacementReference names a placement in the same namespace.
type LocalPlacementReference struct {
	// name of the placement.
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// rolloutStrategy says how a change reaches the clusters. The default is All.
	// +optional
	// +kubebuilder:default={type: All, all: {progressDeadline: None}}
	RolloutStrategy clusterv1alpha1.RolloutStrategy `json:"rolloutStrategy,omitzero"`
}

// ManifestWorkReplicaSetStatus is the observed state of a
// ManifestWorkReplicaSet.
type ManifestWorkReplicaSetStatus struct {
	// conditions hold PlacementVerified, PlacementRolledOut and
	// ManifestworkApplied.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// summary counts the ManifestWorks of all placements.
	// +optional
	Summary ManifestWorkReplicaSetSummary `json:"summary,omitzero"`

	// placementSummary counts the ManifestWorks of each placement.
	// +optional
	PlacementSummary []PlacementSummary `json:"placementSummary,omitempty"`
}

// ManifestWorkReplicaSetSummary counts ManifestWorks.
type ManifestWorkReplicaSetSummary struct {
	// desiredTotal stays unset; the condition PlacementRolledOut says how many
	// clusters are selected.
	// +optional
	DesiredTotal int `json:"desiredTotal,omitempty"`

	// total is how many ManifestWorks exist with the spec of the template.
	// +optional
	Total int `json:"total,omitempty"`

	// applied is how many have the condition Applied True.
	// +optional
	Applied int `json:"applied,omitempty"`

	// available is how many have the condition Available True.
	// +optional
	Available int `json:"available,omitempty"`

	// degraded is how many have the condition Degraded True.
	// +optional
	Degraded int `json:"degraded,omitempty"`

	// progressing is how many have the condition Progressing True.
	// +optional
	Progressing int `json:"progressing,omitempty"`

	// updated stays unset; the condition PlacementRolledOut says how many have
	// succeeded with the current template.
	// +optional
	Updated int `json:"updated,omitempty"`
}

// PlacementSummary counts the ManifestWorks of one placement.
type PlacementSummary struct {
	// name of the placement.
	// +optional
	Name string `json:"name,omitempty"`

	// availableDecisionGroups says how many decision groups the placement has and how many
	// of its clusters have their ManifestWork.
	// +optional
	AvailableDecisionGroups string `json:"availableDecisionGroups,omitempty"`

	// summary counts the ManifestWorks.
	// +optional
	Summary ManifestWorkReplicaSetSummary `json:"summary,omitzero"`
}

// ManifestWorkReplicaSetList is a list of ManifestWorkReplicaSets.
//
// +kubebuilder:object:root=true
type ManifestWorkReplicaSetList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the ManifestWorkReplicaSets.
	Items []ManifestWorkReplicaSet `json:"items"`
}
