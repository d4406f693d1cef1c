// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// ClusterManagementAddOn registers an add-on on the hub: what it is called, how
// it is configured, and on which clusters it is installed.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clustermanagementaddons,scope=Cluster,shortName={cma,cmas}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="DISPLAY NAME",type=string,JSONPath=`.spec.addOnMeta.displayName`
type ClusterManagementAddOn struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata. The name is the name of the
	// add-on.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec describes the add-on and says where it is installed.
	// +required
	Spec ClusterManagementAddOnSpec `json:"spec"`

	// status reports which configurations are in use.
	// +optional
	Status ClusterManagementAddOnStatus `json:"status,omitzero"`
}

// ClusterManagementAddOnSpec is the desired state of a ClusterManagementAddOn.
type ClusterManagementAddOnSpec struct {
	// addOnMeta describes the add-on for people.
	// +optional
	AddOnMeta addonv1alpha1.AddOnMeta `json:"addOnMeta,omitzero"`

	// defaultConfigs are the kinds of configuration that the add-on reads, one entry per
	// kind, each with the object used if no other is named. The name
	// __reserved_no_default__ means that the kind is read and has no such object.
	// +optional
	// +listType=map
	// +listMapKey=group
	// +listMapKey=resource
	DefaultConfigs []addonv1alpha1.AddOnConfig `json:"defaultConfigs,omitempty"`

	// installStrategy says on which clusters the add-on is installed. The default
	// is type Manual.
	// +optional
	// +kubebuilder:default={type: Manual}
	InstallStrategy addonv1alpha1.InstallStrategy `json:"installStrategy,omitzero"`
}

// ClusterManagementAddOnStatus is the observed state of a
// ClusterManagementAddOn.
type ClusterManagementAddOnStatus struct {
	// defaultConfigReferences are the default configurations in use.
	// +optional
	DefaultConfigReferences []addonv1alpha1.DefaultConfigReference `json:"defaultConfigReferences,omitempty"`

	// installProgressions report the rollout progress on the clusters of each placement.
	// +optional
	InstallProgressions []addonv1alpha1.InstallProgression `json:"installProgressions,omitempty"`
}

// ClusterManagementAddOnList is a list of ClusterManagementAddOns.
//
// +kubebuilder:object:root=true
type ClusterManagementAddOnList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the ClusterManagementAddOns.
	Items []ClusterManagementAddOn `json:"items"`
}
