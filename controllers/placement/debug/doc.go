// SPDX-License-Identifier: Apache-2.0

// Package debug is the HTTP endpoint that tells what a placement selects and why:
// one on the hub, by GET, or one that somebody thinks of, by POST. It simulates;
// nothing is stored.
//
// A request needs a bearer token that the hub's cluster knows. Two rights are
// asked for, each time anew: get or post on the path /debug/placements/*, and get
// (of the stored placement) or create (of the one that is sent) on placements of
// the namespace. Nobody learns without them whether a placement exists. Clusters
// that are in no set of the namespace are not told of.
//
// One request at a time is simulated; requests, bodies, and the work for one are
// bounded.
//
// Other than in the API's own implementation: an answer says what is wrong with a
// placement, why each cluster is in or out, and how the decision that is there
// differs; defaults of the API hold for what is sent; a placement without a
// namespace is refused; rights are asked before it is looked whether there is a
// placement.
package debug
