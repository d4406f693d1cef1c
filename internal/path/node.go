// SPDX-License-Identifier: Apache-2.0

package path

import (
	"regexp"

	"k8s.io/client-go/util/jsonpath"
)

// kind is what a node does with the value that it is given.
type kind int

const (
	// identity gives the value itself.
	identity kind = iota
	// field gives an entry of an object, nothing for null.
	field
	// index gives an element of a list, from the end if negative.
	index
	// token is a step of a JSON pointer: a key of an object, an index of a list.
	token
	// key gives the entry of an object that has it.
	key
	// iterate gives all elements or entries.
	iterate
	// slice gives the elements of a range as far as the list has it, span fails
	// where it does not.
	slice
	span
	// elements gives those of a list and fails on all else.
	elements
	// recurse gives the value and everything below it; descend leaves out
	// numbers, booleans and what is empty.
	recurse
	descend
	// pipe gives what the second operand makes of each result of the first.
	pipe
	// instead gives the second operand once, whatever the first gives.
	instead
	// comma gives the results of both operands.
	comma
	// alternative gives the results of the first operand that are neither null
	// nor false, or else those of the second.
	alternative
	// literal gives a value that stands in the expression.
	literal
	// compare, and, or give true or false.
	compare
	and
	or
	// match compares one value with another of its kind; exists tells whether the
	// operand gives anything.
	match
	exists
	// optional gives the results of its operand up to its first failure.
	optional
	// unknown fails: it is a word that means nothing.
	unknown
	// call gives what a function makes of the value.
	call
)

// node is one step of a parsed expression.
type node struct {
	kind kind
	// name is a key, an operator or the name of a function.
	name string
	// value is that of a literal.
	value any
	// at is an index, bounds are first place, end and step of a range.
	at     int
	bounds [3]jsonpath.ParamsEntry
	// pattern is that of test.
	pattern *regexp.Regexp
	// kids are operands and arguments.
	kids []*node
}

func both(k kind, a, b *node) *node { return &node{kind: k, kids: []*node{a, b}} }

// then is a followed by b.
func then(a, b *node) *node {
	if a.kind == identity {
		return b
	}
	return both(pipe, a, b)
}

func lenient(n *node) *node { return &node{kind: optional, kids: []*node{n}} }

// chosen gives the value where the test gives something that holds.
func chosen(test *node) *node { return &node{kind: call, name: "select", kids: []*node{test}} }
