// SPDX-License-Identifier: Apache-2.0

package path

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
)

// operate emits true or false for each pair of results of the operands. As in jq,
// comparisons evaluate their right operand first, and "and" and "or" evaluate it only if
// they need it.
func (e *evaluator) operate(n *node, in Match, emit func(Match) error) error {
	left, right := n.kids[0], n.kids[1]
	if n.kind == compare {
		return e.run(right, in, func(b Match) error {
			return e.run(left, in, func(a Match) error {
				holds, err := e.compare(n.name, a.Value, b.Value)
				if err != nil {
					return err
				}
				return emit(Match{Value: holds})
			})
		})
	}
	return e.run(left, in, func(a Match) error {
		if truthy(a.Value) == (n.kind == or) {
			return emit(Match{Value: n.kind == or})
		}
		return e.run(right, in, func(b Match) error { return emit(Match{Value: truthy(b.Value)}) })
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

// holds reports whether a kubectl filter is true. It is false if an operand has no value.
func (e *evaluator) holds(n *node, in Match) (bool, error) {
	var sides [2][]any
	for i, side := range n.kids {
		err := e.run(side, in, func(m Match) error {
			sides[i] = append(sides[i], m.Value)
			return nil
		})
		var m *mismatch
		switch {
		case n.kind == exists && (err == nil || errors.As(err, &m)):
			return err == nil && len(sides[i]) > 0, nil
		case err != nil:
			return false, err
		}
	}
	left, right := sides[0], sides[1]
	switch {
	case len(left) == 0 || len(right) == 0:
		return false, nil
	case len(left) > 1 || len(right) > 1:
		return false, &mismatch{"a filter can only compare one value with another"}
	}
	return e.alike(n.name, left[0], right[0])
}

// alike compares numbers with numbers and strings with strings, and reports whether
// booleans are equal.
func (e *evaluator) alike(operator string, a, b any) (bool, error) {
	x, y := rank(a), rank(b)
	booleans := (x == isFalse || x == isTrue) && (y == isFalse || y == isTrue) && (operator == "==" || operator == "!=")
	if !booleans && (x != y || (x != isNumber && x != isText)) {
		return false, &mismatch{"a filter compares values of different kinds, or kinds that have no order"}
	}
	if !slices.Contains(comparisons, operator) {
		return false, &mismatch{fmt.Sprintf("%q is not an operator of a filter", excerpt.Of(operator, maxQuoted))}
	}
	return e.compare(operator, a, b)
}

// order compares as jq does: null, false, true, numbers, strings, lists, objects.
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
	x, wholeA := a.(int64)
	y, wholeB := b.(int64)
	if wholeA && wholeB {
		return cmp.Compare(x, y), nil
	}
	return cmp.Compare(float(a), float(b)), nil
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

func float(v any) float64 {
	if n, whole := v.(int64); whole {
		return float64(n)
	}
	f, _ := v.(float64)
	return f
}

// The kinds of values in the order of jq.
const (
	isNull = iota
	isFalse
	isTrue
	isNumber
	isText
	isList
	isObject
)

func rank(v any) int {
	switch x := v.(type) {
	case nil:
		return isNull
	case bool:
		if x {
			return isTrue
		}
		return isFalse
	case string:
		return isText
	case []any:
		return isList
	case map[string]any:
		return isObject
	}
	return isNumber
}

func typeOf(v any) string {
	return []string{"null", "a boolean", "a boolean", "a number", "a string", "a list", "an object"}[rank(v)]
}

// TypeOf returns the kind of a value, in the words of messages about values of kubectl
// paths.
func TypeOf(v any) string {
	switch v.(type) {
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	case float64:
		return "a fraction"
	case string:
		return "a text"
	case nil:
		return "null"
	}
	return "a value"
}

func truthy(v any) bool { return v != nil && v != false }
