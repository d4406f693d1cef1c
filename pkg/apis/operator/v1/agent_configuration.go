// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RegistrationConfiguration refines the registration agent.
type RegistrationConfiguration struct {
	// featureGates switch features of registration. Those not named have their
	// default.
	// +optional
	FeatureGates []FeatureGate `json:"featureGates,omitempty"`

	// clientCertExpirationSeconds is the lifetime of the client certificate that the agent
	// asks for, in seconds, at least 3600. Absent leaves it to the hub, usually a year.
	// +optional
	ClientCertExpirationSeconds int32 `json:"clientCertExpirationSeconds,omitempty"`

	// clusterAnnotations are annotations of the ManagedCluster that the agent
	// creates. Only keys that begin with agent.open-cluster-management.io count.
	// +optional
	ClusterAnnotations map[string]string `json:"clusterAnnotations,omitempty"`

	// clusterLabels are labels of the ManagedCluster that the agent creates.
	// +optional
	ClusterLabels map[string]string `json:"clusterLabels,omitempty"`

	// kubeAPIQPS is the average number of requests per second that the agent may send to
	// the hub. The default is 50.
	// +optional
	// +kubebuilder:default=50
	KubeAPIQPS int32 `json:"kubeAPIQPS,omitempty"`

	// kubeAPIBurst is the number of requests that the agent may send to the hub at once.
	// The default is 100.
	// +optional
	// +kubebuilder:default=100
	KubeAPIBurst int32 `json:"kubeAPIBurst,omitempty"`

	// bootstrapKubeConfigs lists several hubs that the agent may join.
	// +optional
	BootstrapKubeConfigs BootstrapKubeConfigs `json:"bootstrapKubeConfigs,omitzero"`

	// registrationDriver is how the agent joins. Absent means csr.
	// +optional
	RegistrationDriver RegistrationDriver `json:"registrationDriver,omitzero"`

	// addOnKubeClientRegistrationDriver is how add-ons get their access to the
	// hub. Absent means csr.
	// +optional
	AddOnKubeClientRegistrationDriver *AddOnRegistrationDriver `json:"addOnKubeClientRegistrationDriver,omitempty"`

	// clusterClaimConfiguration limits the claims that are copied to the hub.
	// +optional
	ClusterClaimConfiguration *ClusterClaimConfiguration `json:"clusterClaimConfiguration,omitempty"`
}

// BootstrapKubeConfigs lists several hubs that the agent may join.
type BootstrapKubeConfigs struct {
	// type is None for the single secret bootstrap-hub-kubeconfig, or
	// LocalSecrets for the list in localSecretsConfig. The default is None.
	// +required
	// +kubebuilder:default=None
	// +kubebuilder:validation:Enum=None;LocalSecrets
	Type BootstrapKubeConfigType `json:"type,omitempty"`

	// localSecretsConfig lists the secrets when type is LocalSecrets.
	// +optional
	LocalSecretsConfig *LocalSecretsConfig `json:"localSecretsConfig,omitempty"`
}

// BootstrapKubeConfigType is where the agent finds its hubs.
type BootstrapKubeConfigType string

// Sources of bootstrap kubeconfigs.
const (
	// BootstrapKubeConfigTypeNone is the single secret bootstrap-hub-kubeconfig.
	BootstrapKubeConfigTypeNone BootstrapKubeConfigType = "None"
	// BootstrapKubeConfigTypeLocalSecrets is a list of secrets.
	BootstrapKubeConfigTypeLocalSecrets BootstrapKubeConfigType = "LocalSecrets"
)

// LocalSecretsConfig lists secrets with bootstrap kubeconfigs.
type LocalSecretsConfig struct {
	// kubeConfigSecrets are the secrets in the namespace of the agent, at least
	// two, in order of preference.
	// +required
	KubeConfigSecrets []KubeConfigSecret `json:"kubeConfigSecrets"`

	// hubConnectionTimeoutSeconds is how many seconds without a connection the agent waits
	// before it tries the next hub, at least 180. The default is 600.
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=180
	HubConnectionTimeoutSeconds int32 `json:"hubConnectionTimeoutSeconds,omitempty"`
}

// KubeConfigSecret names a secret with a bootstrap kubeconfig.
type KubeConfigSecret struct {
	// name of the secret.
	// +required
	Name string `json:"name"`
}

// RegistrationDriver is how an agent joins.
type RegistrationDriver struct {
	// authType is csr for client certificates, awsirsa for AWS identities, or grpc for the
	// gRPC server. The default is csr.
	// +required
	// +kubebuilder:default=csr
	// +kubebuilder:validation:Enum=csr;awsirsa;grpc
	AuthType string `json:"authType,omitempty"`

	// awsIrsa refines the driver awsirsa.
	// +optional
	AwsIrsa *AwsIrsa `json:"awsIrsa,omitempty"`
}

// AwsIrsa refines the driver awsirsa on the agent.
type AwsIrsa struct {
	// hubClusterArn is the ARN of the hub,
	// arn:aws:eks:region:account:cluster/name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^arn:aws:eks:([a-zA-Z0-9-]+):(\d{12}):cluster/([a-zA-Z0-9-]+)$`
	HubClusterArn string `json:"hubClusterArn"`

	// managedClusterArn is the ARN of the managed cluster, in the same form.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^arn:aws:eks:([a-zA-Z0-9-]+):(\d{12}):cluster/([a-zA-Z0-9-]+)$`
	ManagedClusterArn string `json:"managedClusterArn"`
}

// AddOnRegistrationDriver is how add-ons get their access to the hub.
type AddOnRegistrationDriver struct {
	// authType is csr for client certificates or token for tokens of
	// ServiceAccounts. Absent means csr.
	// +optional
	// +kubebuilder:validation:Enum=csr;token
	AuthType string `json:"authType,omitempty"`

	// token refines the driver token.
	// +optional
	Token *TokenConfig `json:"token,omitempty"`
}

// TokenConfig refines the driver token.
type TokenConfig struct {
	// expirationSeconds is the lifetime of the tokens, in seconds. Absent means 31536000, a
	// year.
	// +optional
	ExpirationSeconds int64 `json:"expirationSeconds,omitempty"`
}

// ClusterClaimConfiguration limits the claims that are copied to the hub.
type ClusterClaimConfiguration struct {
	// maxCustomClusterClaims is the maximum number of claims without a reserved name that
	// are copied. The default is 20.
	// +required
	// +kubebuilder:default=20
	MaxCustomClusterClaims int32 `json:"maxCustomClusterClaims"`

	// reservedClusterClaimSuffixes make claims whose names end in one of them reserved too,
	// so that they are always copied. At most 10, each of 1 to 64 characters.
	// +optional
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	ReservedClusterClaimSuffixes []string `json:"reservedClusterClaimSuffixes,omitempty"`
}

// WorkAgentConfiguration refines the work agent.
type WorkAgentConfiguration struct {
	// featureGates switch features of the work agent. Those not named have their
	// default.
	// +optional
	FeatureGates []FeatureGate `json:"featureGates,omitempty"`

	// kubeAPIQPS is the average number of requests per second that the agent may send to
	// the managed cluster. The default is 50.
	// +optional
	// +kubebuilder:default=50
	KubeAPIQPS int32 `json:"kubeAPIQPS,omitempty"`

	// kubeAPIBurst is the number of requests that the agent may send to the managed cluster
	// at once. The default is 100.
	// +optional
	// +kubebuilder:default=100
	KubeAPIBurst int32 `json:"kubeAPIBurst,omitempty"`

	// hubKubeAPIQPS is the average number of requests per second that the agent may send to
	// the hub. The default is 50.
	// +optional
	// +kubebuilder:default=50
	HubKubeAPIQPS int32 `json:"hubKubeAPIQPS,omitempty"`

	// hubKubeAPIBurst is the number of requests that the agent may send to the hub at once.
	// The default is 100.
	// +optional
	// +kubebuilder:default=100
	HubKubeAPIBurst int32 `json:"hubKubeAPIBurst,omitempty"`

	// statusSyncInterval is how often the state of applied objects is read if it is not
	// watched, for example 30s. Absent means the default of the agent.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(s|m|h))+$`
	StatusSyncInterval *metav1.Duration `json:"statusSyncInterval,omitempty"`

	// appliedManifestWorkEvictionGracePeriod is how long applied objects stay after their
	// ManifestWork has disappeared from the hub, for example 60m. Absent means the default
	// of the agent.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(s|m|h))+$`
	AppliedManifestWorkEvictionGracePeriod *metav1.Duration `json:"appliedManifestWorkEvictionGracePeriod,omitempty"`
}
