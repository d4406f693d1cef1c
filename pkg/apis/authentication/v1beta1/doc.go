// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 holds version v1beta1 of the API group
// authentication.open-cluster-management.io: ManagedServiceAccount, which is stored in this
// version.
//
// It defines the Go types of the kind, their registration in a scheme and the strings of the
// API. It does no I/O.
//
// +kubebuilder:object:generate=true
// +groupName=authentication.open-cluster-management.io
package v1beta1
