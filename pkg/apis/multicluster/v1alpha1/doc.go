// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds what this project needs of version v1alpha1 of the API
// group multicluster.x-k8s.io: ClusterProfile.
//
// The API is a third party's. It owns the Go form of the fields that the hub
// writes, their registration in a scheme and their wire strings; fields that are
// not here are left to those who write them. It reads and writes nothing.
//
// +kubebuilder:object:generate=true
// +groupName=multicluster.x-k8s.io
package v1alpha1
