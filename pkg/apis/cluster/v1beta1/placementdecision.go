// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PlacementDecision holds up to 100 of the clusters that a Placement selected.
// The hub creates it, owned by the Placement and labelled with its name and with
// the decision group.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=placementdecisions,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
type PlacementDecision struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status holds the selected clusters. Absent means none.
	// +optional
	Status PlacementDecisionStatus `json:"status,omitzero"`
}

// PlacementDecisionStatus holds selected clusters.
type PlacementDecisionStatus struct {
	// decisions are the selected clusters, in the order that the Placement requests.
	// +required
	Decisions []ClusterDecision `json:"decisions"`
}

// ClusterDecision is one selected cluster.
type ClusterDecision struct {
	// clusterName is the name of the ManagedCluster.
	// +required
	ClusterName string `json:"clusterName"`

	// reason says why the cluster was selected. It may be empty.
	// +required
	Reason string `json:"reason"`

	// score of the cluster; set when the Placement sorts by score.
	// +optional
	Score *int64 `json:"score,omitempty"`
}

// PlacementDecisionList is a list of PlacementDecisions.
//
// +kubebuilder:object:root=true
type PlacementDecisionList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the PlacementDecisions.
	Items []PlacementDecision `json:"items"`
}
