// SPDX-License-Identifier: Apache-2.0

package v1beta1

// AddOnName is the name of the add-on whose agent serves ManagedServiceAccounts on a cluster.
const AddOnName = "managed-serviceaccount"

// AgentRole is the name of the Role, and of its RoleBinding, that the hub writes for that agent
// in the namespace of its cluster.
const AgentRole = "managed-serviceaccount-addon-agent"

// LabelManaged is on every ServiceAccount and Secret that the agent created, with the value
// "true".
const LabelManaged = "authentication.open-cluster-management.io/is-managed-serviceaccount"

// Labels about the copies of tokens beside ClusterProfiles.
const (
	// LabelSyncToClusterProfile on a ManagedServiceAccount, with the value "true", has the hub
	// copy its token to every namespace with a ClusterProfile of the cluster.
	LabelSyncToClusterProfile = "authentication.open-cluster-management.io/sync-to-clusterprofile"
	// LabelSyncedFrom is on such a copy, with its name as the value.
	LabelSyncedFrom = "authentication.open-cluster-management.io/synced-from"
)

// CopyName returns the name of the copies of a ManagedServiceAccount's token. Two accounts of
// two clusters may have the same one: the ClusterProfile that owns a copy tells whose it is.
func CopyName(cluster, account string) string { return cluster + "-" + account }

// Annotations of a ServiceAccount on a managed cluster.
const (
	// AnnotationTokensAllowed with the value "true" lets the hub have tokens of an account that
	// the agent did not create. Such an account is never deleted.
	AnnotationTokensAllowed = "authentication.open-cluster-management.io/tokens-allowed"
	// AnnotationHub identifies the hub for which the agent created the account: a digest of the
	// address of its API server.
	AnnotationHub = "authentication.open-cluster-management.io/hub"
)

// Keys of the Secret with a token.
const (
	// SecretKeyToken holds the token.
	SecretKeyToken = "token"
	// SecretKeyCA holds the PEM certificates that verify the API server of the cluster.
	SecretKeyCA = "ca.crt"
)

// Condition types and reasons of a ManagedServiceAccount.
const (
	// ConditionSecretCreated is True when the Secret with the token exists.
	ConditionSecretCreated = "SecretCreated"
	ReasonSecretCreated    = "SecretCreated"
	// ReasonSecretNameTaken goes with SecretCreated False: another Secret has the name.
	ReasonSecretNameTaken = "SecretNameTaken"

	// ConditionTokenReported is True when the Secret holds a token that the cluster accepts.
	ConditionTokenReported = "TokenReported"
	ReasonTokenReported    = "TokenReported"
	// ReasonTokenReportFailed goes with TokenReported False; the message says why.
	ReasonTokenReportFailed = "TokenReportFailed"
	// ReasonTokenExpired goes with TokenReported False: the token has ended, and the agent of
	// the cluster has not renewed it.
	ReasonTokenExpired = "TokenExpired"

	// ConditionServed is set by the hub, and only to False: why no agent serves the
	// ManagedServiceAccount, or a part of it is not honoured.
	ConditionServed = "Served"
	// ReasonNoManagedCluster goes with Served False: the namespace is not that of a cluster.
	ReasonNoManagedCluster = "NoManagedCluster"
	// ReasonAddOnMissing goes with Served False: the cluster does not have the add-on, so that
	// the token is not renewed.
	ReasonAddOnMissing = "AddOnMissing"
	// ReasonRightsMissing goes with Served False: the hub could not give the agent its rights.
	ReasonRightsMissing = "RightsMissing"
	// ReasonLifetimeNotEnabled goes with Served False: the gate that honours
	// spec.ttlSecondsAfterCreation is off.
	ReasonLifetimeNotEnabled = "LifetimeNotEnabled"
)
