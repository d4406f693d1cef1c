// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds version v1alpha1, the stored one, of the API group
// addon.open-cluster-management.io: ClusterManagementAddOn,
// ManagedClusterAddOn, AddOnDeploymentConfig and AddOnTemplate.
//
// It owns the Go form of these kinds, their registration in a scheme and the
// wire strings of the add-on area. It reads and writes nothing; conversion to
// v1beta1 is in the package conversion beside it.
//
// +kubebuilder:object:generate=true
// +groupName=addon.open-cluster-management.io
package v1alpha1
