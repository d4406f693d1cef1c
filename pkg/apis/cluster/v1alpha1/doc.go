// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds version v1alpha1 of the API group
// cluster.open-cluster-management.io: ClusterClaim (on the managed cluster) and
// AddOnPlacementScore (on the hub), and the rollout strategy that
// ManifestWorkReplicaSet and ClusterManagementAddOn share.
//
// It defines the Go types of these kinds and their registration in a scheme. It does no I/O
// and does not compute a rollout.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.open-cluster-management.io
package v1alpha1
