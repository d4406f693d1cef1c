// SPDX-License-Identifier: Apache-2.0

// Package agent is the work agent: it brings the ManifestWorks of one namespace
// of the hub to the cluster it runs for.
//
// Run makes two clients and their watches, and one loop whose keys are the names
// of AppliedManifestWorks. Everything about one work happens under its key, one
// pass at a time: controllers/work/agent/apply while the work is wanted,
// controllers/work/agent/finalize when it ends. Three sources wake a key: the
// work on the hub, its AppliedManifestWork, and controllers/work/agent/drift
// when an object is not as it was left. At rest nothing is sent.
//
// The package links the dynamic client and reflectors, no clientset. It reads and
// writes manifestworks, their status and events
// in the cluster's namespace on the hub; on the managed cluster
// appliedmanifestworks and whatever works declare.
package agent
