// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ManagerName is the value of spec.clusterManager.name and of
// LabelClusterManager on the profiles of this hub.
const ManagerName = "open-cluster-management"

// Labels of a ClusterProfile.
const (
	// LabelClusterManager holds the name of who keeps the profile.
	LabelClusterManager = "x-k8s.io/cluster-manager"
	// LabelClusterSet holds the exclusive set of the cluster.
	LabelClusterSet = "multicluster.x-k8s.io/clusterset"
)

// Condition types of a ClusterProfile.
const (
	// ConditionControlPlaneHealthy is what the ManagedCluster says as Available.
	ConditionControlPlaneHealthy = "ControlPlaneHealthy"
	// ConditionJoined is what the ManagedCluster says as ManagedClusterJoined.
	ConditionJoined = "Joined"
)
