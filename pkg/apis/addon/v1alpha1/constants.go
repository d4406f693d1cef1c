// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ReservedNoDefault is the name of a default configuration in version v1beta1 which means
// that the add-on reads this kind of configuration but has no default.
const ReservedNoDefault = "__reserved_no_default__"

// KubeAPIServerSigner is the signer of a registration that gives access to the API
// server of the hub.
const KubeAPIServerSigner = "kubernetes.io/kube-apiserver-client"

// DefaultInstallNamespace is where an add-on runs by default.
const DefaultInstallNamespace = "open-cluster-management-agent-addon"

// Annotations.
const (
	// AnnotationPrefix begins the annotations of a ManagedCluster that are copied
	// to its add-ons.
	AnnotationPrefix = "addon.open-cluster-management.io"
	// AnnotationLifecycle on a ClusterManagementAddOn says who installs it.
	AnnotationLifecycle = "addon.open-cluster-management.io/lifecycle"
	// AnnotationHostingClusterName on a ManagedClusterAddOn names the cluster that
	// its agent runs on instead.
	AnnotationHostingClusterName = "addon.open-cluster-management.io/hosting-cluster-name"
	// AnnotationHostedManifestLocation on a manifest says on which cluster it is
	// applied in hosted mode.
	AnnotationHostedManifestLocation = "addon.open-cluster-management.io/hosted-manifest-location"
	// AnnotationPreDelete on a Job or Pod makes it run before the add-on is removed.
	AnnotationPreDelete = "addon.open-cluster-management.io/addon-pre-delete"
	// AnnotationDeletionOrphan on a manifest leaves the object in place when the add-on is
	// removed.
	AnnotationDeletionOrphan = "addon.open-cluster-management.io/deletion-orphan"
	// AnnotationValues on a ManagedClusterAddOn holds values as JSON.
	AnnotationValues = "addon.open-cluster-management.io/values"
	// AnnotationInstallNamespace on a ManagedClusterAddOn of version v1beta1 holds
	// spec.installNamespace of version v1alpha1.
	AnnotationInstallNamespace = "addon.open-cluster-management.io/v1alpha1-install-namespace"
	// AnnotationConfigSpecHash on a ManifestWork holds the hashes of the configurations
	// that it was rendered with.
	AnnotationConfigSpecHash = "open-cluster-management.io/config-spec-hash"
)

// Values of AnnotationLifecycle.
const (
	// LifecycleAddOnManager leaves the installation to the add-on manager.
	LifecycleAddOnManager = "addon-manager"
	// LifecycleSelf leaves the installation to the add-on itself.
	LifecycleSelf = "self"
)

// Labels.
const (
	// LabelAddOnName holds the name of the add-on, on objects that belong to it.
	LabelAddOnName = "open-cluster-management.io/addon-name"
	// LabelAddOnNamespace on a ManifestWork on a hosting cluster holds the
	// namespace of the ManagedClusterAddOn.
	LabelAddOnNamespace = "open-cluster-management.io/addon-namespace"
	// LabelAddOnTemplateName marks the RoleBindings created for a template.
	LabelAddOnTemplateName = "open-cluster-management.io/addon-template-name"
	// LabelTokenInfrastructure marks what the token driver created on the hub.
	LabelTokenInfrastructure = "addon.open-cluster-management.io/token-infrastructure"
)

// Finalizers of a ManagedClusterAddOn.
const (
	// FinalizerPreDelete keeps it until its hook has run.
	FinalizerPreDelete = "addon.open-cluster-management.io/addon-pre-delete"
	// FinalizerHostingPreDelete keeps it until its hook on the hosting cluster has
	// run.
	FinalizerHostingPreDelete = "addon.open-cluster-management.io/hosting-addon-pre-delete"
	// FinalizerHostingManifests keeps it until its manifests on the hosting
	// cluster are gone.
	FinalizerHostingManifests = "addon.open-cluster-management.io/hosting-manifests-cleanup"
)

// Condition types of a ManagedClusterAddOn, and of the progressions of a
// ClusterManagementAddOn.
const (
	// ConditionRegistrationApplied reports whether the agent has its permissions.
	ConditionRegistrationApplied = "RegistrationApplied"
	// ConditionConfigured reports whether the desired configurations are known.
	ConditionConfigured = "Configured"
	// ConditionManifestApplied reports whether the manifests are applied.
	ConditionManifestApplied = "ManifestApplied"
	// ConditionHostingManifestApplied reports the same for the hosting cluster.
	ConditionHostingManifestApplied = "HostingManifestApplied"
	// ConditionHookManifestCompleted reports whether the hook has run.
	ConditionHookManifestCompleted = "HookManifestCompleted"
	// ConditionHostingClusterValidity reports whether the hosting cluster exists.
	ConditionHostingClusterValidity = "HostingClusterValidity"
	// ConditionAvailable reports whether the add-on works.
	ConditionAvailable = "Available"
	// ConditionProgressing reports whether a configuration is being rolled out.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is for add-ons to use.
	ConditionDegraded = "Degraded"
	// ConditionClusterCertificateRotated reports how the last renewal of the certificate
	// went.
	ConditionClusterCertificateRotated = "ClusterCertificateRotated"
	// ConditionTokenInfrastructureReady reports whether the ServiceAccount of the token
	// driver exists.
	ConditionTokenInfrastructureReady = "TokenInfrastructureReady"
	// ConditionTokenRefreshed reports how the last renewal of the token went.
	ConditionTokenRefreshed = "TokenRefreshed"
)
