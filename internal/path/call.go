// SPDX-License-Identifier: Apache-2.0

package path

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// functions are the functions that an expression may call, with the numbers of arguments
// that each accepts. None of them produces a growing value.
var functions = map[string][]int{
	"select": {1}, "has": {1}, "test": {1}, "contains": {1}, "startswith": {1}, "endswith": {1},
	"any": {0, 1}, "all": {0, 1}, "first": {0, 1}, "last": {0}, "recurse": {0}, "empty": {0},
	"not": {0}, "length": {0}, "type": {0}, "IN": {1},
}

// allowed lists the functions in messages.
func allowed() string { return strings.Join(slices.Sorted(maps.Keys(functions)), ", ") }

// errEnough ends an evaluation that has everything it needs.
var errEnough = errors.New("enough")

// call runs one of the functions.
func (e *evaluator) call(n *node, in Match, emit func(Match) error) error {
	switch n.name {
	case "select":
		return e.run(n.kids[0], in, func(i Match) error {
			if !truthy(i.Value) {
				return nil
			}
			return emit(in)
		})
	case "empty":
		return nil
	case "recurse":
		return e.recurse(recurse, in, 0, emit)
	case "first", "last":
		return e.ends(n, in, emit)
	case "any", "all":
		return e.quantify(n, in, emit)
	case "IN":
		return e.in(n, in, emit)
	case "has", "contains", "startswith", "endswith":
		return e.run(n.kids[0], in, func(i Match) error {
			holds, err := e.predicate(n.name, in.Value, i.Value)
			if err != nil {
				return err
			}
			return emit(Match{Value: holds})
		})
	}
	v, err := e.convert(n, in.Value)
	if err != nil {
		return err
	}
	return emit(Match{Value: v})
}

// convert evaluates the functions that map one value to one value.
func (e *evaluator) convert(n *node, v any) (any, error) {
	switch n.name {
	case "not":
		return !truthy(v), nil
	case "type":
		return []string{"null", "boolean", "boolean", "number", "string", "array", "object"}[rank(v)], nil
	case "test":
		s, ok := v.(string)
		if !ok {
			return nil, &mismatch{"test needs a string and got " + typeOf(v) + "; correct the path, or end the step with ?"}
		}
		if err := e.spend(len(s) * (len(n.name) + n.at) / 64); err != nil {
			return nil, err
		}
		return n.pattern.MatchString(s), nil
	}
	switch x := v.(type) {
	case nil:
		return int64(0), nil
	case string:
		return int64(utf8.RuneCountInString(x)), e.spend(len(x) / 16)
	case []any:
		return int64(len(x)), nil
	case map[string]any:
		return int64(len(x)), nil
	}
	return nil, &mismatch{typeOf(v) + " has no length; correct the path"}
}

// ends emits the first or last element, or the first result of the argument.
func (e *evaluator) ends(n *node, in Match, emit func(Match) error) error {
	if len(n.kids) == 0 {
		at := 0
		if n.name == "last" {
			at = -1
		}
		return e.index(at, in, emit)
	}
	var first *Match
	err := e.run(n.kids[0], in, func(i Match) error {
		first = &i
		return errEnough
	})
	if first == nil || !errors.Is(err, errEnough) {
		return err
	}
	return emit(*first)
}

// quantify emits whether any or all elements are true.
func (e *evaluator) quantify(n *node, in Match, emit func(Match) error) error {
	test := &node{}
	if len(n.kids) > 0 {
		test = n.kids[0]
	}
	found := false
	err := e.iterate(in, func(i Match) error {
		return e.run(test, i, func(r Match) error {
			if truthy(r.Value) == (n.name == "any") {
				found = true
				return errEnough
			}
			return nil
		})
	})
	if err != nil && !found {
		return err
	}
	return emit(Match{Value: found == (n.name == "any")})
}

// in emits whether the value is among the results of the argument.
func (e *evaluator) in(n *node, in Match, emit func(Match) error) error {
	found := false
	err := e.run(n.kids[0], in, func(i Match) error {
		order, err := e.order(in.Value, i.Value, 0)
		if err == nil && order == 0 {
			found = true
			err = errEnough
		}
		return err
	})
	if err != nil && !found {
		return err
	}
	return emit(Match{Value: found})
}

func (e *evaluator) predicate(name string, v, argument any) (bool, error) {
	part, isText := argument.(string)
	switch x := v.(type) {
	case nil:
		if name == "has" {
			return false, nil
		}
	case map[string]any:
		if isText && name == "has" {
			_, there := x[part]
			return there, nil
		}
	case []any:
		if at, ok := argument.(int64); ok && name == "has" {
			return at >= 0 && at < int64(len(x)), nil
		}
	case string:
		if isText && name != "has" {
			return textTests[name](x, part), e.spend(len(x) / 16)
		}
	}
	return false, &mismatch{fmt.Sprintf("%s cannot compare %s with %s; correct the path, or end the step with ?", name, typeOf(v), typeOf(argument))}
}

// textTests are the tests of a text for a part.
var textTests = map[string]func(text, part string) bool{
	"contains": strings.Contains, "startswith": strings.HasPrefix, "endswith": strings.HasSuffix,
}
