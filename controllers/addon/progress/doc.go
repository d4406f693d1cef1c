// SPDX-License-Identifier: Apache-2.0

// Package progress rolls out the configurations of an add-on to its clusters, in the order
// that the rollout strategy of each placement defines, and reports the progress.
// internal/rollout decides which clusters may get theirs now.
//
// Events on the add-on report when a rollout of other configurations begins, is stuck, is
// resumed on request, and ends.
//
// It owns status.defaultConfigReferences and status.installProgressions of
// ClusterManagementAddOns, and status.configReferences and the conditions Configured and
// Progressing of ManagedClusterAddOns. For an add-on that the hub does not manage, it writes
// the default references only. Hashes of configurations that the hub does not know belong to
// the add-on's controller.
//
// Unlike in Open Cluster Management's own implementation, a missing placement holds up its
// own clusters only; a cluster that is stuck before its manifests are applied times out too;
// a cluster that is being deleted, or excluded from the add-on, holds up no other; works on
// the managed and on the hosting cluster count alike; and messages name what is missing. A
// rollout that stopped because too many clusters timed out continues without them when an
// annotation of the add-on requests it; the time of the request is recorded in the
// progression.
package progress
