// SPDX-License-Identifier: Apache-2.0

// Package debug is the HTTP endpoint that explains what a placement selects and why: a
// placement stored on the hub, by GET, or one sent in the request, by POST. It only
// simulates; nothing is stored.
//
// A request needs a bearer token that the hub's cluster accepts. Two rights are checked
// on every request: get or post on the path /debug/placements/*, and get (of a stored
// placement) or create (of one that is sent) on placements in the namespace. Without them
// a caller cannot learn whether a placement exists. Clusters that are in no set of the
// namespace are left out of the answer.
//
// One request is simulated at a time; the number of requests, the size of bodies, and the
// work for one request are bounded.
//
// Unlike in the API's own implementation: an answer says what is wrong with a placement,
// why each cluster is in or out, and how the existing decision differs; API defaults
// apply to a placement that is sent; a placement without a namespace is refused; rights
// are checked before the placement is looked up.
package debug
