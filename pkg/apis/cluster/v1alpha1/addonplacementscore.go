// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AddOnPlacementScore is in the namespace of a cluster on the hub and holds scores that an
// add-on gives to that cluster. A placement uses them by naming the object and the score.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=addonplacementscores,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
type AddOnPlacementScore struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata. The name is what placements call
	// resourceName.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status holds the scores.
	// +optional
	Status AddOnPlacementScoreStatus `json:"status,omitzero"`
}

// AddOnPlacementScoreStatus holds the scores that an add-on gave.
type AddOnPlacementScoreStatus struct {
	// conditions report how the add-on computed the scores.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// scores are the scores of this cluster by name.
	// +optional
	// +listType=map
	// +listMapKey=name
	Scores []AddOnPlacementScoreItem `json:"scores,omitempty"`

	// validUntil is when the scores expire. After that time the cluster has score 0. Absent
	// means that they do not expire.
	// +optional
	ValidUntil *metav1.Time `json:"validUntil,omitempty"`
}

// AddOnPlacementScoreItem is one score of a cluster.
type AddOnPlacementScoreItem struct {
	// name of the score, what placements call scoreName.
	// +required
	Name string `json:"name"`

	// value of the score, -100 to 100; a higher one is better.
	// +required
	// +kubebuilder:validation:Minimum=-100
	// +kubebuilder:validation:Maximum=100
	Value int32 `json:"value"`
}

// AddOnPlacementScoreList is a list of AddOnPlacementScores.
//
// +kubebuilder:object:root=true
type AddOnPlacementScoreList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the AddOnPlacementScores.
	Items []AddOnPlacementScore `json:"items"`
}
