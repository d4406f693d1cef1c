// SPDX-License-Identifier: Apache-2.0

// Package permission gives subjects rights on managed clusters: it turns each ClusterPermission
// into one ManifestWork in the namespace of its cluster, and reports what became of it (feature
// gate ClusterPermission).
//
// It owns the status of ClusterPermissions, and the ManifestWorks whose controller is a
// ClusterPermission; the garbage collector deletes them with it. A spec that cannot be sent is
// reported with its field, and what was sent before stays. It never writes to a work of
// somebody else. A work that has lost its owner, because the hub was restored from a backup, is
// taken over by the ClusterPermission of its name.
//
// It reads ClusterPermissions, clusters and the hub's namespaces from the shared caches, and
// has its own watches of its works, of ManagedServiceAccounts, which need not be served, and
// of the one add-on that makes their ServiceAccounts. If another controller changes a work back
// again and again, it repeats its own write once a minute at most, and says so.
//
// The objects are applied with the rights of the agent. Who may give which rights is decided at
// admission, see package webhook.
package permission
