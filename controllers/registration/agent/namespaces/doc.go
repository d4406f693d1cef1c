// SPDX-License-Identifier: Apache-2.0

// Package namespaces makes the namespaces that the sets of a cluster ask for,
// and says on the ManagedCluster which of them are there.
//
// It reads status.managedNamespaces of the agent's own ManagedCluster, which the
// hub fills, and the namespaces of this cluster that carry the label of this hub.
// It writes that label: "true" on a namespace that a set asks for, which is made
// if it is not there, and "false" on one that none asks for any more, or when the
// ManagedCluster goes. It never deletes a namespace, and of one that was there
// before it changes nothing but that label. Each hub has a label, and a field
// manager, of its own: several hubs do not disturb each other. On the hub it
// writes the condition NamespaceAvailable of entries that are there, and neither
// adds nor removes an entry.
//
// Namespaces of the system (default, kube-*, openshift-*,
// open-cluster-management*) are neither made nor labelled: no set of clusters
// owns them. Their entry says so.
package namespaces
