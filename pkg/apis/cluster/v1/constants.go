// SPDX-License-Identifier: Apache-2.0

package v1

// Condition types of a ManagedCluster.
const (
	// ConditionHubAccepted is True when the hub accepted the cluster and gave its agent
	// permissions. The hub writes it.
	ConditionHubAccepted = "HubAcceptedManagedCluster"
	// ConditionJoined is True once the agent has reached the hub with its own identity. The
	// agent writes it.
	ConditionJoined = "ManagedClusterJoined"
	// ConditionAvailable is True when the API server of the cluster is healthy,
	// and Unknown when the agent no longer reports.
	ConditionAvailable = "ManagedClusterConditionAvailable"
	// ConditionClockSynced is True when the clocks of hub and agent agree. The hub
	// writes it.
	ConditionClockSynced = "ManagedClusterConditionClockSynced"
	// ConditionClusterCertificateRotated reports how the last renewal of the client
	// certificate went. The agent writes it.
	ConditionClusterCertificateRotated = "ClusterCertificateRotated"
	// ConditionDeleting reports what is left to remove of a cluster that is being deleted.
	ConditionDeleting = "Deleting"
	// ConditionImportSucceeded reports how the import of the cluster went.
	ConditionImportSucceeded = "ManagedClusterImportSucceeded"
	// ConditionNamespaceAvailable on an entry of status.managedNamespaces is True when the
	// namespace exists on the managed cluster.
	ConditionNamespaceAvailable = "NamespaceAvailable"
	// ConditionDuplicateClusterName is True while another agent requests the name of a
	// cluster whose lease is current.
	ConditionDuplicateClusterName = "DuplicateClusterName"
)

// Condition reasons of a ManagedCluster.
const (
	// ReasonHubClusterAdminAccepted goes with ConditionHubAccepted True.
	ReasonHubClusterAdminAccepted = "HubClusterAdminAccepted"
	// ReasonHubClusterAdminDenied goes with ConditionHubAccepted False.
	ReasonHubClusterAdminDenied = "HubClusterAdminDenied"
	// ReasonError goes with ConditionHubAccepted False: a step of accepting failed.
	ReasonError = "Error"
	// ReasonManagedClusterJoined goes with ConditionJoined True.
	ReasonManagedClusterJoined = "ManagedClusterJoined"
	// ReasonManagedClusterAvailable goes with ConditionAvailable True.
	ReasonManagedClusterAvailable = "ManagedClusterAvailable"
	// ReasonManagedClusterKubeAPIServerUnavailable goes with ConditionAvailable
	// False.
	ReasonManagedClusterKubeAPIServerUnavailable = "ManagedClusterKubeAPIServerUnavailable"
	// ReasonManagedClusterLeaseUpdateStopped goes with ConditionAvailable Unknown.
	ReasonManagedClusterLeaseUpdateStopped = "ManagedClusterLeaseUpdateStopped"
	// ReasonManagedClusterClockSynced goes with ConditionClockSynced True.
	ReasonManagedClusterClockSynced = "ManagedClusterClockSynced"
	// ReasonManagedClusterClockOutOfSync goes with ConditionClockSynced False.
	ReasonManagedClusterClockOutOfSync = "ManagedClusterClockOutOfSync"
	// ReasonClientCertificateUpdated goes with
	// ConditionClusterCertificateRotated True.
	ReasonClientCertificateUpdated = "ClientCertificateUpdated"
	// ReasonClientCertificateUpdateFailed goes with
	// ConditionClusterCertificateRotated False.
	ReasonClientCertificateUpdateFailed = "ClientCertificateUpdateFailed"
	// ReasonResourceRemaining goes with ConditionDeleting False.
	ReasonResourceRemaining = "ResourceRemaining"
	// ReasonDeletingError goes with ConditionDeleting False.
	ReasonDeletingError = "DeletingError"
	// ReasonNoResource goes with ConditionDeleting True.
	ReasonNoResource = "NoResource"
	// ReasonImportSucceed goes with ConditionImportSucceeded True.
	ReasonImportSucceed = "ImportSucceed"
	// ReasonKubeConfigGetFailed goes with ConditionImportSucceeded False.
	ReasonKubeConfigGetFailed = "KubeConfigGetFailed"
	// ReasonKubeConfigNotFound goes with ConditionImportSucceeded False.
	ReasonKubeConfigNotFound = "KubeConfigNotFound"
	// ReasonConfigRendererFailed goes with ConditionImportSucceeded False.
	ReasonConfigRendererFailed = "ConfigRendererFailed"
	// ReasonImportFailed goes with ConditionImportSucceeded False.
	ReasonImportFailed = "ImportFailed"
	// ReasonNamespaceApplied goes with ConditionNamespaceAvailable True.
	ReasonNamespaceApplied = "NamespaceApplied"
	// ReasonNamespaceApplyFailed goes with ConditionNamespaceAvailable False.
	ReasonNamespaceApplyFailed = "NamespaceApplyFailed"
	// ReasonDuplicateClusterName goes with ConditionDuplicateClusterName True.
	ReasonDuplicateClusterName = "DuplicateClusterName"
)

// Finalizers.
const (
	// FinalizerAPIResourceCleanup on an accepted ManagedCluster keeps it until its agent's
	// permissions are revoked.
	FinalizerAPIResourceCleanup = "cluster.open-cluster-management.io/api-resource-cleanup"
	// FinalizerResourceCleanup on a ManagedCluster keeps it until the add-ons and
	// works in its namespace are gone.
	FinalizerResourceCleanup = "cluster.open-cluster-management.io/resource-cleanup"
	// FinalizerManifestWorkCleanup on the RoleBinding of the work agent keeps the agent's
	// permissions until no ManifestWork is left.
	FinalizerManifestWorkCleanup = "cluster.open-cluster-management.io/manifest-work-cleanup"
)

// Labels.
const (
	// LabelClusterName holds the name of the cluster, on objects of the hub that
	// belong to one: namespace, lease, RBAC, CertificateSigningRequests.
	LabelClusterName = "open-cluster-management.io/cluster-name"
	// LabelAddOnName holds the name of the add-on, on objects that belong to one.
	LabelAddOnName = "open-cluster-management.io/addon-name"
	// LabelClusterSet on a ManagedCluster holds the name of its exclusive set.
	LabelClusterSet = "cluster.open-cluster-management.io/clusterset"
	// LabelPrefixFeatureAddOn, followed by the name of an add-on, is a label of a
	// ManagedCluster with the state of that add-on.
	LabelPrefixFeatureAddOn = "feature.open-cluster-management.io/addon-"
	// LabelPrefixManagedNamespace, followed by the hash of the hub, marks the namespaces on
	// a managed cluster that a set of that hub asked for: "true" while a set asks for them,
	// "false" afterwards.
	LabelPrefixManagedNamespace = "clusterset.open-cluster-management.io/"
)

// Values of labels with LabelPrefixFeatureAddOn.
const (
	// FeatureAvailable is the state of an add-on that works.
	FeatureAvailable = "available"
	// FeatureUnhealthy is the state of an add-on that reports that it does not work.
	FeatureUnhealthy = "unhealthy"
	// FeatureUnreachable is the state of an add-on that no longer reports.
	FeatureUnreachable = "unreachable"
)

// Annotations.
const (
	// AnnotationPrefixAgent begins the annotations that an agent may set when it
	// creates its ManagedCluster.
	AnnotationPrefixAgent = "agent.open-cluster-management.io"
	// AnnotationAgentVersion on the Lease of a cluster is the version of its agent, written
	// with each renewal. Other agents leave it out.
	AnnotationAgentVersion = AnnotationPrefixAgent + "/version"
	// AnnotationAutomaticallyAcceptedOn holds when the hub accepted the cluster
	// automatically, in RFC 3339 format.
	AnnotationAutomaticallyAcceptedOn = "open-cluster-management.io/automatically-accepted-on"
	// AnnotationSkipClockSyncCheck, set to "true", makes the hub skip the check of the
	// cluster's clock.
	AnnotationSkipClockSyncCheck = "registration.open-cluster-management.io/skip-clock-sync-check"
	// AnnotationImageRegistries holds the registries that images of add-ons on the cluster
	// come from.
	AnnotationImageRegistries = "open-cluster-management.io/image-registries"
	// AnnotationCleanupPriority on an add-on or ManifestWork, 0 to 100, orders
	// their removal with the cluster; higher ones go later.
	AnnotationCleanupPriority = "open-cluster-management.io/cleanup-priority"
	// AnnotationCSRUser on a CertificateSigningRequest names the requester if the request
	// was created by another user.
	AnnotationCSRUser = "open-cluster-management.io/csr-user"
	// AnnotationCAPICluster on a ManagedCluster names its Cluster API object as
	// namespace/name.
	AnnotationCAPICluster = "cluster.x-k8s.io/cluster"
)

// SecretSuffixCAPI ends the name of the Secret with the kubeconfig of a Cluster API object, after
// the object's name.
const SecretSuffixCAPI = "-kubeconfig"

// Keys of the taints that the hub sets.
const (
	// TaintUnavailable marks a cluster whose API server is not healthy.
	TaintUnavailable = "cluster.open-cluster-management.io/unavailable"
	// TaintUnreachable marks a cluster that no longer reports.
	TaintUnreachable = "cluster.open-cluster-management.io/unreachable"
)

// The lease with which a cluster shows that it is alive.
const (
	// LeaseName is the name of the Lease in the namespace of the cluster, and its
	// holder identity.
	LeaseName = "managed-cluster-lease"
	// DefaultLeaseDurationSeconds applies if the ManagedCluster says 0.
	DefaultLeaseDurationSeconds = 60
	// LeaseGraceFactor is how many lease durations may pass without renewal.
	LeaseGraceFactor = 5
)

// Identities of agents.
const (
	// UserPrefix begins the user name and the groups of an agent: the user is
	// UserPrefix + cluster + ":" + agent, its own group UserPrefix + cluster.
	UserPrefix = "system:open-cluster-management:"
	// GroupManagedClusters is the group of the agents of all clusters.
	GroupManagedClusters = "system:open-cluster-management:managed-clusters"
	// GroupPrefixEKS, followed by the name of a cluster, is the group of an agent that
	// joined through an EKS access entry.
	GroupPrefixEKS = "open-cluster-management:"
	// GroupBootstrap is the group of users who may ask to join.
	GroupBootstrap = "system:bootstrappers:managedcluster"
	// BootstrapServiceAccount is the account whose tokens allow a cluster to ask to join.
	BootstrapServiceAccount = "agent-registration-bootstrap"
	// SignerName is the signer of the client certificates of agents.
	SignerName = "kubernetes.io/kube-apiserver-client"
	// ReasonAutoApproved is the reason of an automatic approval by the hub.
	ReasonAutoApproved = "AutoApprovedByHubCSRApprovingController"
)

// The virtual resources that express permissions on clusters.
const (
	// RegisterGroup is the API group of the virtual resources below.
	RegisterGroup = "register.open-cluster-management.io"
	// SubresourceAccept of managedclusters, verb update: may accept a cluster.
	SubresourceAccept = "accept"
	// SubresourceClientCertificates of managedclusters, verb renew: may renew a
	// client certificate.
	SubresourceClientCertificates = "clientcertificates"
	// SubresourceJoin of managedclustersets, verb create: may put clusters into a
	// set.
	SubresourceJoin = "join"
	// SubresourceBind of managedclustersets, verb create: may bind a set.
	SubresourceBind = "bind"
)

// Names of the RBAC objects of agents on the hub.
const (
	// RoleBootstrap is the ClusterRole of users who may ask to join.
	RoleBootstrap = "open-cluster-management:bootstrap"
	// RolePrefixManagedCluster, followed by the name of a cluster, is the
	// ClusterRole of its agent and the ClusterRoleBinding to it.
	RolePrefixManagedCluster = "open-cluster-management:managedcluster:"
	// RoleRegistration is the ClusterRole of all agents for registration.
	RoleRegistration = "open-cluster-management:managedcluster:registration"
	// RoleWork is the ClusterRole of all agents for work.
	RoleWork = "open-cluster-management:managedcluster:work"
	// RoleBindingSuffixRegistration ends the name of the RoleBinding to
	// RoleRegistration: RolePrefixManagedCluster + cluster + this.
	RoleBindingSuffixRegistration = ":registration"
	// RoleBindingSuffixWork ends the name of the RoleBinding to RoleWork.
	RoleBindingSuffixWork = ":work"
)

// Secrets of the agent and their keys.
const (
	// SecretBootstrapHubKubeconfig holds the credentials with which the agent asks to join.
	SecretBootstrapHubKubeconfig = "bootstrap-hub-kubeconfig"
	// SecretHubKubeconfig holds the agent's own access to the hub.
	SecretHubKubeconfig = "hub-kubeconfig-secret"
	// SecretHubKubeconfigPending holds the private key and the name of an unanswered
	// certificate request.
	SecretHubKubeconfigPending = "hub-kubeconfig-pending"
	// SecretKeyKubeconfig is the key of the kubeconfig in both secrets.
	SecretKeyKubeconfig = "kubeconfig"
	// SecretKeyClusterName is the key of the cluster name in SecretHubKubeconfig.
	SecretKeyClusterName = "cluster-name"
	// SecretKeyAgentName is the key of the agent name in SecretHubKubeconfig.
	SecretKeyAgentName = "agent-name"
	// SecretKeyTLSCert is the key of the client certificate.
	SecretKeyTLSCert = "tls.crt"
	// SecretKeyTLSKey is the key of the private key.
	SecretKeyTLSKey = "tls.key"
)
