// SPDX-License-Identifier: Apache-2.0

// Package replicaset creates a ManifestWork from a ManifestWorkReplicaSet in the
// namespace of every cluster that its placements select, and summarizes their status.
// internal/rollout decides which clusters are changed next.
//
// A cluster that several placements select gets one ManifestWork, for the first of them
// in the spec. Its name is derived from the replica set's, so that nothing is ever
// created twice. An existing ManifestWork is kept whatever its name, even one that
// another hub created; its spec becomes exactly that of the template. A placement that is
// missing or cannot be read leaves its delivered works as they are, and holds up no other
// placement.
//
// Unlike in the API's own implementation: a ManifestWork without a condition Progressing
// has succeeded when it is applied and available; one that was delivered and never
// applied times out; labels of the replica set reach every ManifestWork; conditions have
// messages and observedGeneration. Where a placement loses most of its clusters at once,
// their works are kept until a person confirms the removal (see guard.go). Events report
// placements that can or cannot be used, and a rollout's start, stop and end.
package replicaset
