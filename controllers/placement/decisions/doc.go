// SPDX-License-Identifier: Apache-2.0

// Package decisions turns the decision groups of a placement into writes of its
// PlacementDecisions. It is pure: it takes the groups and the existing objects, and
// returns single writes in an order that keeps every cluster that stays selected in at
// least one of the objects at every moment, even if the writes stop after any of them.
// Objects that gain clusters are written before those that lose them; labels follow;
// deletions come last.
//
// A cluster stays in its object as long as that object belongs to the cluster's group, so
// that adding or removing one cluster takes one write, however many there are.
//
// Unlike in the API's own implementation: the order of writes; labels that others set on
// the objects are kept; an owner that is not this placement is replaced.
package decisions
