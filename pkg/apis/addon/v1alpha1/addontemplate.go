// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// AddOnTemplate holds the manifests and the registration of an add-on, so that
// it needs no controller of its own.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=addontemplates,scope=Cluster
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="ADDON NAME",type=string,JSONPath=`.spec.addonName`
type AddOnTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec holds the template.
	// +required
	Spec AddOnTemplateSpec `json:"spec"`
}

// AddOnTemplateSpec is the content of an AddOnTemplate.
type AddOnTemplateSpec struct {
	// addonName is the name of the ClusterManagementAddOn.
	// +required
	AddonName string `json:"addonName"`

	// agentSpec holds the manifests of the agent, with {{VARIABLES}} in them, and
	// how they are applied. Its deleteOption and executor are ignored.
	// +required
	AgentSpec workv1.ManifestWorkSpec `json:"agentSpec"`

	// registration holds the credentials that the agent gets.
	// +optional
	Registration []RegistrationSpec `json:"registration,omitempty"`
}

// RegistrationSpec is one credential of an agent.
type RegistrationSpec struct {
	// type is KubeClient for access to the API server of the hub, or CustomSigner
	// for a certificate of another signer.
	// +required
	Type RegistrationType `json:"type"`

	// kubeClient refines the type KubeClient.
	// +optional
	KubeClient *KubeClientRegistrationConfig `json:"kubeClient,omitempty"`

	// customSigner refines the type CustomSigner.
	// +optional
	CustomSigner *CustomSignerRegistrationConfig `json:"customSigner,omitempty"`
}

// RegistrationType is the kind of a credential in an AddOnTemplate.
//
// +kubebuilder:validation:Enum=KubeClient;CustomSigner
type RegistrationType string

// Kinds of credentials in an AddOnTemplate.
const (
	// RegistrationTypeKubeClient gives access to the API server of the hub.
	RegistrationTypeKubeClient RegistrationType = "KubeClient"
	// RegistrationTypeCustomSigner gives a certificate of another signer.
	RegistrationTypeCustomSigner RegistrationType = "CustomSigner"
)

// KubeClientRegistrationConfig says what an agent may do on the hub.
type KubeClientRegistrationConfig struct {
	// hubPermissions are permissions on the hub.
	// +optional
	HubPermissions []HubPermissionConfig `json:"hubPermissions,omitempty"`
}

// HubPermissionConfig gives permissions on the hub.
type HubPermissionConfig struct {
	// type is CurrentCluster for permissions in the namespace of the agent's cluster, or
	// SingleNamespace for permissions in a given namespace.
	// +required
	Type HubPermissionType `json:"type"`

	// currentCluster refines the type CurrentCluster.
	// +optional
	CurrentCluster *CurrentClusterBindingConfig `json:"currentCluster,omitempty"`

	// singleNamespace refines the type SingleNamespace.
	// +optional
	SingleNamespace *SingleNamespaceBindingConfig `json:"singleNamespace,omitempty"`
}

// HubPermissionType is where permissions on the hub apply.
//
// +kubebuilder:validation:Enum=CurrentCluster;SingleNamespace
type HubPermissionType string

// Where permissions on the hub apply.
const (
	// HubPermissionTypeCurrentCluster is the namespace of the agent's cluster.
	HubPermissionTypeCurrentCluster HubPermissionType = "CurrentCluster"
	// HubPermissionTypeSingleNamespace is a given namespace.
	HubPermissionTypeSingleNamespace HubPermissionType = "SingleNamespace"
)

// CurrentClusterBindingConfig gives permissions in the namespace of the agent's cluster.
type CurrentClusterBindingConfig struct {
	// clusterRoleName is the ClusterRole that holds the permissions.
	// +required
	ClusterRoleName string `json:"clusterRoleName"`
}

// SingleNamespaceBindingConfig gives permissions in one namespace.
type SingleNamespaceBindingConfig struct {
	// namespace on the hub.
	// +required
	Namespace string `json:"namespace"`

	// roleRef is the Role or ClusterRole that holds the permissions.
	// +required
	RoleRef RoleRef `json:"roleRef"`
}

// RoleRef names a Role or ClusterRole. It has the fields of the RoleRef of
// rbac.authorization.k8s.io/v1, all of them required.
//
// +structType=atomic
type RoleRef struct {
	// apiGroup of the role, rbac.authorization.k8s.io.
	// +required
	APIGroup string `json:"apiGroup"`

	// kind is Role or ClusterRole.
	// +required
	Kind string `json:"kind"`

	// name of the role.
	// +required
	Name string `json:"name"`
}

// CustomSignerRegistrationConfig asks for a certificate that the hub signs with a given
// authority.
type CustomSignerRegistrationConfig struct {
	// signerName is the signer of the certificate, 5 to 571 characters.
	// +required
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=571
	// +kubebuilder:validation:Pattern=`^([a-z0-9][a-z0-9-]*[a-z0-9]\.)+[a-z]+\/[a-z0-9-\.]+$`
	SignerName string `json:"signerName"`

	// subject is who the certificate is for. Absent means the usual identity of
	// the add-on on its cluster.
	// +optional
	Subject *Subject `json:"subject,omitempty"`

	// signingCA is the Secret that holds the authority, in its keys tls.crt and
	// tls.key.
	// +required
	SigningCA SigningCARef `json:"signingCA"`
}

// SigningCARef names a Secret that holds an authority.
type SigningCARef struct {
	// namespace of the Secret. Absent means the namespace of the hub's components.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// name of the Secret.
	// +required
	Name string `json:"name"`
}

// AddOnTemplateList is a list of AddOnTemplates.
//
// +kubebuilder:object:root=true
type AddOnTemplateList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the AddOnTemplates.
	Items []AddOnTemplate `json:"items"`
}
