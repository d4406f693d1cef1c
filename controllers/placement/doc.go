// SPDX-License-Identifier: Apache-2.0

// Package placement is the loop that carries placements out: it decides, with
// internal/schedule, which clusters each Placement selects, and writes its
// PlacementDecisions and its status.
//
// The loop holds one fleet in memory, a schedule.Scheduler, that the events of
// clusters, sets, bindings, scores, placements and decisions maintain; only
// placements that a change touches are decided again. Nothing is decided before
// all that exists has been read. Decisions are written in the order of package
// decisions; each write carries the uid and the resourceVersion of what it was
// decided on. What the loop writes is in its view at once, so that its own events
// wake nobody, and a cache that lags behind is never decided on.
//
// A Placement that cannot be followed keeps its last decisions. One that is
// frozen by annotation, or is being deleted, is left alone; its decisions go by
// their owner reference.
//
// Clusters are kept as small as placements allow: none while there is no
// placement, and without what only a CEL expression could read while there is no
// such expression.
//
// It writes placementdecisions, their status, the status of placements, and Events
// on placements. Other than in the API's own implementation: as in packages
// schedule and decisions; a Misconfigured Placement, or a score that has expired,
// is no error that is retried; errors of writes are told by the condition
// PlacementSatisfied and retried.
package placement
