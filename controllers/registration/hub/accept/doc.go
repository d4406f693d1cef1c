// SPDX-License-Identifier: Apache-2.0

// Package accept sets up an accepted cluster's agent on the hub, and removes the setup again:
// namespace, ClusterRole, bindings, lease and the condition HubAcceptedManagedCluster.
//
// It owns that condition, the first ClockSynced (the hub stamps the lease it creates with its
// own time), Joined=False of clusters that are not accepted, the finalizer
// api-resource-cleanup, and the RBAC objects of agents. It reads ManagedClusters, the
// metadata of namespaces, RBAC objects and ManifestWorks, and which leases exist. It never
// deletes a namespace, and takes over an existing one only if admission recorded that the
// accepting user may update it.
//
// It is stricter than the upstream hub: agents reach only the lease by its name. It also
// differs in three ways: a denied cluster is shown as denied at once, even while
// ManifestWorks are left; RBAC left behind by a former cluster of the same name is removed;
// and a cluster being deleted keeps its rights until its add-ons are gone, unless it was
// denied.
package accept
