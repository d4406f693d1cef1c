// SPDX-License-Identifier: Apache-2.0

package path

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

// Kubectl parses one JSONPath as kubectl does, without braces.
func Kubectl(text string) (*Expression, error) {
	return parse(func() *node { return (&dialect{}).list(&node{}, parsed(text)) })
}

// parsed returns a path as client-go parses it.
func parsed(text string) *jsonpath.ListNode {
	parser, err := jsonpath.Parse("path", "{"+text+"}")
	if err != nil {
		panic(fault{fmt.Errorf("it is not a JSONPath: %w", err)})
	}
	list, ok := parser.Root.Nodes[0].(*jsonpath.ListNode)
	if !ok || len(parser.Root.Nodes) != 1 {
		panic(fault{errors.New("it is not one expression; write it without braces")})
	}
	return list
}

// dialect defines how the nodes of client-go's parser are interpreted: as kubectl does,
// or leniently.
type dialect struct {
	lenient bool
	// lifted are the nodes that marks stand for.
	lifted []*node
}

// list appends the nodes of an expression to n.
func (d *dialect) list(n *node, list *jsonpath.ListNode) *node {
	for _, next := range list.Nodes {
		if n = d.step(n, next); d.lenient && n.kind == literal && len(list.Nodes) > 1 {
			panic(errNotUnderstood)
		}
	}
	return n
}

var errNotUnderstood = fault{errors.New("it is not understood")}

// step appends one node to n.
func (d *dialect) step(n *node, next jsonpath.Node) *node {
	switch next := next.(type) {
	case *jsonpath.ListNode:
		return d.list(n, next)
	case *jsonpath.FieldNode:
		if d.lenient && next.Value == "" {
			panic(errNotUnderstood)
		}
		return then(n, d.field(next.Value))
	case *jsonpath.ArrayNode:
		if d.lenient && next.Params[2].Known && next.Params[2].Value <= 0 {
			panic(errNotUnderstood)
		}
		return then(n, d.array(next.Params))
	case *jsonpath.WildcardNode:
		return then(n, lenient(&node{kind: iterate}))
	case *jsonpath.RecursiveNode:
		return then(n, &node{kind: descend})
	case *jsonpath.UnionNode:
		return d.union(n, next)
	case *jsonpath.FilterNode:
		return d.filter(n, next)
	}
	return d.value(n, next)
}

// value appends a literal to n.
func (d *dialect) value(n *node, next jsonpath.Node) *node {
	switch next := next.(type) {
	case *jsonpath.TextNode:
		if l := d.mark(next.Text); l != nil {
			return l
		}
		return both(instead, n, &node{kind: literal, value: next.Text})
	case *jsonpath.IntNode:
		return then(n, &node{kind: literal, value: int64(next.Value)})
	case *jsonpath.FloatNode:
		return then(n, &node{kind: literal, value: next.Value})
	case *jsonpath.BoolNode:
		return then(n, &node{kind: literal, value: next.Value})
	case *jsonpath.IdentifierNode:
		if !d.lenient {
			// It fails when it is evaluated, not when it is parsed.
			return both(instead, n, &node{kind: unknown, name: next.Name})
		}
	}
	panic(errNotUnderstood)
}

func (d *dialect) field(name string) *node {
	switch l := d.mark(name); {
	case !d.lenient:
		return &node{kind: key, name: name}
	case l == nil:
		return lenient(&node{kind: field, name: name})
	case l.kind == literal:
		return lenient(&node{kind: field, name: l.value.(string)})
	default:
		return lenient(l)
	}
}

func (d *dialect) array(bounds [3]jsonpath.ParamsEntry) *node {
	switch {
	case !d.lenient:
		return &node{kind: span, bounds: bounds}
	case bounds[1].Derived:
		return lenient(&node{kind: index, at: bounds[0].Value})
	}
	return lenient(&node{kind: slice, bounds: bounds})
}

// union gives all results of the first operand for every value before those of the
// second, as kubectl does; so each operand has its own copy of what comes before it.
func (d *dialect) union(n *node, union *jsonpath.UnionNode) *node {
	var all *node
	for _, list := range union.Nodes {
		if next := d.list(n, list); all == nil {
			all = next
		} else {
			all = both(comma, all, next)
		}
	}
	return all
}

func (d *dialect) filter(n *node, filter *jsonpath.FilterNode) *node {
	test := d.list(&node{}, filter.Left)
	compares := filter.Operator != "exists"
	if compares {
		test = both(match, test, d.list(&node{}, filter.Right))
		test.name = filter.Operator
	}
	switch {
	case !d.lenient && !compares:
		test = &node{kind: exists, kids: []*node{test}}
		fallthrough
	case !d.lenient:
		return then(then(n, &node{kind: elements}), chosen(test))
	case compares && !slices.Contains(comparisons, filter.Operator):
		panic(errNotUnderstood)
	case compares:
		test.kind = compare
	}
	return then(then(n, lenient(&node{kind: iterate})), chosen(test))
}

// JSONPath parses a JSONPath with or without braces and "$". The path skips what does not
// exist.
func JSONPath(text string) (*Expression, error) {
	s := strings.TrimSpace(text)
	if strings.HasPrefix(s, "{") != strings.HasSuffix(s, "}") {
		return nil, errors.New("has only one of two braces; remove or complete them")
	}
	s = strings.TrimPrefix(strings.TrimSuffix(strings.TrimPrefix(s, "{"), "}"), "$")
	if s == "" || s == "." {
		return nil, errors.New("names the whole object; name a field, for example .spec.replicas")
	}
	if s[0] != '.' && s[0] != '[' {
		s = "." + s
	}
	r := &reader{lexer: lexer{text: s, single: true}}
	return parse(func() *node {
		n := &node{}
		for r.at < len(s) {
			n = then(n, r.step())
		}
		return n
	})
}

// reader parses the steps of a lenient JSONPath.
type reader struct {
	lexer
	lifted []*node
}

func (r *reader) step() *node {
	n, rest := &node{}, r.text[r.at:]
	switch {
	case strings.HasPrefix(rest, ".."):
		n.kind = descend
		r.at += 2
	case rest[0] == '.':
		r.at++
	case rest[0] != '[':
		panic(failure(r.at, "a step must begin with \".\" or \"[\"; correct it"))
	}
	if strings.HasPrefix(r.text[r.at:], "[") {
		return then(n, r.bracket())
	}
	return then(n, r.named())
}

// named parses a name or "*". A backslash makes a dot or bracket part of the name.
func (r *reader) named() *node {
	begin := r.at
	var name strings.Builder
	for ; r.at < len(r.text) && r.text[r.at] != '.' && r.text[r.at] != '['; r.at++ {
		if r.text[r.at] == '\\' && r.at+1 < len(r.text) {
			r.at++
		}
		name.WriteByte(r.text[r.at])
	}
	switch r.text[begin:r.at] {
	case "":
		panic(failure(begin, "a name is missing; correct it"))
	case "*":
		return lenient(&node{kind: iterate})
	}
	return lenient(&node{kind: field, name: name.String()})
}

// bracket parses ['name'], [0], [1:3], [*], a list of them, or a filter.
func (r *reader) bracket() *node {
	begin := r.at
	text := r.lift()
	x, err := parse(func() *node { return (&dialect{lenient: true, lifted: r.lifted}).list(&node{}, parsed(text)) })
	if err != nil {
		panic(failure(begin, "the brackets are not understood; write a name in quotes, a number, "+
			"a range such as 1:3, \"*\", or a filter such as [?(@.name==\"a\")]"))
	}
	return x.root
}

// lift returns the text of a bracket with marks in place of strings and "*": client-go
// would interpret the dots and commas in them, and does not accept names with other
// characters.
func (r *reader) lift() string {
	var out, open []byte
	for r.at < len(r.text) {
		c := r.text[r.at]
		if len(open) == 1 && strings.IndexByte("],:(", c) >= 0 {
			out = bytes.TrimRight(out, " ")
		}
		switch c {
		case '\'', '"':
			out = r.addMark(out, &node{kind: literal, value: r.quoted(word{at: r.at}, c).text})
			continue
		case '*':
			if out[len(out)-1] == '.' {
				panic(failure(r.at, "found \"*\" instead of the name of a field; correct the expression"))
			}
			out = r.addMark(out, &node{kind: iterate})
		case '[', '(':
			open = append(open, closing[c])
			out = append(out, c)
		case ']', ')':
			if open[len(open)-1] != c {
				panic(r.unclosed(strconv.Quote(string(c)), open))
			}
			open = open[:len(open)-1]
			out = append(out, c)
		case '{', '}', '$':
			panic(failure(r.at, "%q has no meaning here; remove it", c))
		case ' ', '\t', '\r', '\n':
			out = blank(out, len(open) > 1)
		default:
			out = append(out, c)
		}
		r.at++
		if len(open) == 0 {
			return string(out)
		}
	}
	panic(r.unclosed("the end", open))
}

// blank writes a space. client-go accepts spaces only in filters, and rejects those that
// separate words.
func blank(out []byte, filter bool) []byte {
	if !filter && strings.IndexByte("[,:?", out[len(out)-1]) >= 0 {
		return out
	}
	return append(out, ' ')
}

var closing = map[byte]byte{'[': ']', '(': ')'}

func (r *reader) unclosed(what string, open []byte) fault {
	return failure(r.at, "found %s instead of %q; correct the expression", what, string(open[len(open)-1]))
}

// marks begin with a character that no path contains.
const marks = "\x00"

// addMark appends the mark of a node.
func (r *reader) addMark(out []byte, n *node) []byte {
	r.lifted = append(r.lifted, n)
	return fmt.Appendf(out, "'%s%d'", marks, len(r.lifted)-1)
}

// mark returns the node that a mark stands for; nil if the text is not a mark.
func (d *dialect) mark(text string) *node {
	number, ok := strings.CutPrefix(text, marks)
	if at, err := strconv.Atoi(number); ok && err == nil && at >= 0 && at < len(d.lifted) {
		return d.lifted[at]
	}
	return nil
}
