// SPDX-License-Identifier: Apache-2.0

// Package managednamespace tells each cluster which namespaces its sets want.
//
// It owns which entries are in status.managedNamespaces of a ManagedCluster: the
// union over its sets that are not being deleted, by set, then by name. The
// conditions of an entry are the agent's; an entry keeps them as long as it is
// there, so that hub and agent never undo each other's writes. A cluster that is
// being deleted keeps what it has.
//
// It reads clusters from the cache and their sets from package membership, and
// writes the status of clusters, only when an entry comes, goes or moves.
package managednamespace
