// SPDX-License-Identifier: Apache-2.0

// Package v1beta2 holds version v1beta2 of the API group
// cluster.open-cluster-management.io: ManagedClusterSet and
// ManagedClusterSetBinding.
//
// It defines the Go types of these kinds, their registration in a scheme and their wire
// strings. It does no I/O and computes no membership.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.open-cluster-management.io
package v1beta2
