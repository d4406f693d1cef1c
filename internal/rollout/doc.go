// SPDX-License-Identifier: Apache-2.0

// Package rollout decides which clusters of a placement may be changed now, by one of the
// strategies All, Progressive and ProgressivePerGroup. ManifestWorkReplicaSets and
// add-ons use it.
//
// It is pure: strategy, decision groups, the state of each cluster and the time go in, a
// Plan comes out. The same input in any order gives the same Plan, and nothing is
// remembered between calls: call it again with the new states of the clusters to get the
// next step.
//
//	strategy, err := rollout.Parse(spec)          // bad sizes and durations
//	groups, err := rollout.Groups(decisions)      // bad labels
//	plan := strategy.Plan(groups, clusters, now)
//
// A rollout that stopped because of too many failures continues when enough of the
// clusters recover, or when a user resumes it without them: Strategy.Resumed.
//
// It differs from the API's own implementation in two ways: maxFailures above the number
// of clusters tolerates all of them instead of none, and a mandatory group waits only for
// its own clusters.
package rollout
