// SPDX-License-Identifier: Apache-2.0

// Package namespaces creates the namespaces requested by the sets of a cluster, and reports
// on the ManagedCluster which of them exist.
//
// It reads status.managedNamespaces of the agent's own ManagedCluster, which the hub fills,
// and the namespaces of this cluster with the label of this hub. It writes that label: "true"
// on a namespace that a set requests, creating the namespace if necessary, and "false" on one
// that is no longer requested, or when the ManagedCluster is deleted. It never deletes a
// namespace, and changes nothing but that label of an existing one. Each hub has its own
// label and field manager, so several hubs do not disturb each other. On the hub it writes
// the condition NamespaceAvailable of existing entries, and neither adds nor removes an
// entry.
//
// System namespaces (default, kube-*, openshift-*, open-cluster-management*) are neither
// created nor labelled: they belong to no cluster set. Their entry's condition says this.
package namespaces
