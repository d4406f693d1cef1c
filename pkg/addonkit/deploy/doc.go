// SPDX-License-Identifier: Apache-2.0

// Package deploy decides how one add-on gets to one cluster: which ManifestWorks are
// made, changed and deleted, which finalizers its ManagedClusterAddOn has, and what
// the conditions ManifestApplied, HostingManifestApplied, HostingClusterValidity and
// HookManifestCompleted say. It is pure.
//
// Whoever runs it gives Decide a State with all works that carry the label of the
// add-on and are for this instance, in the namespace of the cluster and in that of
// hosting clusters, and executes the plan. Health is told by package health, rights
// by package registration.
//
// Other than in the API's own implementation:
//   - the deletion of an instance waits for hooks, and for what is on a hosting
//     cluster, until a deadline; what holds it up is named. Where the ManagedCluster is
//     gone it waits for nothing, and hooks that cannot be rendered end by the deadline;
//   - the mark of the older hook label is not read, nor is a hook work of an earlier
//     instance of the name taken for that of this one;
//   - a manifest that has grown leaves its work before the work outgrows admission, and
//     a new work has the first free index;
//   - in a work manifests keep the order in which they were rendered;
//   - another hosting cluster, or none, cleans the one before.
package deploy
