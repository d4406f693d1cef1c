// SPDX-License-Identifier: Apache-2.0

// Package managednamespace publishes to each cluster which namespaces its sets want.
//
// It owns which entries are in status.managedNamespaces of a ManagedCluster: the union over
// its sets that are not being deleted, sorted by set, then by name. The conditions of an
// entry belong to the agent; an entry keeps them as long as it exists, so that hub and agent
// never undo each other's writes. A cluster that is being deleted keeps its entries.
//
// It reads clusters from the cache and their sets from package membership, and writes the
// status of clusters, only when an entry is added, removed or moved.
package managednamespace
