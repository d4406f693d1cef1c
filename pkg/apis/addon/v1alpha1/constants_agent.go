// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Reasons of the conditions that the agent writes on a ManagedClusterAddOn.
const (
	// ReasonLeaseUpdated goes with ConditionAvailable True.
	ReasonLeaseUpdated = "ManagedClusterAddOnLeaseUpdated"
	// ReasonLeaseUpdateStopped goes with ConditionAvailable False.
	ReasonLeaseUpdateStopped = "ManagedClusterAddOnLeaseUpdateStopped"
	// ReasonLeaseNotFound goes with ConditionAvailable Unknown.
	ReasonLeaseNotFound = "ManagedClusterAddOnLeaseNotFound"
	// ReasonClientCertificateUpdated goes with
	// ConditionClusterCertificateRotated True.
	ReasonClientCertificateUpdated = "ClientCertificateUpdated"
	// ReasonClientCertificateUpdateFailed goes with
	// ConditionClusterCertificateRotated False.
	ReasonClientCertificateUpdateFailed = "ClientCertificateUpdateFailed"
	// ReasonTokenInfrastructureReady goes with ConditionTokenInfrastructureReady
	// True.
	ReasonTokenInfrastructureReady = "TokenInfrastructureReady"
	// ReasonTokenRefreshed goes with ConditionTokenRefreshed True.
	ReasonTokenRefreshed = "AddonTokenRefreshed"
	// ReasonTokenCreationFailed goes with ConditionTokenRefreshed False.
	ReasonTokenCreationFailed = "TokenCreationFailed"
	// ReasonCredentialPending goes with ConditionClusterCertificateRotated and
	// ConditionTokenRefreshed Unknown: there is no credential yet, and the message says
	// what it waits for. The contract has no condition for this state.
	ReasonCredentialPending = "CredentialPending"
)

// Secrets that the agent keeps for an add-on, and their keys besides those of the agent's
// own secret.
const (
	// SecretSuffixHubKubeconfig, after the name of the add-on, ends the name of
	// the secret with the access to the API server of the hub.
	SecretSuffixHubKubeconfig = "-hub-kubeconfig"
	// SecretSuffixClientCert, after the name of the add-on and of the signer, ends
	// the name of the secret with the certificate of another signer.
	SecretSuffixClientCert = "-client-cert"
	// SecretKeyToken is the key of a token.
	SecretKeyToken = "token"
	// ServiceAccountSuffix, after the name of the add-on, ends the name of its
	// ServiceAccount on the hub that the token driver uses.
	ServiceAccountSuffix = "-agent"
	// DNSNameSuffix, after the name of the add-on, ends the DNS name in its
	// certificates.
	DNSNameSuffix = ".addon.open-cluster-management.io"
)

// Marks on the secrets that this project's agent keeps for add-ons. The contract
// does not know them.
const (
	// LabelCredentialAgent holds the namespace of the agent that made the secret;
	// it never changes a secret without it.
	LabelCredentialAgent = "registration.open-cluster-management.io/addon-credential-agent"
	// LabelCredentialRole is CredentialIssued or CredentialPending.
	LabelCredentialRole = "registration.open-cluster-management.io/addon-credential"
	// CredentialIssued is the role of a secret that is in use by an add-on.
	CredentialIssued = "issued"
	// CredentialPending is the role of a secret that holds the private key and the name of
	// an unanswered certificate request.
	CredentialPending = "pending"
	// AnnotationCredentialDigest holds a digest of the registration that the
	// secret was made for.
	AnnotationCredentialDigest = "registration.open-cluster-management.io/addon-credential-digest"
)

// Lifetime of a token of the token driver, in seconds.
const (
	// DefaultTokenSeconds is a year.
	DefaultTokenSeconds = 31536000
	// MinTokenSeconds is the shortest lifetime that API servers issue.
	MinTokenSeconds = 600
)
