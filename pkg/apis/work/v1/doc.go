// SPDX-License-Identifier: Apache-2.0

// Package v1 holds version v1 of the API group
// work.open-cluster-management.io: ManifestWork (on the hub) and
// AppliedManifestWork (on the managed cluster).
//
// It defines the Go types of these kinds, their registration in a scheme and the wire
// strings of the work area. It does no I/O and applies no manifest.
//
// +kubebuilder:object:generate=true
// +groupName=work.open-cluster-management.io
package v1
