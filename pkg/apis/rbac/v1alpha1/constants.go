// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ResourceClusterPermissions is the plural name of the kind.
const ResourceClusterPermissions = "clusterpermissions"

// VerbEscalate is the verb on clusterpermissions that a user needs to give rights that reach
// beyond what the ClusterPermission names: by wildcards, by verbs that lead to further rights,
// and by references to roles of administrators.
const VerbEscalate = "escalate"

// LabelClusterPermission marks the ManifestWork of a ClusterPermission; its value is the UID
// of that object.
const LabelClusterPermission = "rbac.open-cluster-management.io/clusterpermission"

// A subject of this group and kind is the login of a program on the hub; on the managed
// cluster it becomes the ServiceAccount of the same name.
const (
	// GroupManagedServiceAccount is the API group of ManagedServiceAccounts.
	GroupManagedServiceAccount = "authentication.open-cluster-management.io"
	// VersionManagedServiceAccount is the version in which they are stored.
	VersionManagedServiceAccount = "v1beta1"
	// ResourceManagedServiceAccounts is their plural name.
	ResourceManagedServiceAccounts = "managedserviceaccounts"
	// KindManagedServiceAccount is their kind.
	KindManagedServiceAccount = "ManagedServiceAccount"
	// AddOnManagedServiceAccount is the add-on whose namespace on the managed cluster holds
	// the ServiceAccounts.
	AddOnManagedServiceAccount = "managed-serviceaccount"
)

// Condition types of a ClusterPermission.
const (
	// ConditionValidation is True when the spec has bindings and the namespace is that of a
	// cluster.
	ConditionValidation = "Validation"
	// ConditionApplied has the status and the reason of the condition Applied of the
	// ManifestWork, once that is about what the spec now says.
	ConditionApplied = "AppliedRBACManifestWork"
	// ConditionValidateRolesExist and ConditionValidateClusterRolesExist say, with
	// spec.validate, whether the roles that bindings refer to exist on the managed cluster.
	ConditionValidateRolesExist        = "ValidateRolesExist"
	ConditionValidateClusterRolesExist = "ValidateClusterRolesExist"
	// ConditionResourceApplied is the condition of an entry of status.resourceStatus.
	ConditionResourceApplied = "Applied"
)

// Reasons of the conditions.
const (
	// ReasonValidated goes with Validation True.
	ReasonValidated = "Validated"
	// ReasonNoBindings goes with Validation False.
	ReasonNoBindings = "FailedValidationNoBindingsDefined"
	// ReasonNoCluster goes with Validation False: no ManagedCluster has the name of the
	// namespace, or it is being deleted.
	ReasonNoCluster = "FailedValidationNotInManagedClusterNamespace"
	// ReasonBuildFailed goes with AppliedRBACManifestWork False: the message names the field
	// of the spec, or what is missing.
	ReasonBuildFailed = "FailedBuildManifestWork"
	// ReasonApplyPending goes with AppliedRBACManifestWork False until the agent has reported
	// about the current ManifestWork.
	ReasonApplyPending = "ApplyRBACManifestWorkNotComplete"
	// ReasonAllRolesFound and ReasonRolesNotFound go with ValidateRolesExist.
	ReasonAllRolesFound = "AllRolesFound"
	ReasonRolesNotFound = "RolesNotFound"
	// ReasonAllClusterRolesFound and ReasonClusterRolesNotFound go with
	// ValidateClusterRolesExist.
	ReasonAllClusterRolesFound = "AllClusterRolesFound"
	ReasonClusterRolesNotFound = "ClusterRolesNotFound"
	// ReasonManifestApplied, ReasonManifestFailed and ReasonManifestUnknown go with Applied of
	// a single object: True, False, and False because nothing is reported about it.
	ReasonManifestApplied = "AppliedManifestComplete"
	ReasonManifestFailed  = "FailedApplyManifest"
	ReasonManifestUnknown = "FailedGetManifestCondition"
)
