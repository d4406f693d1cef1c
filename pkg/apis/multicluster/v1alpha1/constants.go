// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ManagerName is the value of spec.clusterManager.name and of
// LabelClusterManager on the profiles of this hub.
const ManagerName = "open-cluster-management"

// AccessProviderName is the name of the entry of status.accessProviders that this hub maintains.
const AccessProviderName = ManagerName

// ExtensionExec is the extension of an entry of status.accessProviders that credential plugins
// get. Ours holds clusterName.
const ExtensionExec = "client.authentication.k8s.io/exec"

// Labels of a ClusterProfile.
const (
	// LabelClusterManager holds the name of the manager that maintains the profile.
	LabelClusterManager = "x-k8s.io/cluster-manager"
	// LabelClusterSet holds the exclusive set of the cluster.
	LabelClusterSet = "multicluster.x-k8s.io/clusterset"
)

// Condition types of a ClusterProfile.
const (
	// ConditionControlPlaneHealthy is the ManagedCluster's condition Available.
	ConditionControlPlaneHealthy = "ControlPlaneHealthy"
	// ConditionJoined is the ManagedCluster's condition ManagedClusterJoined.
	ConditionJoined = "Joined"
)
