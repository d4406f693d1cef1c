// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ManagedClusterAddOn represents one add-on on one cluster. It is in the namespace of the
// cluster on the hub and has the name of the ClusterManagementAddOn.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=managedclusteraddons,scope=Namespaced,shortName={mca,mcas}
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Degraded",type=string,JSONPath=`.status.conditions[?(@.type=="Degraded")].status`
// +kubebuilder:printcolumn:name="Progressing",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].status`
type ManagedClusterAddOn struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec configures the add-on on this cluster.
	// +required
	Spec ManagedClusterAddOnSpec `json:"spec"`

	// status reports the state of the add-on on this cluster.
	// +optional
	Status ManagedClusterAddOnStatus `json:"status,omitzero"`
}

// ManagedClusterAddOnSpec is the desired state of a ManagedClusterAddOn.
type ManagedClusterAddOnSpec struct {
	// installNamespace is the namespace on the managed cluster that the add-on
	// runs in, a DNS label of at most 63 characters. Add-ons that take it from an
	// AddOnDeploymentConfig ignore it. The default is
	// open-cluster-management-agent-addon.
	// +optional
	// +kubebuilder:default=open-cluster-management-agent-addon
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	InstallNamespace string `json:"installNamespace,omitempty"`

	// configs are configuration objects for this cluster; they take precedence over
	// those of the placement and over the defaults of the add-on.
	// +optional
	Configs []AddOnConfig `json:"configs,omitempty"`
}

// ManagedClusterAddOnStatus is the observed state of a ManagedClusterAddOn.
type ManagedClusterAddOnStatus struct {
	// namespace is the namespace on the managed cluster that the add-on actually runs in.
	// The agent puts the credentials of the add-on there.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// conditions hold Available, Progressing, ManifestApplied,
	// RegistrationApplied, Configured and others.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// relatedObjects name objects that belong to the add-on.
	// +optional
	RelatedObjects []ObjectReference `json:"relatedObjects,omitempty"`

	// addOnMeta describes the add-on for people.
	// +optional
	AddOnMeta AddOnMeta `json:"addOnMeta,omitzero"`

	// addOnConfiguration is the older form of configReferences. It is ignored.
	// +optional
	AddOnConfiguration AddOnConfigCoordinates `json:"addOnConfiguration,omitzero"`

	// supportedConfigs are the kinds of configuration that the add-on reads.
	// +optional
	// +listType=map
	// +listMapKey=group
	// +listMapKey=resource
	SupportedConfigs []ConfigGroupResource `json:"supportedConfigs,omitempty"`

	// configReferences are the configurations in use.
	// +optional
	ConfigReferences []ConfigReference `json:"configReferences,omitempty"`

	// registrations are the credentials that the agent gets for the add-on.
	// +optional
	Registrations []RegistrationConfig `json:"registrations,omitempty"`

	// healthCheck says how the health of the add-on is determined.
	// +optional
	HealthCheck HealthCheck `json:"healthCheck,omitzero"`

	// kubeClientDriver is how the add-on gets its access to the API server of the hub: csr
	// with a client certificate, token with a token of a ServiceAccount. The agent writes
	// it.
	// +optional
	KubeClientDriver DriverType `json:"kubeClientDriver,omitempty"`
}

// ConfigReference is the state of one configuration on one cluster.
type ConfigReference struct {
	ConfigGroupResource `json:",inline"`

	// The object, in the form used before desiredConfig.
	ConfigReferent `json:",inline"`

	// lastObservedGeneration is the generation of the object that was last seen.
	// +optional
	LastObservedGeneration int64 `json:"lastObservedGeneration,omitempty"`

	// desiredConfig is the object to use.
	// +optional
	DesiredConfig *ConfigSpecHash `json:"desiredConfig,omitempty"`

	// lastAppliedConfig is the object that was used last.
	// +optional
	LastAppliedConfig *ConfigSpecHash `json:"lastAppliedConfig,omitempty"`
}

// RegistrationConfig is one credential that the agent gets for an add-on.
type RegistrationConfig struct {
	// signerName is the signer of the certificate, 5 to 571 characters.
	// kubernetes.io/kube-apiserver-client gives access to the API server of the hub.
	// +required
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=571
	// +kubebuilder:validation:Pattern=`^([a-z0-9][a-z0-9-]*[a-z0-9]\.)+[a-z]+\/[a-z0-9-\.]+$`
	SignerName string `json:"signerName"`

	// subject is who the certificate is for.
	// +optional
	Subject Subject `json:"subject,omitzero"`
}

// Subject is who a certificate is for.
type Subject struct {
	// user is the common name of the certificate.
	// +optional
	User string `json:"user,omitempty"`

	// groups are the organizations of the certificate.
	// +optional
	Groups []string `json:"groups,omitempty"`

	// organizationUnit are the organizational units of the certificate.
	// +optional
	OrganizationUnits []string `json:"organizationUnit,omitempty"`
}

// ManagedClusterAddOnList is a list of ManagedClusterAddOns.
//
// +kubebuilder:object:root=true
type ManagedClusterAddOnList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the ManagedClusterAddOns.
	Items []ManagedClusterAddOn `json:"items"`
}
