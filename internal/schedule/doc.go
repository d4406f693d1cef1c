// SPDX-License-Identifier: Apache-2.0

// Package schedule decides which clusters a Placement selects, and explains for every
// cluster why it is in or out. The hub's placement loop and the plugin's "placement
// explain" and "placement simulate" use it, so their results agree.
//
// A Scheduler is a fleet in memory. Its caller reports what exists and what changes:
//
//	s := schedule.New()
//	s.SetCluster(cluster)          // also sets, bindings, scores, placements, decisions
//	for _, key := range s.Take() { // the placements that the changes touch
//		result := s.Decide(key, now)
//	}
//	report := s.Explain(key, now)
//
// It has no clock, does no I/O and remembers no decision of its own: the observed
// PlacementDecisions define what a placement has selected so far. Decide therefore
// depends only on the objects and the time, not on the order of events.
//
// # Ownership and concurrency
//
// A Scheduler keeps the pointers that it is given. The objects must not be changed
// afterwards; those of an informer's cache never are. It is not safe for concurrent use:
// guard each call of a shared Scheduler with a lock. Deciding over 10,000 clusters takes
// some milliseconds.
//
// # Conditions
//
// Result holds both conditions of the Placement, without lastTransitionTime, which the
// writer maintains. The reasons are those of the contract. If taints rather than
// predicates left no cluster, the message names the taints.
//
// # Differences from Open Cluster Management
//
// A Placement with an invalid spec keeps its last decisions, as far as these clusters
// still exist in a bound set; this includes a negative numberOfClusters. A set whose
// selector cannot be parsed has no members, but removes no cluster from the decisions. A
// binding whose spec names another set than its name binds nothing. Problems are reported
// whether or not there are candidates. PreferNoSelect, spreadPolicy, sortBy and
// scoreRateLimit behave as the API documents; validUntil also ends a score for CEL. A CEL
// expression that cannot give a bool is a problem, not one that never matches.
//
// Expressions can use what internal/cel provides, which is more than the contract's
// environment (semver(text, true), for example), in bounded sizes. The functions of the
// Kubernetes libraries cost what those libraries define, not the flat default, so sample
// costs with semver differ; scores, parseJSON and plain CEL have the contract's costs.
//
// # The cost of a change
//
// A changed ManagedCluster is compared with its former state, and wakes the placements
// that have it as a candidate and read what differs: keys of labels and claims, taints,
// resources, fields that their expressions name. A pure heartbeat wakes and evaluates
// nothing unless an expression reads conditions. The verdict of predicates is kept as two
// bits for each placement and cluster; Counters count the evaluations. Expensive
// expressions are evaluated in parts, one with each Decide, so that they do not block
// other placements.
package schedule
