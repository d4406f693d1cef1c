// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds what this project needs of version v1alpha1 of the API
// group multicluster.x-k8s.io: ClusterProfile.
//
// The API is a third party's. This package has the Go types of the fields that the hub
// writes, their registration in a scheme and their wire strings; other fields are left to
// their writers. It does no I/O.
//
// +kubebuilder:object:generate=true
// +groupName=multicluster.x-k8s.io
package v1alpha1
