// SPDX-License-Identifier: Apache-2.0

// Package agent is the work agent: it brings the ManifestWorks of one hub namespace to
// the cluster that it runs for.
//
// Run starts two clients with their watches, and one loop whose keys are the names of
// AppliedManifestWorks. Each work is handled under its key, one pass at a time: by
// controllers/work/agent/apply while the work is wanted, and by
// controllers/work/agent/finalize when it is deleted. Three sources wake a key: the work
// on the hub, its AppliedManifestWork, and controllers/work/agent/drift when an object
// has changed. At rest no requests are sent.
//
// The package links the dynamic client and reflectors, no clientset. It reads and writes
// manifestworks, their status and events in the cluster's namespace on the hub; on the
// managed cluster, appliedmanifestworks and the objects that works declare.
package agent
