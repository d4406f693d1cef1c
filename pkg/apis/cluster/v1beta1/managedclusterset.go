// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
)

// ManagedClusterSet is the group of clusters of the same name in version
// v1beta2, served here for manifests that were written for v1beta1. Both
// versions have the same fields.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=managedclustersets,scope=Cluster,shortName={mclset,mclsets}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Empty",type=string,JSONPath=`.status.conditions[?(@.type=="ClusterSetEmpty")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ManagedClusterSet struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which clusters are members and what the set requires of them. The default
	// selects the clusters that carry the label of the set.
	// +optional
	// +kubebuilder:default={clusterSelector: {selectorType: ExclusiveClusterSetLabel}}
	Spec clusterv1beta2.ManagedClusterSetSpec `json:"spec,omitempty"`

	// status reports whether the set has members.
	// +optional
	Status clusterv1beta2.ManagedClusterSetStatus `json:"status,omitzero"`
}

// ManagedClusterSetList is a list of ManagedClusterSets.
//
// +kubebuilder:object:root=true
type ManagedClusterSetList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the ManagedClusterSets.
	Items []ManagedClusterSet `json:"items"`
}

// ManagedClusterSetBinding is the binding of the same name in version v1beta2,
// served here for manifests that were written for v1beta1. Both versions have
// the same fields.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=managedclustersetbindings,scope=Namespaced,shortName={mclsetbinding,mclsetbindings}
// +kubebuilder:subresource:status
type ManagedClusterSetBinding struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec names the set.
	// +optional
	Spec clusterv1beta2.ManagedClusterSetBindingSpec `json:"spec,omitempty"`

	// status reports whether the set exists.
	// +optional
	Status clusterv1beta2.ManagedClusterSetBindingStatus `json:"status,omitzero"`
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
