// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds version v1alpha1 of the API group
// work.open-cluster-management.io: ManifestWorkReplicaSet.
//
// It defines the Go type of the kind, its registration in a scheme and its wire strings. It
// does no I/O.
//
// +kubebuilder:object:generate=true
// +groupName=work.open-cluster-management.io
package v1alpha1
