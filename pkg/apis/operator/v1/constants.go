// SPDX-License-Identifier: Apache-2.0

package v1

// Namespaces.
const (
	// NamespaceOperator holds the hub in the compact layout, and operators, their
	// locks and the source of the pull secret in every layout.
	NamespaceOperator = "open-cluster-management"
	// NamespaceHub holds certificates and, in the split layout, the components of
	// the hub.
	NamespaceHub = "open-cluster-management-hub"
	// NamespaceAgent is where an agent runs unless its Klusterlet says otherwise.
	NamespaceAgent = "open-cluster-management-agent"
	// NamespaceAgentAddOn is where add-on agents run unless their add-on says otherwise.
	NamespaceAgentAddOn = "open-cluster-management-agent-addon"
)

// AnnotationHeldByRestore marks, on a hub that is restored from a backup, clusters that are not
// accepted yet and placements that are not evaluated yet.
const AnnotationHeldByRestore = "operator.open-cluster-management.io/held-by-restore"

// ConfigMapRestore, in NamespaceOperator, records which backup a hub was restored from.
const ConfigMapRestore = "hub-restore"

// Names of the objects that are installed by default.
const (
	// DefaultClusterManagerName is the name of the usual ClusterManager.
	DefaultClusterManagerName = "cluster-manager"
	// DefaultKlusterletName is the name of the usual Klusterlet.
	DefaultKlusterletName = "klusterlet"
	// ServiceRegistrationWebhook is the Service of the webhook of registration.
	ServiceRegistrationWebhook = "cluster-manager-registration-webhook"
	// ServiceWorkWebhook is the Service of the webhook of work.
	ServiceWorkWebhook = "cluster-manager-work-webhook"
	// ServiceAddOnWebhook is the Service of the webhook of add-ons, which converts
	// their objects.
	ServiceAddOnWebhook = "cluster-manager-addon-webhook"
	// ServicePlacement leads to the debug endpoint of placement.
	ServicePlacement = "cluster-manager-placement"
	// ServiceProxy leads to the API of managed clusters.
	ServiceProxy = "cluster-manager-proxy"
)

// Secrets and ConfigMaps.
const (
	// SecretSigner holds the authority that signs serving certificates.
	SecretSigner = "signer-secret"
	// ConfigMapCABundle holds the certificates that verify serving certificates.
	ConfigMapCABundle = "ca-bundle-configmap"
	// ConfigMapKeyCABundle is the key of the certificates in ConfigMapCABundle.
	ConfigMapKeyCABundle = "ca-bundle.crt"
	// SecretRegistrationWebhookServingCert holds the serving certificate of
	// ServiceRegistrationWebhook.
	SecretRegistrationWebhookServingCert = "registration-webhook-serving-cert"
	// SecretWorkWebhookServingCert holds the serving certificate of
	// ServiceWorkWebhook.
	SecretWorkWebhookServingCert = "work-webhook-serving-cert"
	// SecretAddOnWebhookServingCert holds the serving certificate of
	// ServiceAddOnWebhook.
	SecretAddOnWebhookServingCert = "addon-webhook-serving-cert"
	// SecretGRPCServerServingCert holds the serving certificate of the gRPC
	// server.
	SecretGRPCServerServingCert = "grpc-server-serving-cert"
	// SecretPlacementDebugServingCert holds the serving certificate of the debug
	// endpoint of placement.
	SecretPlacementDebugServingCert = "placement-debug-serving-cert"
	// SecretProxyServingCert holds the serving certificate of ServiceProxy.
	SecretProxyServingCert = "cluster-proxy-serving-cert"
	// SecretBootstrapHubKubeconfig holds the credentials with which the agent asks to join.
	SecretBootstrapHubKubeconfig = "bootstrap-hub-kubeconfig"
	// SecretHubKubeconfig holds the agent's own access to the hub.
	SecretHubKubeconfig = "hub-kubeconfig-secret"
	// SecretExternalManagedKubeconfig holds the kubeconfig of the managed cluster in the
	// hosted modes.
	SecretExternalManagedKubeconfig = "external-managed-kubeconfig"
	// SecretExternalHubKubeconfig holds the kubeconfig of the hub in the namespace that is named as
	// its ClusterManager, in mode Hosted.
	SecretExternalHubKubeconfig = "external-hub-kubeconfig"
	// SecretImagePull holds the credentials of the image registry.
	SecretImagePull = "open-cluster-management-image-pull-credentials"
)

// Labels.
const (
	// LabelCreatedByClusterManager on objects of the hub installation holds the name of its
	// ClusterManager.
	LabelCreatedByClusterManager = "open-cluster-management.io/created-by-clustermanager"
	// LabelCreatedByKlusterlet on objects of the agent installation holds the name of its
	// Klusterlet.
	LabelCreatedByKlusterlet = "open-cluster-management.io/created-by-klusterlet"
	// LabelKlusterletOperator on the namespace of operators says who installed the operator of
	// Klusterlets there for hosted agents, and removes it after the last one. It is specific to this
	// project.
	LabelKlusterletOperator = "open-cluster-management.io/created-by-klusterlet-operator"
	// LabelKlusterlet on the namespace of an agent holds the name of its
	// Klusterlet.
	LabelKlusterlet = "operator.open-cluster-management.io/klusterlet"
	// LabelAddOnNamespace, set to "true", asks for the pull secret in a namespace.
	LabelAddOnNamespace = "addon.open-cluster-management.io/namespace"
	// LabelAggregateToWork, set to "true" on a ClusterRole, adds its rules to the
	// permissions of the work agent.
	LabelAggregateToWork = "open-cluster-management.io/aggregate-to-work"
)

// Annotations.
const (
	// AnnotationVersion on a CustomResourceDefinition holds the version of the
	// program that wrote it last; an older one leaves it alone.
	AnnotationVersion = "operator.open-cluster-management.io/version"
	// AnnotationRemovalPolicy on a CustomResourceDefinition of a hub says what becomes of it when the
	// hub is removed: with RemovalPolicyKeep it stays with its objects.
	AnnotationRemovalPolicy = "operator.open-cluster-management.io/removal-policy"
	RemovalPolicyKeep       = "keep"
	// AnnotationSpecHash on a Deployment holds the hash of its desired spec.
	AnnotationSpecHash = "operator.openshift.io/spec-hash"
	// AnnotationManagedResourcesEvictionTimestamp on a Klusterlet holds when the managed
	// cluster was first found unreachable while the Klusterlet was being deleted.
	AnnotationManagedResourcesEvictionTimestamp = "operator.open-cluster-management.io/managed-resources-eviction-timestamp"
	// AnnotationHostedBy on the ClusterManager that an operator of another cluster keeps on a hub
	// holds name and UID of the one there.
	AnnotationHostedBy = "operator.open-cluster-management.io/hosted-by"
	// AnnotationWorkloadAllowed on a namespace, set to "management", lets its pods
	// run on the reserved processors of OpenShift.
	AnnotationWorkloadAllowed = "workload.openshift.io/allowed"
	// AnnotationWorkloadManagement on a pod asks for those processors.
	AnnotationWorkloadManagement = "target.workload.openshift.io/management"
	// AnnotationRoleARN on a ServiceAccount holds its role in AWS.
	AnnotationRoleARN = "eks.amazonaws.com/role-arn"
)

// Finalizers.
const (
	// FinalizerClusterManager on a ClusterManager keeps it until the hub is
	// removed.
	FinalizerClusterManager = "operator.open-cluster-management.io/cluster-manager-cleanup"
	// FinalizerKlusterlet on a Klusterlet keeps it until the agent is removed.
	FinalizerKlusterlet = "operator.open-cluster-management.io/klusterlet-cleanup"
	// FinalizerKlusterletHosted on a Klusterlet keeps it until its objects on the managed
	// cluster are removed from outside.
	FinalizerKlusterletHosted = "operator.open-cluster-management.io/klusterlet-hosted-cleanup"
)

// Conditions of both kinds.
const (
	// ConditionApplied is True when everything was installed.
	ConditionApplied = "Applied"
	// ReasonCRDApplyFailed goes with Applied False.
	ReasonCRDApplyFailed = "CRDApplyFailed"
	// ConditionValidFeatureGates is False when the spec names a feature gate that
	// does not exist.
	ConditionValidFeatureGates = "ValidFeatureGates"
	// ReasonFeatureGatesAllValid goes with ValidFeatureGates True.
	ReasonFeatureGatesAllValid = "FeatureGatesAllValid"
	// ReasonInvalidFeatureGatesExisting goes with ValidFeatureGates False.
	ReasonInvalidFeatureGatesExisting = "InvalidFeatureGatesExisting"
)

// The condition of a ClusterManager whose gate ClusterProfile is on; without the gate it is
// absent. It is specific to this project.
const (
	// ConditionClusterProfilesKept is True when ClusterProfiles can be kept.
	ConditionClusterProfilesKept = "ClusterProfilesKept"
	// ReasonClusterProfilesServed goes with ClusterProfilesKept True.
	ReasonClusterProfilesServed = "ClusterProfilesServed"
	// ReasonClusterProfilesNotServed goes with ClusterProfilesKept False: the definition is
	// missing, or lacks the version that the hub writes.
	ReasonClusterProfilesNotServed = "ClusterProfilesNotServed"
)

// The condition about fields of the spec of a Klusterlet, and of a ClusterManager that leaves some
// out. It is specific to this project.
const (
	// ConditionSpecSupported is False when a spec asks for something that is not in effect.
	ConditionSpecSupported = "SpecSupported"
	// ReasonAllFieldsSupported goes with SpecSupported True.
	ReasonAllFieldsSupported = "AllFieldsSupported"
	// ReasonNotSupported goes with SpecSupported False: the message names the fields, and why.
	ReasonNotSupported = "NotSupported"
)

// The condition of a ClusterManager whose gate ClusterPermission is on; without the gate it is
// absent. It is specific to this project.
const (
	// ConditionClusterPermissionsKept is True when ClusterPermissions are sent.
	ConditionClusterPermissionsKept = "ClusterPermissionsKept"
	// ReasonClusterPermissionsServed goes with ClusterPermissionsKept True.
	ReasonClusterPermissionsServed = "ClusterPermissionsServed"
	// ReasonClusterPermissionsNotServed goes with ClusterPermissionsKept False: the definition is
	// missing, or lacks the version that the hub reads.
	ReasonClusterPermissionsNotServed = "ClusterPermissionsNotServed"
	// ReasonClusterPermissionsElsewhere goes with ClusterPermissionsKept False: the controller of
	// another distribution serves them.
	ReasonClusterPermissionsElsewhere = "ClusterPermissionsServedElsewhere"
)

// Conditions of a ClusterManager with their reasons.
const (
	// ReasonClusterManagerApplied goes with Applied True.
	ReasonClusterManagerApplied = "ClusterManagerApplied"
	// ReasonHubResourceApplyFailed goes with Applied False.
	ReasonHubResourceApplyFailed = "HubResourceApplyFailed"
	// ReasonServiceAccountSyncFailed goes with Applied False.
	ReasonServiceAccountSyncFailed = "ServiceAccountSyncFailed"
	// ReasonRuntimeResourceApplyFailed goes with Applied False.
	ReasonRuntimeResourceApplyFailed = "RuntimeResourceApplyFailed"
	// ReasonWebhookApplyFailed goes with Applied False.
	ReasonWebhookApplyFailed = "WebhookApplyFailed"

	// ConditionProgressing is True while Deployments are being rolled out.
	ConditionProgressing = "Progressing"
	// ReasonClusterManagerDeploymentRolling goes with Progressing True.
	ReasonClusterManagerDeploymentRolling = "ClusterManagerDeploymentRolling"
	// ReasonClusterManagerUpToDate goes with Progressing False.
	ReasonClusterManagerUpToDate = "ClusterManagerUpToDate"

	// ConditionHubRegistrationDegraded is True when registration does not run.
	ConditionHubRegistrationDegraded = "HubRegistrationDegraded"
	// ReasonGetRegistrationDeploymentFailed goes with HubRegistrationDegraded True.
	ReasonGetRegistrationDeploymentFailed = "GetRegistrationDeploymentFailed"
	// ReasonUnavailableRegistrationPod goes with HubRegistrationDegraded True.
	ReasonUnavailableRegistrationPod = "UnavailableRegistrationPod"
	// ReasonRegistrationFunctional goes with HubRegistrationDegraded False.
	ReasonRegistrationFunctional = "RegistrationFunctional"

	// ConditionHubPlacementDegraded is True when placement does not run.
	ConditionHubPlacementDegraded = "HubPlacementDegraded"
	// ReasonGetPlacementDeploymentFailed goes with HubPlacementDegraded True.
	ReasonGetPlacementDeploymentFailed = "GetPlacementDeploymentFailed"
	// ReasonUnavailablePlacementPod goes with HubPlacementDegraded True.
	ReasonUnavailablePlacementPod = "UnavailablePlacementPod"
	// ReasonPlacementFunctional goes with HubPlacementDegraded False.
	ReasonPlacementFunctional = "PlacementFunctional"

	// ConditionMigrationSucceeded reports the migration of objects to the stored version of
	// their kind.
	ConditionMigrationSucceeded = "MigrationSucceeded"
	// ReasonStorageVersionMigrationFailed goes with MigrationSucceeded False.
	ReasonStorageVersionMigrationFailed = "StorageVersionMigrationFailed"
	// ReasonStorageVersionMigrationProcessing goes with MigrationSucceeded False.
	ReasonStorageVersionMigrationProcessing = "StorageVersionMigrationProcessing"
	// ReasonStorageVersionMigrationSucceed goes with MigrationSucceeded True.
	ReasonStorageVersionMigrationSucceed = "StorageVersionMigrationSucceed"
)

// Conditions of a Klusterlet with their reasons.
const (
	// ReasonKlusterletApplied goes with Applied True.
	ReasonKlusterletApplied = "KlusterletApplied"
	// ReasonKlusterletApplyFailed goes with Applied False.
	ReasonKlusterletApplyFailed = "KlusterletApplyFailed"
	// ReasonManagedClusterResourceApplyFailed goes with Applied False.
	ReasonManagedClusterResourceApplyFailed = "ManagedClusterResourceApplyFailed"
	// ReasonManagementClusterResourceApplyFailed goes with Applied False.
	ReasonManagementClusterResourceApplyFailed = "ManagementClusterResourceApplyFailed"

	// ConditionReadyToApply, in the hosted modes, is True when the credentials for the
	// managed cluster exist.
	ConditionReadyToApply = "ReadyToApply"
	// ReasonKlusterletPrepared goes with ReadyToApply True.
	ReasonKlusterletPrepared = "KlusterletPrepared"
	// ReasonKlusterletPrepareFailed goes with ReadyToApply False.
	ReasonKlusterletPrepareFailed = "KlusterletPrepareFailed"

	// ConditionAvailable is True when every agent Deployment has a running pod.
	ConditionAvailable = "Available"
	// ReasonKlusterletAvailable goes with Available True.
	ReasonKlusterletAvailable = "KlusterletAvailable"
	// ReasonNoAvailablePods goes with Available False.
	ReasonNoAvailablePods = "NoAvailablePods"
	// ReasonGetDeploymentFailed goes with Available False and with the two
	// conditions below True.
	ReasonGetDeploymentFailed = "GetDeploymentFailed"

	// ConditionRegistrationDesiredDegraded is True when the registration agent has fewer
	// pods than desired.
	ConditionRegistrationDesiredDegraded = "RegistrationDesiredDegraded"
	// ConditionWorkDesiredDegraded is True when the work agent has fewer pods than desired.
	ConditionWorkDesiredDegraded = "WorkDesiredDegraded"
	// ReasonUnavailablePods goes with the two conditions above True.
	ReasonUnavailablePods = "UnavailablePods"
	// ReasonDeploymentsFunctional goes with the two conditions above False.
	ReasonDeploymentsFunctional = "DeploymentsFunctional"

	// ConditionHubConnectionDegraded is True when the agent cannot use its access to the
	// hub; its reason is then one bootstrap reason and one hub reason of those below,
	// joined by a comma without a space.
	ConditionHubConnectionDegraded = "HubConnectionDegraded"
	// ReasonHubConnectionFunctional goes with HubConnectionDegraded False.
	ReasonHubConnectionFunctional = "HubConnectionFunctional"
)

// Parts of the reason of HubConnectionDegraded True.
const (
	// ReasonBootstrapSecretMissing is a bootstrap reason: there is no secret.
	ReasonBootstrapSecretMissing = "BootstrapSecretMissing"
	// ReasonBootstrapSecretError is a bootstrap reason: the secret cannot be used.
	ReasonBootstrapSecretError = "BootstrapSecretError"
	// ReasonBootstrapSecretUnauthorized is a bootstrap reason: the hub refuses it.
	ReasonBootstrapSecretUnauthorized = "BootstrapSecretUnauthorized"
	// ReasonBootstrapSecretFunctional is a bootstrap reason: the secret works.
	ReasonBootstrapSecretFunctional = "BootstrapSecretFunctional"
	// ReasonHubKubeConfigSecretMissing is a hub reason: there is no secret.
	ReasonHubKubeConfigSecretMissing = "HubKubeConfigSecretMissing"
	// ReasonHubKubeConfigMissing is a hub reason: the secret has no kubeconfig.
	ReasonHubKubeConfigMissing = "HubKubeConfigMissing"
	// ReasonHubKubeConfigError is a hub reason: the kubeconfig cannot be used.
	ReasonHubKubeConfigError = "HubKubeConfigError"
	// ReasonClusterNameMissing is a hub reason: the secret has no cluster name.
	ReasonClusterNameMissing = "ClusterNameMissing"
	// ReasonHubKubeConfigUnauthorized is a hub reason: the hub refuses it.
	ReasonHubKubeConfigUnauthorized = "HubKubeConfigUnauthorized"
)
