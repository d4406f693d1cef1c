// SPDX-License-Identifier: Apache-2.0

package path

import (
	"regexp"

	"k8s.io/client-go/util/jsonpath"
)

// kind is the operation of a node.
type kind int

const (
	// identity emits the value itself.
	identity kind = iota
	// field emits an entry of an object, nothing for null.
	field
	// index emits an element of a list, counted from the end if negative.
	index
	// token is a step of a JSON pointer: a key of an object, an index of a list.
	token
	// key emits the entry of an object if it exists.
	key
	// iterate emits all elements or entries.
	iterate
	// slice emits the elements of a range as far as the list has them; span fails if the
	// list lacks some.
	slice
	span
	// elements emits the elements of a list and fails on anything else.
	elements
	// recurse emits the value and everything below it; descend omits numbers, booleans
	// and empty values.
	recurse
	descend
	// pipe emits the results of the second operand for each result of the first.
	pipe
	// instead emits the second operand once, whatever the first gives.
	instead
	// comma emits the results of both operands.
	comma
	// alternative emits the results of the first operand that are neither null nor false,
	// or if there are none those of the second.
	alternative
	// literal emits a value that the expression contains.
	literal
	// compare, and, or emit true or false.
	compare
	and
	or
	// match compares one value with another of its kind; exists reports whether the
	// operand gives any result.
	match
	exists
	// optional emits the results of its operand up to its first failure.
	optional
	// unknown fails: it is a word without a meaning.
	unknown
	// call emits the results of a function for the value.
	call
)

// node is one step of a parsed expression.
type node struct {
	kind kind
	// name is a key, an operator or the name of a function.
	name string
	// value is the value of a literal.
	value any
	// at is an index; bounds are the first index, the end and the step of a range.
	at     int
	bounds [3]jsonpath.ParamsEntry
	// pattern is the pattern of test.
	pattern *regexp.Regexp
	// kids are operands and arguments.
	kids []*node
}

func both(k kind, a, b *node) *node { return &node{kind: k, kids: []*node{a, b}} }

// then returns a followed by b.
func then(a, b *node) *node {
	if a.kind == identity {
		return b
	}
	return both(pipe, a, b)
}

func lenient(n *node) *node { return &node{kind: optional, kids: []*node{n}} }

// chosen emits the value if the test gives a true result.
func chosen(test *node) *node { return &node{kind: call, name: "select", kids: []*node{test}} }
