// SPDX-License-Identifier: Apache-2.0

// Package profile keeps ClusterProfiles: one for each cluster in each namespace
// that is bound to a set with that cluster.
//
// It owns the profiles whose spec.clusterManager.name is that of this project
// and whose label of the manager does not name another: their labels, their
// display name, and of their status the version, the properties and the two
// conditions. What others add to the status stays. A profile of another manager
// is never touched, also when it has the name of a cluster; then the cluster has
// none in that namespace, and an Event on the profile that is there says so. A
// cluster or namespace that is being deleted gets no profile.
//
// Each key is one profile, so that an event costs the profiles that it touches.
// A profile costs about two kilobytes of memory. The loop runs while the gate
// ClusterProfile is on and the API is served; without the gate, Remove takes the
// profiles away once, because inventories would take what nobody keeps for true.
// The API itself stays: it is a third party's.
//
// It reads clusters, profiles and namespaces from caches, and memberships from
// package membership.
package profile
