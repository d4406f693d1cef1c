// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 holds version v1beta1 of the API group
// cluster.open-cluster-management.io: Placement and PlacementDecision, which
// are stored in this version, and ManagedClusterSet and
// ManagedClusterSetBinding, which are only served in it so that older
// manifests can still be applied (they are stored as v1beta2).
//
// It defines the Go types of these kinds, their registration in a scheme and their wire
// strings. It does no I/O and selects no cluster.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.open-cluster-management.io
package v1beta1
