// SPDX-License-Identifier: Apache-2.0

// Package replicaset makes one ManifestWork of a ManifestWorkReplicaSet in the
// namespace of every cluster that its placements select, and sums up what
// becomes of them. Which clusters are changed next is decided by internal/rollout.
//
// A cluster that several placements select gets one ManifestWork, by the first
// of them in the spec; its name follows from the replica set's, so that nothing
// is ever made twice. A ManifestWork that exists is kept whatever its name, also
// one that another hub made; its spec becomes that of the template, to the field.
// A placement that is missing or cannot be read leaves what it has delivered as
// it is, and holds up no other placement.
//
// Other than in the API's own implementation: a ManifestWork without a condition
// Progressing has succeeded when it is applied and available; one that was delivered
// and never applied runs out of time; labels of the replica set reach every
// ManifestWork; conditions have messages and observedGeneration. Where a placement
// loses most of its clusters at once, their works stay until a person confirms (see
// guard.go). Events tell of placements that can or cannot be used, and of a
// rollout's start, stop and end.
package replicaset
