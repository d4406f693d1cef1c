// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Reasons of the conditions that the controller of an add-on writes.
const (
	// ReasonNilRegistration goes with ConditionRegistrationApplied True: the add-on
	// asks for no access to the hub.
	ReasonNilRegistration = "NilRegistration"
	// ReasonSetPermissionApplied goes with ConditionRegistrationApplied True.
	ReasonSetPermissionApplied = "SetPermissionApplied"
	// ReasonSetPermissionFailed goes with ConditionRegistrationApplied False.
	ReasonSetPermissionFailed = "SetPermissionFailed"
	// ReasonPermissionConfigPending goes with ConditionRegistrationApplied False: the
	// subject of the permissions is not known yet.
	ReasonPermissionConfigPending = "PermissionConfigPending"
	// ReasonManifestWorkApplyFailed goes with ConditionManifestApplied False.
	ReasonManifestWorkApplyFailed = "ManifestWorkApplyFailed"
	// ReasonManifestApplied goes with ConditionManifestApplied True.
	ReasonManifestApplied = "AddonManifestApplied"
	// ReasonManifestAppliedFailed goes with ConditionManifestApplied False: the
	// agent of the cluster could not apply them.
	ReasonManifestAppliedFailed = "AddonManifestAppliedFailed"
	// ReasonHookNotCompleted goes with ConditionHookManifestCompleted False.
	ReasonHookNotCompleted = "HookManifestIsNotCompleted"
	// ReasonHookCompleted goes with ConditionHookManifestCompleted True.
	ReasonHookCompleted = "HookManifestIsCompleted"
	// ReasonHostingClusterValid goes with ConditionHostingClusterValidity True.
	ReasonHostingClusterValid = "HostingClusterValid"
	// ReasonHostingClusterInvalid goes with ConditionHostingClusterValidity False.
	ReasonHostingClusterInvalid = "HostingClusterInvalid"
	// ReasonWorkNotFound goes with ConditionAvailable Unknown.
	ReasonWorkNotFound = "WorkNotFound"
	// ReasonWorkNotApplied goes with ConditionAvailable Unknown or False.
	ReasonWorkNotApplied = "WorkNotApplied"
	// ReasonWorkApplied goes with ConditionAvailable True.
	ReasonWorkApplied = "WorkApplied"
	// ReasonNoProbeResult goes with ConditionAvailable Unknown.
	ReasonNoProbeResult = "NoProbeResult"
	// ReasonProbeUnavailable goes with ConditionAvailable False.
	ReasonProbeUnavailable = "ProbeUnavailable"
	// ReasonProbeAvailable goes with ConditionAvailable True.
	ReasonProbeAvailable = "ProbeAvailable"
	// ReasonTokenInfrastructureApplyFailed goes with
	// ConditionTokenInfrastructureReady False.
	ReasonTokenInfrastructureApplyFailed = "TokenInfrastructureApplyFailed"
)

// Messages of these conditions, as peers expect them; formatting verbs are filled in.
const (
	MessageRegistrationConfigured = "Registration of the addon agent is configured"
	MessageSetPermissionFailed    = "Failed to set permission for hub agent:"
	MessageManifestsApplied       = "manifests of addon are applied successfully"
	MessageNoManifest             = "no manifest need to apply"
	MessageManifestsAppliedFailed = "failed to apply the manifests of addon"
	MessageWorkNotFound           = "Addon manifestWork is not found"
	MessageWorkNotApplied         = "Addon manifestWork is not applied yet"
	MessageWorkApplied            = "Addon manifestWork is applied"
	MessageNoProbeResult          = "Probe results are not returned"
	MessageProbeUnavailable       = "Probe addon unavailable with err %v"
	MessageProbeAvailable         = "%s add-on is available."
	MessageTokenInfrastructure    = "ServiceAccount %s/%s-agent (UID: %s) is ready"
)

// Parts of the names of the ManifestWorks of an add-on.
const (
	// WorkSuffixDeploy follows WorkNamePrefix and the name of the add-on.
	WorkSuffixDeploy = "-deploy"
	// WorkSuffixHosting, before the namespace of the ManagedClusterAddOn, follows
	// WorkSuffixDeploy or WorkSuffixPreDelete in the namespace of a hosting cluster.
	WorkSuffixHosting = "-hosting-"
)

// Values of AnnotationHostedManifestLocation.
const (
	// HostedManifestLocationManaged is the managed cluster, the default.
	HostedManifestLocationManaged = "managed"
	// HostedManifestLocationHosting is the cluster that the agent runs on.
	HostedManifestLocationHosting = "hosting"
	// HostedManifestLocationNone applies the manifest on neither cluster.
	HostedManifestLocationNone = "none"
)

// Finalizers of earlier versions, which are removed wherever they are found.
const (
	DeprecatedFinalizerPreDelete        = "cluster.open-cluster-management.io/addon-pre-delete"
	DeprecatedFinalizerHostingPreDelete = "cluster.open-cluster-management.io/hosting-addon-pre-delete"
	DeprecatedFinalizerHostingManifests = "cluster.open-cluster-management.io/hosting-manifests-cleanup"
)

// AnnotationHookDeadline on a ManagedClusterAddOn says how long its deletion waits for
// hooks and for what is on the hosting cluster, as a duration such as 10m; 0s gives up at
// once. It is not part of the contract, where the deletion waits forever.
const AnnotationHookDeadline = "hook-deadline.open-cluster-management.io/addon"

// LabelTokenAddOn holds the name of the add-on on what the token driver created on the hub.
const LabelTokenAddOn = "addon.open-cluster-management.io/name"
