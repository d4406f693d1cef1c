// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds version v1alpha1, the stored one, of the API group
// addon.open-cluster-management.io: ClusterManagementAddOn,
// ManagedClusterAddOn, AddOnDeploymentConfig and AddOnTemplate.
//
// It defines the Go types of these kinds, their registration in a scheme and the wire
// strings of the add-on area. It does no I/O; package conversion converts to v1beta1.
//
// +kubebuilder:object:generate=true
// +groupName=addon.open-cluster-management.io
package v1alpha1
