// SPDX-License-Identifier: Apache-2.0

// Package v1 holds version v1 of the API group
// operator.open-cluster-management.io: ClusterManager (installs the hub side)
// and Klusterlet (installs the agent side).
//
// It defines the Go types of these kinds, their registration in a scheme, and the names,
// labels and conditions of installation. It does no I/O.
//
// +kubebuilder:object:generate=true
// +groupName=operator.open-cluster-management.io
package v1
