// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ReservedNoDefault is the name of a default configuration in version v1beta1 that
// means: this kind of configuration is read, and there is no default.
const ReservedNoDefault = "__reserved_no_default__"

// KubeAPIServerSigner is the signer of a registration that gives access to the API
// server of the hub.
const KubeAPIServerSigner = "kubernetes.io/kube-apiserver-client"

// DefaultInstallNamespace is where an add-on runs unless something else is said.
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
	// AnnotationPreDelete on a Job or Pod makes it run before the add-on goes.
	AnnotationPreDelete = "addon.open-cluster-management.io/addon-pre-delete"
	// AnnotationDeletionOrphan on a manifest leaves it when the add-on goes.
	AnnotationDeletionOrphan = "addon.open-cluster-management.io/deletion-orphan"
	// AnnotationValues on a ManagedClusterAddOn holds values as JSON.
	AnnotationValues = "addon.open-cluster-management.io/values"
	// AnnotationInstallNamespace on a ManagedClusterAddOn of version v1beta1 holds
	// spec.installNamespace of version v1alpha1.
	AnnotationInstallNamespace = "addon.open-cluster-management.io/v1alpha1-install-namespace"
	// AnnotationConfigSpecHash on a ManifestWork holds the hashes of the
	// configurations that it was made with.
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
	// LabelAddOnName holds the name of the add-on, on what belongs to it.
	LabelAddOnName = "open-cluster-management.io/addon-name"
	// LabelAddOnNamespace on a ManifestWork on a hosting cluster holds the
	// namespace of the ManagedClusterAddOn.
	LabelAddOnNamespace = "open-cluster-management.io/addon-namespace"
	// LabelAddOnTemplateName marks the RoleBindings made for a template.
	LabelAddOnTemplateName = "open-cluster-management.io/addon-template-name"
	// LabelTokenInfrastructure marks what the token driver made on the hub.
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
	// ConditionRegistrationApplied tells whether the agent got its rights.
	ConditionRegistrationApplied = "RegistrationApplied"
	// ConditionConfigured tells whether the wanted configurations are known.
	ConditionConfigured = "Configured"
	// ConditionManifestApplied tells whether the manifests are applied.
	ConditionManifestApplied = "ManifestApplied"
	// ConditionHostingManifestApplied tells the same of the hosting cluster.
	ConditionHostingManifestApplied = "HostingManifestApplied"
	// ConditionHookManifestCompleted tells whether the hook has run.
	ConditionHookManifestCompleted = "HookManifestCompleted"
	// ConditionHostingClusterValidity tells whether the hosting cluster exists.
	ConditionHostingClusterValidity = "HostingClusterValidity"
	// ConditionAvailable tells whether the add-on works.
	ConditionAvailable = "Available"
	// ConditionProgressing tells whether a configuration is being rolled out.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is free for add-ons.
	ConditionDegraded = "Degraded"
	// ConditionClusterCertificateRotated tells how the last renewal of the
	// certificate went.
	ConditionClusterCertificateRotated = "ClusterCertificateRotated"
	// ConditionTokenInfrastructureReady tells whether the ServiceAccount of the
	// token driver exists.
	ConditionTokenInfrastructureReady = "TokenInfrastructureReady"
	// ConditionTokenRefreshed tells how the last renewal of the token went.
	ConditionTokenRefreshed = "TokenRefreshed"
)
