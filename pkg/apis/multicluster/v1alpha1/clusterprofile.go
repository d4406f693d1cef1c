// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ClusterProfile is one cluster of an inventory, for tools that work with clusters
// regardless of what manages them. The hub keeps one in each namespace that is bound to a
// set with the cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterprofiles,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
type ClusterProfile struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which cluster it is, and who manages it.
	// +required
	Spec ClusterProfileSpec `json:"spec"`

	// status is what the manager reports about the cluster.
	// +optional
	Status ClusterProfileStatus `json:"status,omitzero"`
}

// ClusterProfileSpec says which cluster a profile stands for.
type ClusterProfileSpec struct {
	// displayName is the display name of the cluster.
	// +optional
	DisplayName string `json:"displayName,omitempty"`

	// clusterManager is who manages the cluster and keeps this profile. It cannot
	// be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="clusterManager cannot be changed"
	ClusterManager ClusterManager `json:"clusterManager"`
}

// ClusterManager names who manages a cluster.
type ClusterManager struct {
	// name of the manager.
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// ClusterProfileStatus is what the manager reports about a cluster. Others may add fields,
// which are preserved.
//
// +kubebuilder:pruning:PreserveUnknownFields
type ClusterProfileStatus struct {
	// conditions hold ControlPlaneHealthy and Joined.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// version holds the versions of the cluster.
	// +optional
	Version ClusterVersion `json:"version,omitzero"`

	// properties are what the cluster reports about itself.
	// +optional
	Properties []Property `json:"properties,omitempty"`

	// accessProviders are ways to reach the API server of the cluster, each with a name and a
	// cluster as in a kubeconfig. The manager maintains the one with the name
	// open-cluster-management; those of others are preserved whole.
	// +optional
	// +kubebuilder:validation:items:Type=object
	// +kubebuilder:validation:items:XPreserveUnknownFields
	AccessProviders []runtime.RawExtension `json:"accessProviders,omitempty"`
}

// ClusterVersion holds the versions of a cluster.
type ClusterVersion struct {
	// kubernetes is the version of the API server, for example v1.36.3.
	// +optional
	Kubernetes string `json:"kubernetes,omitempty"`
}

// Property is one statement about a cluster.
type Property struct {
	// name of the property.
	// +required
	Name string `json:"name"`

	// value of the property.
	// +required
	Value string `json:"value"`
}

// ClusterProfileList is a list of ClusterProfiles.
//
// +kubebuilder:object:root=true
type ClusterProfileList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the ClusterProfiles.
	Items []ClusterProfile `json:"items"`
}
