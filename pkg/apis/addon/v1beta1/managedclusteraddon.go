// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// ManagedClusterAddOn represents one add-on on one cluster. It is in the namespace of the
// cluster on the hub and has the name of the ClusterManagementAddOn.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=managedclusteraddons,scope=Namespaced,shortName={mca,mcas}
// +kubebuilder:subresource:status
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
	// configs are configuration objects for this cluster; they take precedence over
	// those of the placement and over the defaults of the add-on.
	// +optional
	Configs []addonv1alpha1.AddOnConfig `json:"configs,omitempty"`
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
	RelatedObjects []addonv1alpha1.ObjectReference `json:"relatedObjects,omitempty"`

	// addOnMeta describes the add-on for people.
	// +optional
	AddOnMeta addonv1alpha1.AddOnMeta `json:"addOnMeta,omitzero"`

	// supportedConfigs are the kinds of configuration that the add-on reads.
	// +optional
	// +listType=map
	// +listMapKey=group
	// +listMapKey=resource
	SupportedConfigs []addonv1alpha1.ConfigGroupResource `json:"supportedConfigs,omitempty"`

	// configReferences are the configurations in use.
	// +optional
	ConfigReferences []ConfigReference `json:"configReferences,omitempty"`

	// registrations are the credentials that the agent gets for the add-on.
	// +optional
	Registrations []RegistrationConfig `json:"registrations,omitempty"`

	// healthCheck says how the health of the add-on is determined.
	// +optional
	HealthCheck addonv1alpha1.HealthCheck `json:"healthCheck,omitzero"`
}

// ConfigReference is the state of one configuration on one cluster.
type ConfigReference struct {
	addonv1alpha1.ConfigGroupResource `json:",inline"`

	// lastObservedGeneration is the generation of the object that was last seen.
	// +optional
	LastObservedGeneration int64 `json:"lastObservedGeneration,omitempty"`

	// desiredConfig is the object to use.
	// +optional
	DesiredConfig *addonv1alpha1.ConfigSpecHash `json:"desiredConfig,omitempty"`

	// lastAppliedConfig is the object that was used last.
	// +optional
	LastAppliedConfig *addonv1alpha1.ConfigSpecHash `json:"lastAppliedConfig,omitempty"`
}

// RegistrationConfig is one credential that the agent gets for an add-on.
type RegistrationConfig struct {
	// type is kubeClient for access to the API server of the hub, or customSigner
	// for a certificate of another signer.
	// +required
	Type RegistrationType `json:"type"`

	// kubeClient refines the type kubeClient.
	// +optional
	KubeClient *KubeClientConfig `json:"kubeClient,omitempty"`

	// customSigner refines the type customSigner.
	// +optional
	CustomSigner *CustomSignerConfig `json:"customSigner,omitempty"`
}

// RegistrationType is the kind of a credential.
//
// +kubebuilder:validation:Enum=kubeClient;customSigner
type RegistrationType string

// Kinds of credentials.
const (
	// RegistrationTypeKubeClient gives access to the API server of the hub.
	RegistrationTypeKubeClient RegistrationType = "kubeClient"
	// RegistrationTypeCustomSigner gives a certificate of another signer.
	RegistrationTypeCustomSigner RegistrationType = "customSigner"
)

// KubeClientConfig is an access to the API server of the hub.
type KubeClientConfig struct {
	// subject is who the access is for.
	// +optional
	Subject KubeClientSubject `json:"subject,omitzero"`

	// driver is csr for a client certificate or token for a token of a
	// ServiceAccount. The agent writes it.
	// +optional
	Driver addonv1alpha1.DriverType `json:"driver,omitempty"`
}

// KubeClientSubject is who an access to the API server of the hub is for.
type KubeClientSubject struct {
	// user is the name of the user.
	// +optional
	User string `json:"user,omitempty"`

	// groups are the groups of the user.
	// +optional
	Groups []string `json:"groups,omitempty"`
}

// CustomSignerConfig is a certificate of a given signer.
type CustomSignerConfig struct {
	// signerName is the signer of the certificate, 5 to 571 characters.
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

	// organizationUnits are the organizational units of the certificate.
	// +optional
	OrganizationUnits []string `json:"organizationUnits,omitempty"`
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
