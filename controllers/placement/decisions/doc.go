// SPDX-License-Identifier: Apache-2.0

// Package decisions turns the decision groups of a placement into writes of its
// PlacementDecisions. It is pure: it gets the groups and the objects that exist,
// and returns single writes in an order in which no cluster that stays selected
// is missing from all of them at any moment, also if the writes end after any of
// them. What gains clusters is written before what loses them; labels follow;
// deletions are last.
//
// A cluster stays in the object that it is in as long as that belongs to its
// group, so that one cluster more or less is one write, however many there are.
//
// Other than in the API's own implementation: the order of writes; labels of others
// on the objects are kept; an owner that is not this placement is replaced.
package decisions
