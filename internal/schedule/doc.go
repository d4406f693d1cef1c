// SPDX-License-Identifier: Apache-2.0

// Package schedule decides which clusters a Placement selects, and says of every
// cluster why it is in or out. The hub's placement loop and the plugin's
// "placement explain" and "placement simulate" use it, so that both say the same.
//
// A Scheduler is a fleet in memory. It is told what is there and what changes:
//
//	s := schedule.New()
//	s.SetCluster(cluster)          // also sets, bindings, scores, placements, decisions
//	for _, key := range s.Take() { // the placements that the changes touch
//		result := s.Decide(key, now)
//	}
//	report := s.Explain(key, now)
//
// It has no clock, does no I/O and remembers no decision of its own: what a
// placement has selected so far is what the observed PlacementDecisions say. So
// Decide depends on the objects and the time alone, not on the order of events.
//
// # Who holds what
//
// A Scheduler keeps the pointers that it is given. The objects must not be
// changed afterwards; those of an informer's cache never are. It is not safe for
// concurrent use: whoever shares one holds a lock around each call. Decide of
// 10,000 clusters takes some milliseconds.
//
// # Conditions
//
// Result holds both conditions of the Placement, without lastTransitionTime,
// which is for the writer to keep. The reasons are those of the contract. Where
// taints and not predicates left nothing, the message names the taints.
//
// # Done otherwise than in the contract's account of Open Cluster Management
//
// A Placement whose spec cannot be followed keeps its last decisions, as far as
// these clusters still exist in a bound set; that includes a negative
// numberOfClusters. A set whose selector cannot be read has no members, but takes
// nobody out of the decisions. A binding whose spec names another set than its
// name binds nothing. Problems are told whether or not there are candidates.
// PreferNoSelect, spreadPolicy, sortBy and scoreRateLimit do what the API says;
// validUntil ends a score also for CEL. A CEL expression that cannot give a bool
// is a problem, not one that never matches.
//
// Expressions know what internal/cel gives, which is more than the contract's
// environment (semver(text, true) among it), in bounded sizes. The functions of
// the Kubernetes libraries cost what those libraries say, not the flat default, so
// that sample costs with semver differ; scores, parseJSON and plain CEL cost what
// the contract says.
//
// # What a change costs
//
// A ManagedCluster that changes is compared with its former state, and wakes the
// placements that have it as candidate and read what differs: keys of labels and
// claims, taints, resources, fields that their expressions name. A pure heartbeat
// wakes and evaluates nothing unless an expression reads conditions. The verdict
// of predicates is kept as two bits for each placement and cluster; Counters tell
// how many are evaluated. Expressions that are dear are evaluated in parts, one
// with each Decide, so that their author holds up nobody else.
package schedule
