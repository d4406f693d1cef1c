// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ManagedClusterSetBinding lets the placements of its namespace use the
// clusters of a set. Its name must be the name of the set. Creating one needs
// the permission to create managedclustersets/bind for that set.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=managedclustersetbindings,scope=Namespaced,shortName={mclsetbinding,mclsetbindings}
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
type ManagedClusterSetBinding struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec names the set.
	// +optional
	Spec ManagedClusterSetBindingSpec `json:"spec,omitempty"`

	// status reports whether the set exists.
	// +optional
	Status ManagedClusterSetBindingStatus `json:"status,omitzero"`
}

// ManagedClusterSetBindingSpec is the desired state of a binding.
type ManagedClusterSetBindingSpec struct {
	// clusterSet is the name of the ManagedClusterSet, the same as the name of
	// the binding. It cannot be changed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	ClusterSet string `json:"clusterSet,omitempty"`
}

// ManagedClusterSetBindingStatus is the observed state of a binding.
type ManagedClusterSetBindingStatus struct {
	// conditions hold Bound: True when the set exists.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ManagedClusterSetBindingList is a list of ManagedClusterSetBindings.
//
// +kubebuilder:object:root=true
type ManagedClusterSetBindingList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the ManagedClusterSetBindings.
	Items []ManagedClusterSetBinding `json:"items"`
}
