// SPDX-License-Identifier: Apache-2.0

// Package deploy decides how one add-on gets to one cluster: which ManifestWorks are
// created, changed and deleted, which finalizers its ManagedClusterAddOn has, and the
// conditions ManifestApplied, HostingManifestApplied, HostingClusterValidity and
// HookManifestCompleted. It is pure.
//
// The caller gives Decide a State with all works that carry the add-on's label and belong
// to this instance, in the namespaces of the cluster and of hosting clusters, and executes
// the plan. Package health decides about health, package registration about permissions.
//
// Differences from the API's own implementation:
//   - the deletion of an instance waits for hooks, and for what is on a hosting cluster,
//     until a deadline, and its condition names what it waits for. If the ManagedCluster is
//     gone it waits for nothing, and hooks that cannot be rendered end with the deadline;
//   - the mark of the older hook label is ignored, and a hook work of an earlier instance
//     of the same name is not taken for one of this instance;
//   - a manifest that has grown leaves its work before the work exceeds the admission
//     limit, and a new work gets the first free index;
//   - manifests of a work keep the order in which they were rendered;
//   - changing or removing the hosting cluster cleans up the previous one.
package deploy
