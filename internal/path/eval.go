// SPDX-License-Identifier: Apache-2.0

package path

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
)

// maxQuoted bounds what an error quotes of an expression, in bytes.
const maxQuoted = 128

// maxVisit bounds the nesting of an object below ".." and in comparisons.
const maxVisit = 1_000

var errDepth = fmt.Errorf("the object nests deeper than %d levels; name the fields one by one", maxVisit)

// Expression is a parsed path.
type Expression struct{ root *node }

// Match is one result of an expression.
type Match struct {
	// Value is the value itself.
	Value any
	// Lies reports whether the value is part of the object, or would be if it existed;
	// other values are literals of the expression or results of tests.
	Lies  bool
	place *step
}

// Place returns the path from the object to the value: names and indexes, as string and
// int.
func (m Match) Place() []any {
	var keys []any
	for s := m.place; s != nil; s = s.parent {
		keys = append(keys, s.key)
	}
	slices.Reverse(keys)
	return keys
}

// Each calls visit with every result of the expression for an object, always in the same
// order. It calls spend before each step: the visit of one value, or the comparison of
// about ten bytes, about 50 ns. An error of either function ends the evaluation.
func (x *Expression) Each(object any, spend func(steps int) error, visit func(Match) error) error {
	return (&evaluator{spend}).run(x.root, Match{Value: object, Lies: true}, visit)
}

// mismatch is a failure that "?" suppresses.
type mismatch struct{ text string }

// Error is the text.
func (m *mismatch) Error() string { return m.text }

// step is one step of a path, linked to the previous ones. The root has no step.
type step struct {
	parent *step
	// key is a string or an int.
	key any
}

func (m Match) child(key, value any) Match {
	if !m.Lies {
		return Match{Value: value}
	}
	return Match{Value: value, Lies: true, place: &step{parent: m.place, key: key}}
}

// evaluator runs expressions.
type evaluator struct{ spend func(steps int) error }

// run calls emit with each result of n for in.
func (e *evaluator) run(n *node, in Match, emit func(Match) error) error {
	if err := e.spend(1); err != nil {
		return err
	}
	switch n.kind {
	case identity:
		return emit(in)
	case field:
		return e.field(n.name, in, emit)
	case index:
		return e.index(n.at, in, emit)
	case token, key:
		return e.entry(n, in, emit)
	case iterate:
		return e.iterate(in, emit)
	case slice, span, elements:
		return e.elements(n, in, emit)
	case recurse, descend:
		return e.recurse(n.kind, in, 0, emit)
	case literal:
		return emit(Match{Value: n.value})
	}
	return e.combine(n, in, emit)
}

// combine evaluates nodes that have operands.
func (e *evaluator) combine(n *node, in Match, emit func(Match) error) error {
	switch n.kind {
	case instead:
		if err := e.run(n.kids[0], in, func(Match) error { return nil }); err != nil {
			return err
		}
		return e.run(n.kids[1], Match{}, emit)
	case pipe:
		return e.run(n.kids[0], in, func(i Match) error { return e.run(n.kids[1], i, emit) })
	case comma:
		if err := e.run(n.kids[0], in, emit); err != nil {
			return err
		}
		return e.run(n.kids[1], in, emit)
	case optional:
		return e.optional(n.kids[0], in, emit)
	case alternative:
		return e.alternative(n, in, emit)
	case compare, and, or:
		return e.operate(n, in, emit)
	case match, exists:
		holds, err := e.holds(n, in)
		if err != nil {
			return err
		}
		return emit(Match{Value: holds})
	case unknown:
		return &mismatch{fmt.Sprintf("%q is not understood; begin the names of fields with a dot", excerpt.Of(n.name, maxQuoted))}
	}
	return e.call(n, in, emit)
}

// optional suppresses failures of the operand, but not failures of what is done with its
// results.
func (e *evaluator) optional(n *node, in Match, emit func(Match) error) error {
	var later error
	err := e.run(n, in, func(i Match) error {
		later = emit(i)
		return later
	})
	var m *mismatch
	if later == nil && errors.As(err, &m) {
		return nil
	}
	return err
}

func (e *evaluator) alternative(n *node, in Match, emit func(Match) error) error {
	found := false
	err := e.optional(n.kids[0], in, func(i Match) error {
		if !truthy(i.Value) {
			return nil
		}
		found = true
		return emit(i)
	})
	if err != nil || found {
		return err
	}
	return e.run(n.kids[1], in, emit)
}

func (e *evaluator) field(name string, in Match, emit func(Match) error) error {
	switch v := in.Value.(type) {
	case nil:
		return emit(in.child(name, nil))
	case map[string]any:
		return emit(in.child(name, v[name]))
	}
	return &mismatch{fmt.Sprintf("%s has no field %q; correct the path", typeOf(in.Value), name)}
}

func (e *evaluator) index(at int, in Match, emit func(Match) error) error {
	switch v := in.Value.(type) {
	case nil:
		return emit(in.child(at, nil))
	case []any:
		if at < 0 {
			at += len(v)
		}
		if at < 0 || at >= len(v) {
			return emit(in.child(at, nil))
		}
		return emit(in.child(at, v[at]))
	}
	return &mismatch{fmt.Sprintf("%s has no element %d; correct the path", typeOf(in.Value), at)}
}

// entry emits the value if it exists, and nothing otherwise.
func (e *evaluator) entry(n *node, in Match, emit func(Match) error) error {
	switch v := in.Value.(type) {
	case map[string]any:
		if child, there := v[n.name]; there {
			return emit(in.child(n.name, child))
		}
	case []any:
		if at, ok := pointerIndex(n.name); ok && n.kind == token && at < len(v) {
			return emit(in.child(at, v[at]))
		}
	}
	return nil
}

// iterate emits the elements of a list or the entries of an object. Null has none: a
// missing field is nothing to ignore.
func (e *evaluator) iterate(in Match, emit func(Match) error) error {
	switch v := in.Value.(type) {
	case nil:
		return nil
	case []any:
		for i := range v {
			if err := emit(in.child(i, v[i])); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		if err := e.spend(len(v)); err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if err := emit(in.child(key, v[key])); err != nil {
				return err
			}
		}
		return nil
	}
	return &mismatch{typeOf(in.Value) + " has no elements; correct the path, or end the step with ?"}
}

// elements emits the elements of a list, or of a range of it.
func (e *evaluator) elements(n *node, in Match, emit func(Match) error) error {
	list, ok := in.Value.([]any)
	switch {
	case in.Value == nil && n.kind != elements:
		return nil
	case !ok:
		return &mismatch{TypeOf(in.Value) + " is taken for a list"}
	}
	first, end, step := 0, len(list), 1
	if n.kind != elements {
		var err error
		if first, end, step, err = rangeOf(n, len(list)); err != nil {
			return err
		}
	}
	for i := first; i < end; i += step {
		if err := emit(in.child(i, list[i])); err != nil {
			return err
		}
	}
	return nil
}

// rangeOf returns the first index, the index after the last, and the step of an index or
// a range in a list of that length. Negative indexes count from the end. A slice is
// clamped to the list.
func rangeOf(n *node, length int) (first, end, step int, err error) {
	given := func(at, otherwise int) int {
		if n.bounds[at].Known {
			return n.bounds[at].Value
		}
		return otherwise
	}
	first, end, step = given(0, 0), given(1, length), given(2, 1)
	if first < 0 {
		first += length
	}
	if end < 0 || (end == 0 && n.bounds[1].Derived) {
		end += length
	}
	if n.kind == slice {
		first, end = min(max(first, 0), length), min(max(end, 0), length)
		return first, end, min(step, max(length, 1)), nil
	}
	switch {
	case first == end:
		return 0, 0, 1, nil
	case first < 0 || first >= length || end < 0 || end > length:
		return 0, 0, 0, &mismatch{fmt.Sprintf("the index is out of bounds, the list has %d elements", length)}
	case first > end:
		return 0, 0, 0, &mismatch{"the range ends before it begins"}
	case step <= 0:
		return 0, 0, 0, &mismatch{"the step of a range must be positive"}
	}
	return first, end, min(step, length), nil
}

func (e *evaluator) recurse(k kind, in Match, deep int, emit func(Match) error) error {
	if deep > maxVisit {
		return errDepth
	}
	held := 0
	switch v := in.Value.(type) {
	case map[string]any:
		held = len(v)
	case []any:
		held = len(v)
		if err := e.spend(held); err != nil {
			return err
		}
	}
	if text, _ := in.Value.(string); k == recurse || held > 0 || text != "" {
		if err := emit(in); err != nil {
			return err
		}
	}
	if held == 0 {
		return nil
	}
	return e.iterate(in, func(i Match) error { return e.recurse(k, i, deep+1, emit) })
}
