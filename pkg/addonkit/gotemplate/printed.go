// SPDX-License-Identifier: Apache-2.0

package gotemplate

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"text/template/parse"
)

// checker is the function that checks what a template prints.
const checker = "printed"

// escaping are the functions whose result is safe to print whatever it holds; load returns
// the author's own text.
var escaping = []string{"json", "quote", "base64", "indent", "load", checker}

// checkPrinted appends the checker to every action that prints a value and does not end in
// an escaping function.
func checkPrinted(node parse.Node) {
	switch n := node.(type) {
	case *parse.ListNode:
		if n == nil {
			return
		}
		for _, inner := range n.Nodes {
			checkPrinted(inner)
		}
	case *parse.ActionNode:
		if len(n.Pipe.Decl) == 0 && !escapes(n.Pipe) {
			name := parse.NewIdentifier(checker).SetPos(n.Pos)
			n.Pipe.Cmds = append(n.Pipe.Cmds, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: n.Pos, Args: []parse.Node{name}})
		}
	case *parse.IfNode:
		checkBranch(&n.BranchNode)
	case *parse.RangeNode:
		checkBranch(&n.BranchNode)
	case *parse.WithNode:
		checkBranch(&n.BranchNode)
	}
}

func checkBranch(n *parse.BranchNode) {
	checkPrinted(n.List)
	checkPrinted(n.ElseList)
}

// escapes reports whether a pipeline ends in an escaping function.
func escapes(pipe *parse.PipeNode) bool {
	last := pipe.Cmds[len(pipe.Cmds)-1]
	name, ok := last.Args[0].(*parse.IdentifierNode)
	return ok && slices.Contains(escaping, name.Ident)
}

// printed returns a value that is safe as it is in plain, quoted and flow YAML, and refuses
// any other, without quoting it.
func printed(value any) (any, error) {
	if v := reflect.ValueOf(value); v.Kind() == reflect.String {
		if what := unfit(v.String()); what != "" {
			return nil, fmt.Errorf("its text has %s, which would change the YAML around it; print it with json or quote", what)
		}
	}
	return value, checkSingle(value)
}

// checkSingle refuses what is not a single value.
func checkSingle(value any) error {
	switch reflect.ValueOf(value).Kind() {
	case reflect.Invalid:
		return errors.New("it has no value; test it with if, or give it a default")
	case reflect.Map, reflect.Slice, reflect.Array, reflect.Struct, reflect.Pointer:
		return errors.New("it is not a single value; print it with json")
	}
	return nil
}

// Characters that have a meaning in YAML: anywhere, and at the start of a text.
const (
	signs        = "\"'\\{}[],#"
	openingSigns = "&*!|>%@`"
)

// unfit describes what in a text could change the YAML around it, or returns "".
func unfit(text string) string {
	switch at := strings.IndexAny(text, signs); {
	case strings.ContainsFunc(text, hidden):
		return "a line break or control character"
	case at >= 0:
		return "the character " + text[at:at+1]
	case strings.Contains(text, ": ") || strings.HasSuffix(text, ":"):
		return "a colon before a space"
	case strings.TrimSpace(text) != text:
		return "a space at its start or end"
	case strings.HasPrefix(text, "---") || strings.HasPrefix(text, "..."):
		return "the marker " + text[:3] + " at its start"
	case text == "-" || text == "?" || strings.HasPrefix(text, "- ") || strings.HasPrefix(text, "? "),
		text != "" && strings.Contains(openingSigns, text[:1]):
		return "the character " + text[:1] + " at its start"
	}
	return ""
}
