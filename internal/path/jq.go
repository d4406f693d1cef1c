// SPDX-License-Identifier: Apache-2.0

package path

import (
	"regexp"
	"slices"
	"strings"
)

const (
	// maxNesting bounds the nesting of parentheses and calls.
	maxNesting = 30
	// maxPattern bounds a regular expression, in bytes.
	maxPattern = 128
)

// refusedNames are words of jq that this package does not support, in addition to all
// functions that are not in the table.
var refusedNames = []string{
	"def", "reduce", "foreach", "label", "break", "if", "then", "else", "elif", "end", "try", "catch",
	"import", "include", "as", "input", "inputs", "env", "limit", "until", "while", "range", "repeat",
}

// JQ parses a path expression of jq.
func JQ(text string) (*Expression, error) {
	p := &parser{lexer: lexer{text: text}}
	if err := p.advance(); err != nil {
		return nil, err
	}
	root, err := p.pipe()
	if err != nil {
		return nil, err
	}
	if p.word.class != wordEnd {
		return nil, p.unexpected("the end")
	}
	return &Expression{root}, nil
}

// parser parses jq by recursive descent, one method for each level of precedence.
type parser struct {
	lexer
	word    word
	nesting int
}

func (p *parser) advance() error {
	var err error
	p.word, err = p.next()
	return err
}

// unexpected returns an error about a word that appears where another one is required.
func (p *parser) unexpected(wanted string) error {
	w := p.word
	switch {
	case w.is("$") || w.is("@") || w.is("{") || w.is("="), w.class == wordSign && len(w.text) > 1 && strings.HasSuffix(w.text, "=") && !slices.Contains(
		comparisons, w.text,
	):
		return fault(
			w.at,
			"%s of jq is not supported here, an expression may only name fields; write a path such as .spec.items[] | select(.name == \"a\") | .size",
			w.describe(),
		)
	case w.class == wordName && slices.Contains(refusedNames, w.text):
		return fault(w.at, "%s of jq is not supported here, an expression may only name fields; write a path with these functions: %s", w.describe(), allowed())
	}
	return fault(w.at, "found %s instead of %s; correct the expression", w.describe(), wanted)
}

func (p *parser) expect(sign string) error {
	if !p.word.is(sign) {
		return p.unexpected("\"" + sign + "\"")
	}
	return p.advance()
}

// nested calls parse one level deeper.
func (p *parser) nested(parse func() (*node, error)) (*node, error) {
	if p.nesting++; p.nesting > maxNesting {
		return nil, fault(p.word.at, "nests deeper than %d levels; simplify it", maxNesting)
	}
	n, err := parse()
	p.nesting--
	return n, err
}

// comparisons are the operators that compare.
var comparisons = []string{"==", "!=", "<=", ">=", "<", ">"}

// levels are the signs and words that join two operands, loosest binding first.
var levels = []struct {
	kind  kind
	joins []string
}{{pipe, []string{"|"}}, {comma, []string{","}}, {alternative, []string{"//"}}, {or, []string{"or"}}, {and, []string{"and"}}, {compare, comparisons}}

// pipe parses a whole expression.
func (p *parser) pipe() (*node, error) { return p.level(0) }

// level parses operands that a sign or word joins, left-associative. Comparisons do not
// chain.
func (p *parser) level(at int) (*node, error) {
	if at == len(levels) {
		return p.postfix()
	}
	left, err := p.level(at + 1)
	for l := levels[at]; err == nil && (p.word.class == wordSign || p.word.class == wordName) && slices.Contains(l.joins, p.word.text); {
		operator := p.word.text
		if err = p.advance(); err != nil {
			break
		}
		var right *node
		if right, err = p.level(at + 1); err != nil {
			break
		}
		left = both(l.kind, left, right)
		if l.kind == compare {
			left.name = operator
			break
		}
	}
	return left, err
}

// postfix parses a term and the steps that follow it.
func (p *parser) postfix() (*node, error) {
	n, err := p.term()
	for err == nil {
		switch {
		case p.word.is("?"):
			n, err = lenient(n), p.advance()
		case p.word.is("["):
			n, err = p.brackets(n)
		case p.word.is("."):
			if err = p.advance(); err == nil {
				n, err = p.afterDot(n, false)
			}
		default:
			return n, nil
		}
	}
	return nil, err
}

// term parses what a chain of steps begins with.
func (p *parser) term() (*node, error) {
	w := p.word
	switch {
	case w.is("."):
		if err := p.advance(); err != nil {
			return nil, err
		}
		return p.afterDot(&node{}, true)
	case w.is(".."):
		return &node{kind: recurse}, p.advance()
	case w.is("("):
		if err := p.advance(); err != nil {
			return nil, err
		}
		n, err := p.nested(p.pipe)
		if err != nil {
			return nil, err
		}
		return n, p.expect(")")
	case w.class == wordString:
		return &node{kind: literal, value: w.text}, p.advance()
	case w.class == wordNumber, w.is("-"):
		v, err := p.signed()
		return &node{kind: literal, value: v}, err
	case w.class == wordName:
		return p.function()
	}
	return nil, p.unexpected("a path")
}

// signed parses a number with its sign.
func (p *parser) signed() (any, error) {
	negative := p.word.is("-")
	if negative {
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
	if p.word.class != wordNumber {
		return nil, p.unexpected("a number")
	}
	v := p.word.number
	if x, whole := v.(int64); whole && negative {
		v = -x
	} else if negative {
		v = -v.(float64)
	}
	return v, p.advance()
}

// afterDot parses the name after a dot. The first dot of a chain may stand alone.
func (p *parser) afterDot(n *node, first bool) (*node, error) {
	w := p.word
	switch {
	case (w.class == wordName || w.class == wordString) && !w.spaced:
		return then(n, &node{kind: field, name: w.text}), p.advance()
	case w.is("["):
		return p.brackets(n)
	case first:
		return n, nil
	}
	return nil, p.unexpected("the name of a field")
}

// brackets parses [], ["name"] or [0].
func (p *parser) brackets(n *node) (*node, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	switch {
	case p.word.is("]"):
		return then(n, &node{kind: iterate}), p.advance()
	case p.word.class == wordString:
		inner := &node{kind: field, name: p.word.text}
		if err := p.advance(); err != nil {
			return nil, err
		}
		return then(n, inner), p.expect("]")
	case p.word.class == wordNumber, p.word.is("-"):
		inner, err := p.index()
		if err != nil {
			return nil, err
		}
		if !p.word.is(":") {
			return then(n, inner), p.expect("]")
		}
		fallthrough
	case p.word.is(":"):
		return nil, fault(p.word.at, "slices of jq are not supported here; name the elements, or choose them by select(...)")
	}
	return nil, p.unexpected("a string, a number or \"]\"")
}

func (p *parser) index() (*node, error) {
	at := p.word.at
	v, err := p.signed()
	if err != nil {
		return nil, err
	}
	n, ok := v.(int64)
	if !ok || int64(int32(n)) != n { //nolint:gosec // the comparison is the check
		return nil, fault(at, "an index must be a whole number; correct it")
	}
	return &node{kind: index, at: int(n)}, nil
}

// function parses a call or a literal that is a name.
func (p *parser) function() (*node, error) {
	w := p.word
	switch w.text {
	case "null":
		return &node{kind: literal}, p.advance()
	case "true", "false":
		return &node{kind: literal, value: w.text == "true"}, p.advance()
	}
	counts, known := functions[w.text]
	if !known {
		if slices.Contains(refusedNames, w.text) {
			return nil, p.unexpected("a path")
		}
		return nil, fault(w.at, "%q is not a supported function; use %s", w.text, allowed())
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	n := &node{kind: call, name: w.text}
	if p.word.is("(") {
		if err := p.advance(); err != nil {
			return nil, err
		}
		argument, err := p.nested(p.pipe)
		if err != nil {
			return nil, err
		}
		n.kids = append(n.kids, argument)
		if err := p.expect(")"); err != nil {
			return nil, err
		}
	}
	if counts == nil {
		counts = []int{1}
	}
	if !slices.Contains(counts, len(n.kids)) {
		return nil, fault(w.at, "%s does not take %d arguments; correct it", w.text, len(n.kids))
	}
	return n, p.compile(n, w.at)
}

// compile compiles the pattern of test.
func (p *parser) compile(n *node, at int) error {
	if n.name != "test" {
		return nil
	}
	text, ok := n.kids[0].value.(string)
	switch {
	case n.kids[0].kind != literal || !ok:
		return fault(at, "test needs a string literal as its pattern; write it in quotes")
	case len(text) > maxPattern || strings.Contains(text, "{"):
		return fault(at, "a pattern may have %d bytes and no counted repetition; simplify it", maxPattern)
	}
	pattern, err := regexp.Compile(text)
	if err != nil {
		return fault(at, "the pattern is not a regular expression: %s; correct it", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	n.pattern, n.at = pattern, len(text)
	return nil
}
