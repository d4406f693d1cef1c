// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterManagementAddOn registers an add-on on the hub: what it is called, how
// it is configured, and on which clusters it is installed.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clustermanagementaddons,scope=Cluster,shortName={cma,cmas}
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="DISPLAY NAME",type=string,JSONPath=`.spec.addOnMeta.displayName`
// +kubebuilder:printcolumn:name="CRD NAME",type=string,JSONPath=`.spec.addOnConfiguration.crdName`
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
	AddOnMeta AddOnMeta `json:"addOnMeta,omitzero"`

	// addOnConfiguration is the older form of supportedConfigs. It is ignored.
	// +optional
	AddOnConfiguration AddOnConfigCoordinates `json:"addOnConfiguration,omitzero"`

	// supportedConfigs are the kinds of configuration that the add-on reads, each with the
	// object used if no other is named.
	// +optional
	// +listType=map
	// +listMapKey=group
	// +listMapKey=resource
	SupportedConfigs []ConfigMeta `json:"supportedConfigs,omitempty"`

	// installStrategy says on which clusters the add-on is installed. The default
	// is type Manual.
	// +optional
	// +kubebuilder:default={type: Manual}
	InstallStrategy InstallStrategy `json:"installStrategy,omitzero"`
}

// ConfigMeta is a kind of configuration with its default object.
type ConfigMeta struct {
	ConfigGroupResource `json:",inline"`

	// defaultConfig is the object used if no other is named. Absent means that there is
	// none.
	// +optional
	DefaultConfig *ConfigReferent `json:"defaultConfig,omitempty"`
}

// ClusterManagementAddOnStatus is the observed state of a
// ClusterManagementAddOn.
type ClusterManagementAddOnStatus struct {
	// defaultconfigReferences are the default configurations in use. The name is spelled
	// this way in this version.
	// +optional
	DefaultConfigReferences []DefaultConfigReference `json:"defaultconfigReferences,omitempty"`

	// installProgressions report the rollout progress on the clusters of each placement.
	// +optional
	InstallProgressions []InstallProgression `json:"installProgressions,omitempty"`
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
