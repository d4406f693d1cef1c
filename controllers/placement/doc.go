// SPDX-License-Identifier: Apache-2.0

// Package placement is the loop that reconciles Placements: it decides, with
// internal/schedule, which clusters each Placement selects, and writes its
// PlacementDecisions and its status.
//
// The loop holds one fleet in memory, a schedule.Scheduler, which events of clusters,
// sets, bindings, scores, placements and decisions keep current; only placements that a
// change affects are decided again. Nothing is decided until everything that exists has
// been read. Decisions are written in the order of package decisions, or side by side where
// that allows it; each write carries the uid and the resourceVersion of the object it was
// decided on. The loop's own writes enter its view at once, so that their events wake no
// placement, and it never decides on a cache that lags behind.
//
// A Placement that is Misconfigured keeps its last decisions. One that is frozen by
// annotation, or is being deleted, is left alone; its decisions are removed through their
// owner reference.
//
// Clusters are kept as small as placements allow: no cluster is kept while there is no
// placement, and fields that only a CEL expression could read are dropped while no
// placement has such an expression.
//
// It writes placementdecisions, their status, the status of placements, and Events on
// placements. Unlike in the API's own implementation: as in packages schedule and
// decisions; a Misconfigured Placement, or a score that has expired, is not an error to
// retry; write errors are reported in the condition PlacementSatisfied and retried.
package placement
