// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/client-go/util/jsonpath"
)

// maxPath bounds a path, in bytes.
const maxPath = 1024

// errCost ends a path that costs too much.
var errCost = fmt.Errorf("it visits more than %d fields, or all paths of the object more than %d; name the way to the value instead of searching for it", maxSteps, allSteps)

// find evaluates a path over the object.
func (r *reader) find(path string) ([]any, error) {
	expression, err := parse(path)
	if err != nil {
		return nil, err
	}
	granted := min(maxSteps, r.all)
	r.steps = granted
	out, err := r.list([]any{r.object}, expression)
	r.all -= granted - max(r.steps, 0)
	return out, err
}

// parse reads a path: one expression, without braces.
func parse(path string) (*jsonpath.ListNode, error) {
	if len(path) > maxPath {
		return nil, fmt.Errorf("it has %d bytes, more than %d; shorten it", len(path), maxPath)
	}
	parser, err := jsonpath.Parse("path", "{"+path+"}")
	if err != nil {
		return nil, fmt.Errorf("it is not a JSONPath: %w", err)
	}
	expression, ok := parser.Root.Nodes[0].(*jsonpath.ListNode)
	if !ok || len(parser.Root.Nodes) != 1 {
		return nil, errors.New("it is not one expression; write it without braces")
	}
	return expression, nil
}

// CheckPath tells why no value can ever be read by a path, nil if one can.
func CheckPath(path string) error {
	_, err := parse(path)
	return err
}

// list evaluates the nodes of an expression one after the other.
func (r *reader) list(in []any, list *jsonpath.ListNode) ([]any, error) {
	var err error
	for _, node := range list.Nodes {
		if in, err = r.node(in, node); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// node evaluates one node for each value of in.
func (r *reader) node(in []any, node jsonpath.Node) ([]any, error) {
	if !r.spend(1 + len(in)) {
		return nil, errCost
	}
	switch node := node.(type) {
	case *jsonpath.ListNode:
		return r.list(in, node)
	case *jsonpath.FieldNode:
		return field(in, node.Value), nil
	case *jsonpath.ArrayNode:
		return r.array(in, node.Params)
	case *jsonpath.WildcardNode:
		return r.wildcard(in)
	case *jsonpath.RecursiveNode:
		var out []any
		return out, r.descend(in, &out)
	case *jsonpath.UnionNode:
		return r.union(in, node)
	case *jsonpath.FilterNode:
		return r.filter(in, node)
	case *jsonpath.TextNode:
		return []any{node.Text}, nil
	case *jsonpath.IntNode:
		return slices.Repeat([]any{int64(node.Value)}, len(in)), nil
	case *jsonpath.FloatNode:
		return slices.Repeat([]any{node.Value}, len(in)), nil
	case *jsonpath.BoolNode:
		return slices.Repeat([]any{node.Value}, len(in)), nil
	case *jsonpath.IdentifierNode:
		return nil, fmt.Errorf("%s is not understood; begin the names of fields with a dot", quote(node.Name))
	}
	return nil, fmt.Errorf("%s is not understood", quote(node.String()))
}

// spend takes steps off the bound; false means that there are none left.
func (r *reader) spend(steps int) bool {
	r.steps -= steps
	return r.steps >= 0
}

// field is the values of a key, where there is one.
func field(in []any, key string) []any {
	var out []any
	for _, v := range in {
		if m, ok := v.(map[string]any); ok {
			if value, there := m[key]; there {
				out = append(out, value)
			}
		}
	}
	return out
}

// array is the elements of lists from a place to another.
func (r *reader) array(in []any, params [3]jsonpath.ParamsEntry) ([]any, error) {
	var out []any
	for _, v := range in {
		if v == nil {
			continue
		}
		list, ok := v.([]any)
		if !ok {
			return nil, fmt.Errorf("%s is taken for a list", typeOf(v))
		}
		first, end, step, err := bounds(params, len(list))
		if err != nil {
			return nil, err
		}
		if !r.spend((end - first) / step) {
			return nil, errCost
		}
		for i := first; i < end; i += step {
			out = append(out, list[i])
		}
	}
	return out, nil
}

// bounds are the first place, the place after the last, and the step of an
// index or a range in a list of that length. They count from the end where they
// are negative.
func bounds(params [3]jsonpath.ParamsEntry, length int) (first, end, step int, err error) {
	first, end, step = 0, length, 1
	if params[0].Known {
		first = params[0].Value
	}
	if first < 0 {
		first += length
	}
	if params[1].Known {
		end = params[1].Value
	}
	if end < 0 || (end == 0 && params[1].Derived) {
		end += length
	}
	if params[2].Known {
		step = params[2].Value
	}
	switch {
	case first == end:
		return 0, 0, 1, nil
	case first < 0 || first >= length || end < 0 || end > length:
		return 0, 0, 0, fmt.Errorf("the index is out of bounds, the list has %d elements", length)
	case first > end:
		return 0, 0, 0, errors.New("the range ends before it begins")
	case step <= 0:
		return 0, 0, 0, errors.New("the step of a range must be positive")
	}
	return first, end, min(step, length), nil
}

// wildcard is everything that maps and lists hold.
func (r *reader) wildcard(in []any) ([]any, error) {
	var out []any
	for _, v := range in {
		held, ok := r.children(v)
		if !ok {
			return nil, errCost
		}
		out = append(out, held...)
	}
	return out, nil
}

// children are the values in a list, or in a map in the order of its keys;
// false means that they cost too much.
func (r *reader) children(v any) ([]any, bool) {
	switch v := v.(type) {
	case []any:
		return v, r.spend(len(v))
	case map[string]any:
		if !r.spend(len(v)) {
			return nil, false
		}
		out := make([]any, 0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = append(out, v[key])
		}
		return out, true
	}
	return nil, true
}

// descend gathers maps, lists and texts at any depth.
func (r *reader) descend(in []any, out *[]any) error {
	for _, v := range in {
		held, ok := r.children(v)
		if !ok {
			return errCost
		}
		if text, isText := v.(string); len(held) > 0 || (isText && text != "") {
			*out = append(*out, v)
		}
		if err := r.descend(held, out); err != nil {
			return err
		}
	}
	return nil
}

// union is what several expressions find.
func (r *reader) union(in []any, union *jsonpath.UnionNode) ([]any, error) {
	var out []any
	for _, list := range union.Nodes {
		found, err := r.list(in, list)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// filter is the elements of lists for which a comparison holds.
func (r *reader) filter(in []any, filter *jsonpath.FilterNode) ([]any, error) {
	var out []any
	for _, v := range in {
		list, ok := v.([]any)
		if !ok {
			return nil, fmt.Errorf("%s is taken for a list", typeOf(v))
		}
		if !r.spend(len(list)) {
			return nil, errCost
		}
		for _, item := range list {
			holds, err := r.holds(item, filter)
			if err != nil {
				return nil, err
			}
			if holds {
				out = append(out, item)
			}
		}
	}
	return out, nil
}

// operatorExists is the operator of a filter that compares nothing.
const operatorExists = "exists"

// holds tells whether a filter holds for one element. A side that leads nowhere
// compares with nothing.
func (r *reader) holds(item any, filter *jsonpath.FilterNode) (bool, error) {
	left, err := r.list([]any{item}, filter.Left)
	if filter.Operator == operatorExists && !errors.Is(err, errCost) {
		return err == nil && len(left) > 0, nil
	}
	if err != nil {
		return false, err
	}
	right, err := r.list([]any{item}, filter.Right)
	if err != nil {
		return false, err
	}
	switch {
	case len(left) == 0 || len(right) == 0:
		return false, nil
	case len(left) > 1 || len(right) > 1:
		return false, errors.New("a filter can only compare one value with another")
	}
	return compare(left[0], filter.Operator, right[0])
}

// compare compares numbers with numbers, texts with texts and booleans with
// booleans.
func compare(a any, operator string, b any) (bool, error) {
	order, alike := orderOf(a, b)
	if _, isBool := a.(bool); !alike || (isBool && operator != "==" && operator != "!=") {
		return false, errKinds
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
	case ">=":
		return order >= 0, nil
	}
	return false, fmt.Errorf("%s is no operator of a filter", quote(operator))
}

// orderOf is negative, zero or positive as a is less than, equal to or more
// than b; of booleans it only tells whether they are equal. False means that
// they cannot be compared.
func orderOf(a, b any) (int, bool) {
	switch a := a.(type) {
	case string:
		b, ok := b.(string)
		return cmp.Compare(a, b), ok
	case bool:
		b, ok := b.(bool)
		if a == b {
			return 0, ok
		}
		return 1, ok
	}
	return compareNumbers(a, b)
}

// compareNumbers compares whole numbers exactly and others as fractions; false
// means that one is no number.
func compareNumbers(a, b any) (int, bool) {
	x, wholeA := a.(int64)
	y, wholeB := b.(int64)
	if wholeA && wholeB {
		return cmp.Compare(x, y), true
	}
	f, okA := fraction(a)
	g, okB := fraction(b)
	return cmp.Compare(f, g), okA && okB
}

func fraction(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

var errKinds = errors.New("a filter compares values of different kinds, or kinds that have no order")
