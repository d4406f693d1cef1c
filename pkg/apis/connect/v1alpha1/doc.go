// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the strings of the API group connect.open-cluster-management.io, which
// the hub serves itself, behind its API server, while the gate ClusterProxy is on. It has no
// stored kinds: managedclusters/proxy leads to the API of a managed cluster,
// managedserviceaccounts/proxy in the namespace of a cluster leads there as one of its
// ManagedServiceAccounts, clusterservices/proxy leads to those of its Services that it exposes, and
// tunnels/proxy is where the agent of a cluster opens the tunnel that the requests travel through.
//
// It does no I/O.
package v1alpha1
