// SPDX-License-Identifier: Apache-2.0

// Package rollout decides which clusters of a placement may be changed now, by
// one of the strategies All, Progressive and ProgressivePerGroup. Replica sets
// of works and add-ons roll out by it.
//
// It is pure: strategy, decision groups, the state of each cluster and the time
// go in, a Plan comes out. The same input in any order gives the same Plan, and
// nothing is remembered between calls: who calls again with what the clusters
// have come to gets the next step.
//
//	strategy, err := rollout.Parse(spec)          // bad sizes and durations
//	groups, err := rollout.Groups(decisions)      // bad labels
//	plan := strategy.Plan(groups, clusters, now)
//
// A rollout that too many failures have stopped goes on when enough of the clusters
// recover, or when somebody lets it go on without them: Strategy.Resumed.
//
// Other than in the API's own implementation: maxFailures above the number of
// clusters tolerates all of them instead of none, and a mandatory group waits for
// its own clusters only.
package rollout
