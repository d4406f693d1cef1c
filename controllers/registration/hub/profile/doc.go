// SPDX-License-Identifier: Apache-2.0

// Package profile maintains ClusterProfiles: one for each cluster in each namespace that is
// bound to a set with that cluster.
//
// It owns the profiles whose spec.clusterManager.name is this project's and whose manager
// label does not name another manager: their labels, their display name, and in their status
// the version, the properties, the two conditions and the one way of access that has the name
// of this project. What others add to the status stays. A profile of another manager is never
// touched, even when it has the name of a cluster; then the cluster has no profile in that
// namespace, and an Event on the existing profile reports it. A cluster or namespace that is
// being deleted gets no profile.
//
// Each key is one profile, so an event costs only the profiles it affects. A profile takes
// about two kilobytes of memory besides the certificates of its cluster. The loop runs while
// the gate ClusterProfile is on and the API is served; with the gate off, Remove deletes the
// profiles once, because inventories would trust profiles that are no longer maintained. The
// API itself stays, because it belongs to a third party.
//
// It reads clusters, profiles and namespaces from caches, and memberships from package
// membership.
package profile
