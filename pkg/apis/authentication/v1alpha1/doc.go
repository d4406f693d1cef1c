// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds version v1alpha1 of the API group
// authentication.open-cluster-management.io: ManagedServiceAccount. The version is served, has
// the same fields as v1beta1 and is stored as that.
//
// It defines the Go types of the kind and their registration in a scheme. It does no I/O.
//
// +kubebuilder:object:generate=true
// +groupName=authentication.open-cluster-management.io
package v1alpha1
