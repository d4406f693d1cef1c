// SPDX-License-Identifier: Apache-2.0

package ignore

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

const (
	// maxSteps bounds what the evaluation of all expressions of a strategy over
	// one object may cost. A step is the visit of one value, the comparison of
	// some ten bytes, or an entry of the result; this many take some ten
	// milliseconds and some ten MiB at the very most.
	maxSteps = 200_000
	// maxVisit bounds how deep an object may nest below ".." and in comparisons.
	maxVisit = 1_000
)

var (
	errSteps = errors.New("costs too much on this object; select fewer values, or name the fields one by one")
	errDepth = fmt.Errorf("the object nests deeper than %d levels; name the fields one by one", maxVisit)
)

// mismatch is a failure that "?" forgives.
type mismatch struct{ text string }

// Error is the text.
func (m *mismatch) Error() string { return m.text }

// step is one step of a path, linked to those before it. The root has no step.
type step struct {
	parent *step
	// key is a string or an int.
	key any
}

// item is a value that an expression comes by. Only values that lie in the
// object have a place.
type item struct {
	value any
	place *step
	lies  bool
}

func (i item) child(key, value any) item {
	if !i.lies {
		return item{value: value}
	}
	return item{value: value, place: &step{parent: i.place, key: key}, lies: true}
}

// evaluator runs expressions and counts what they cost.
type evaluator struct{ steps int }

// spend counts the cost of work on n bytes or values.
func (e *evaluator) spend(n int) error {
	if e.steps += n; e.steps > maxSteps {
		return errSteps
	}
	return nil
}

// run calls emit with each result of n on in.
func (e *evaluator) run(n *node, in item, emit func(item) error) error {
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
	case token:
		return e.token(n.name, in, emit)
	case iterate, slice:
		return e.elements(n, in, emit)
	case recurse:
		return e.recurse(in, 0, emit)
	case literal:
		return emit(item{value: n.value})
	case pipe:
		return e.run(n.kids[0], in, func(i item) error { return e.run(n.kids[1], i, emit) })
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
	}
	return e.call(n, in, emit)
}

// optional passes over failures of the operand, not over those of what is done
// with its results.
func (e *evaluator) optional(n *node, in item, emit func(item) error) error {
	var later error
	err := e.run(n, in, func(i item) error {
		later = emit(i)
		return later
	})
	var m *mismatch
	if later == nil && errors.As(err, &m) {
		return nil
	}
	return err
}

func (e *evaluator) alternative(n *node, in item, emit func(item) error) error {
	found := false
	err := e.optional(n.kids[0], in, func(i item) error {
		if !truthy(i.value) {
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

func (e *evaluator) field(name string, in item, emit func(item) error) error {
	switch v := in.value.(type) {
	case nil:
		return emit(in.child(name, nil))
	case map[string]any:
		return emit(in.child(name, v[name]))
	}
	return &mismatch{fmt.Sprintf("%s has no field %q; correct the path", typeOf(in.value), name)}
}

func (e *evaluator) index(at int, in item, emit func(item) error) error {
	switch v := in.value.(type) {
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
	return &mismatch{fmt.Sprintf("%s has no element %d; correct the path", typeOf(in.value), at)}
}

func (e *evaluator) token(name string, in item, emit func(item) error) error {
	switch v := in.value.(type) {
	case map[string]any:
		if child, there := v[name]; there {
			return emit(in.child(name, child))
		}
	case []any:
		if at, ok := pointerIndex(name); ok && at < len(v) {
			return emit(in.child(at, v[at]))
		}
	}
	return nil
}

// elements gives the elements of a list or the entries of an object. Null has
// none: a field that is not there is nothing to ignore.
func (e *evaluator) elements(n *node, in item, emit func(item) error) error {
	switch v := in.value.(type) {
	case nil:
		return nil
	case []any:
		from, to := bounds(n, len(v))
		for i := from; i < to; i++ {
			if err := emit(in.child(i, v[i])); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		if n.kind == slice {
			break
		}
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
	return &mismatch{typeOf(in.value) + " has no elements; correct the path, or end the step with ?"}
}

// bounds are those of the elements in a list of that length.
func bounds(n *node, length int) (from, to int) {
	to = length
	if n.kind == iterate {
		return 0, to
	}
	clamp := func(at int) int {
		if at < 0 {
			at += length
		}
		return min(max(at, 0), length)
	}
	if n.from != nil {
		from = clamp(*n.from)
	}
	if n.to != nil {
		to = clamp(*n.to)
	}
	return from, to
}

func (e *evaluator) recurse(in item, deep int, emit func(item) error) error {
	if deep > maxVisit {
		return errDepth
	}
	if err := e.spend(1); err != nil {
		return err
	}
	if err := emit(in); err != nil {
		return err
	}
	switch in.value.(type) {
	case map[string]any, []any:
		return e.elements(&node{kind: iterate}, in, func(i item) error { return e.recurse(i, deep+1, emit) })
	}
	return nil
}

// operate gives true or false for each pair of results of the operands. As in
// jq, comparisons run their right operand first, and "and" and "or" run it only
// if they need it.
func (e *evaluator) operate(n *node, in item, emit func(item) error) error {
	left, right := n.kids[0], n.kids[1]
	if n.kind == compare {
		return e.run(right, in, func(b item) error {
			return e.run(left, in, func(a item) error {
				holds, err := e.compare(n.name, a.value, b.value)
				if err != nil {
					return err
				}
				return emit(item{value: holds})
			})
		})
	}
	return e.run(left, in, func(a item) error {
		if truthy(a.value) == (n.kind == or) {
			return emit(item{value: n.kind == or})
		}
		return e.run(right, in, func(b item) error { return emit(item{value: truthy(b.value)}) })
	})
}

func (e *evaluator) compare(operator string, a, b any) (bool, error) {
	order, err := e.order(a, b, 0)
	if err != nil {
		return false, err
	}
	switch operator {
	case "==":
		return order == 0, nil
	case "!=":
		return order != 0, nil
	case "<":
		return order < 0, nil
	case "<=":
		return order <= 0, nil
	case ">":
		return order > 0, nil
	}
	return order >= 0, nil
}

// order is that of jq: null, false, true, numbers, strings, lists, objects.
func (e *evaluator) order(a, b any, deep int) (int, error) {
	if deep > maxVisit {
		return 0, errDepth
	}
	if err := e.spend(1); err != nil {
		return 0, err
	}
	if c := cmp.Compare(rank(a), rank(b)); c != 0 {
		return c, nil
	}
	switch x := a.(type) {
	case string:
		y := b.(string)
		return strings.Compare(x, y), e.spend(min(len(x), len(y)) / 16)
	case []any:
		return e.orderLists(x, b.([]any), deep)
	case map[string]any:
		return e.orderMaps(x, b.(map[string]any), deep)
	case nil, bool:
		return 0, nil
	}
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	if x.CanInt() && y.CanInt() {
		return cmp.Compare(x.Int(), y.Int()), nil
	}
	return cmp.Compare(float(x), float(y)), nil
}

func (e *evaluator) orderLists(a, b []any, deep int) (int, error) {
	for i := range min(len(a), len(b)) {
		if c, err := e.order(a[i], b[i], deep+1); c != 0 || err != nil {
			return c, err
		}
	}
	return cmp.Compare(len(a), len(b)), nil
}

func (e *evaluator) orderMaps(a, b map[string]any, deep int) (int, error) {
	if err := e.spend(len(a) + len(b)); err != nil {
		return 0, err
	}
	keys := slices.Sorted(maps.Keys(a))
	if c := slices.Compare(keys, slices.Sorted(maps.Keys(b))); c != 0 {
		return c, nil
	}
	for _, key := range keys {
		if c, err := e.order(a[key], b[key], deep+1); c != 0 || err != nil {
			return c, err
		}
	}
	return 0, nil
}

func float(v reflect.Value) float64 {
	if v.CanInt() {
		return float64(v.Int())
	}
	return v.Float()
}

func rank(v any) int {
	switch x := v.(type) {
	case nil:
		return 0
	case bool:
		if x {
			return 2
		}
		return 1
	case string:
		return 4
	case []any:
		return 5
	case map[string]any:
		return 6
	}
	return 3
}

func typeOf(v any) string {
	return []string{"null", "a boolean", "a boolean", "a number", "a string", "a list", "an object"}[rank(v)]
}

func truthy(v any) bool { return v != nil && v != false }
