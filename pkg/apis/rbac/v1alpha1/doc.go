// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds version v1alpha1 of the API group
// rbac.open-cluster-management.io: ClusterPermission, which gives subjects rights on a
// managed cluster.
//
// It has the Go types with their kubebuilder markers, their registration in a scheme and
// their wire strings. It does no I/O.
//
// +kubebuilder:object:generate=true
// +groupName=rbac.open-cluster-management.io
package v1alpha1
