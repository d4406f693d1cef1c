// SPDX-License-Identifier: Apache-2.0

// Package v1 holds version v1 of the API group
// cluster.open-cluster-management.io: the ManagedCluster.
//
// It defines the Go type of the kind, its registration in a scheme, and the wire strings of
// the registration area (condition types and reasons, labels, annotations, finalizers,
// identities). It contains no behaviour. The CustomResourceDefinition in config/crd is
// generated from the markers here.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.open-cluster-management.io
package v1
