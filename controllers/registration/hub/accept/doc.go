// SPDX-License-Identifier: Apache-2.0

// Package accept gives the agent of an accepted cluster its place on the hub,
// and takes it away again: namespace, ClusterRole, bindings, lease, the
// condition HubAcceptedManagedCluster.
//
// It owns that condition, the first ClockSynced (the lease that the hub makes is
// stamped with the hub's own time), Joined=False of clusters that are not accepted,
// the finalizer api-resource-cleanup, and the RBAC objects of agents.
// It reads ManagedClusters, the metadata of namespaces, RBAC objects and
// ManifestWorks, and which leases exist. It never deletes a namespace, and takes
// over one that was there before only where admission noted that the accepting user
// may update it.
//
// Narrower than on the API's own hub: agents reach only the lease by its name. Other
// than there: a denied cluster is shown as denied at once, also while ManifestWorks are left;
// RBAC that a former cluster of the same name left behind is removed; a cluster
// that is deleted keeps its rights until its add-ons are gone, unless it was
// denied.
package accept
