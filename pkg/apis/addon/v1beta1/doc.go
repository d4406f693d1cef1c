// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 holds version v1beta1 of the API group
// addon.open-cluster-management.io: ClusterManagementAddOn,
// ManagedClusterAddOn, AddOnDeploymentConfig and AddOnTemplate. The version is
// served, and stored as v1alpha1.
//
// It defines the Go types of these kinds and their registration in a scheme. It does no
// I/O; package conversion converts to v1alpha1.
//
// +kubebuilder:object:generate=true
// +groupName=addon.open-cluster-management.io
package v1beta1
