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
	return parse(func() *node {
		p.advance()
		root := p.pipe()
		if p.word.class != wordEnd {
			panic(p.unexpected("the end"))
		}
		return root
	})
}

// parser parses jq by recursive descent, one method for each level of precedence.
type parser struct {
	lexer
	word    word
	nesting int
}

func (p *parser) advance() { p.word = p.next() }

// after returns n, and goes on to the next word.
func (p *parser) after(n *node) *node {
	p.advance()
	return n
}

// unexpected returns the fault of a word that appears where another one is required.
func (p *parser) unexpected(wanted string) fault {
	w := p.word
	switch {
	case w.is("$") || w.is("@") || w.is("{") || w.is("="), w.class == wordSign && len(w.text) > 1 && strings.HasSuffix(w.text, "=") && !slices.Contains(
		comparisons, w.text,
	):
		return failure(
			w.at,
			"%s of jq is not supported here, an expression may only name fields; write a path such as .spec.items[] | select(.name == \"a\") | .size",
			w.describe(),
		)
	case w.class == wordName && slices.Contains(refusedNames, w.text):
		return failure(w.at, "%s of jq is not supported here, an expression may only name fields; write a path with these functions: %s", w.describe(), allowed())
	}
	return failure(w.at, "found %s instead of %s; correct the expression", w.describe(), wanted)
}

func (p *parser) expect(sign string) {
	if !p.word.is(sign) {
		panic(p.unexpected("\"" + sign + "\""))
	}
	p.advance()
}

// comparisons are the operators that compare.
var comparisons = []string{"==", "!=", "<=", ">=", "<", ">"}

// levels are the signs and words that join two operands, loosest binding first.
var levels = []struct {
	kind  kind
	joins []string
}{{pipe, []string{"|"}}, {comma, []string{","}}, {alternative, []string{"//"}}, {or, []string{"or"}}, {and, []string{"and"}}, {compare, comparisons}}

// pipe parses a whole expression.
func (p *parser) pipe() *node { return p.level(0) }

// level parses operands that a sign or word joins, left-associative. Comparisons do not
// chain.
func (p *parser) level(at int) *node {
	if at == len(levels) {
		return p.postfix()
	}
	left := p.level(at + 1)
	for l := levels[at]; (p.word.class == wordSign || p.word.class == wordName) && slices.Contains(l.joins, p.word.text); {
		operator := p.word.text
		p.advance()
		left = both(l.kind, left, p.level(at+1))
		if l.kind == compare {
			left.name = operator
			break
		}
	}
	return left
}

// postfix parses a term and the steps that follow it.
func (p *parser) postfix() *node {
	n := p.term()
	for {
		switch {
		case p.word.is("?"):
			n = p.after(lenient(n))
		case p.word.is("["):
			n = p.brackets(n)
		case p.word.is("."):
			p.advance()
			n = p.afterDot(n, false)
		default:
			return n
		}
	}
}

// term parses what a chain of steps begins with.
func (p *parser) term() *node {
	w := p.word
	switch {
	case w.is("."):
		p.advance()
		return p.afterDot(&node{}, true)
	case w.is(".."):
		return p.after(&node{kind: recurse})
	case w.is("("):
		return p.enclosed()
	case w.class == wordString:
		return p.after(&node{kind: literal, value: w.text})
	case w.class == wordNumber, w.is("-"):
		return &node{kind: literal, value: p.signed()}
	case w.class == wordName:
		return p.function()
	}
	panic(p.unexpected("a path"))
}

// enclosed parses an expression in parentheses.
func (p *parser) enclosed() *node {
	p.advance()
	if p.nesting++; p.nesting > maxNesting {
		panic(failure(p.word.at, "nests deeper than %d levels; simplify it", maxNesting))
	}
	n := p.pipe()
	p.nesting--
	p.expect(")")
	return n
}

// signed parses a number with its sign.
func (p *parser) signed() any {
	negative := p.word.is("-")
	if negative {
		p.advance()
	}
	if p.word.class != wordNumber {
		panic(p.unexpected("a number"))
	}
	v := p.word.number
	if x, whole := v.(int64); whole && negative {
		v = -x
	} else if negative {
		v = -v.(float64)
	}
	p.advance()
	return v
}

// afterDot parses the name after a dot. The first dot of a chain may stand alone.
func (p *parser) afterDot(n *node, first bool) *node {
	w := p.word
	switch {
	case (w.class == wordName || w.class == wordString) && !w.spaced:
		return p.after(then(n, &node{kind: field, name: w.text}))
	case w.is("["):
		return p.brackets(n)
	case first:
		return n
	}
	panic(p.unexpected("the name of a field"))
}

// brackets parses [], ["name"] or [0].
func (p *parser) brackets(n *node) *node {
	p.advance()
	switch {
	case p.word.is("]"):
		return p.after(then(n, &node{kind: iterate}))
	case p.word.class == wordString:
		n = p.after(then(n, &node{kind: field, name: p.word.text}))
	case p.word.class == wordNumber, p.word.is("-"):
		n = then(n, p.index())
		if !p.word.is(":") {
			break
		}
		fallthrough
	case p.word.is(":"):
		panic(failure(p.word.at, "slices of jq are not supported here; name the elements, or choose them by select(...)"))
	default:
		panic(p.unexpected("a string, a number or \"]\""))
	}
	p.expect("]")
	return n
}

func (p *parser) index() *node {
	at := p.word.at
	n, ok := p.signed().(int64)
	if !ok || int64(int32(n)) != n { //nolint:gosec // the comparison is the check
		panic(failure(at, "an index must be a whole number; correct it"))
	}
	return &node{kind: index, at: int(n)}
}

// function parses a call or a literal that is a name.
func (p *parser) function() *node {
	w := p.word
	switch w.text {
	case "null":
		return p.after(&node{kind: literal})
	case "true", "false":
		return p.after(&node{kind: literal, value: w.text == "true"})
	}
	counts, known := functions[w.text]
	switch {
	case known:
	case slices.Contains(refusedNames, w.text):
		panic(p.unexpected("a path"))
	default:
		panic(failure(w.at, "%q is not a supported function; use %s", w.text, allowed()))
	}
	p.advance()
	n := &node{kind: call, name: w.text}
	if p.word.is("(") {
		n.kids = append(n.kids, p.enclosed())
	}
	if !slices.Contains(counts, len(n.kids)) {
		panic(failure(w.at, "%s does not take %d arguments; correct it", w.text, len(n.kids)))
	}
	if n.name == "test" {
		n.compile(w.at)
	}
	return n
}

// compile compiles the pattern of test.
func (n *node) compile(at int) {
	text, ok := n.kids[0].value.(string)
	switch {
	case n.kids[0].kind != literal || !ok:
		panic(failure(at, "test needs a string literal as its pattern; write it in quotes"))
	case len(text) > maxPattern || strings.Contains(text, "{"):
		panic(failure(at, "a pattern may have %d bytes and no counted repetition; simplify it", maxPattern))
	}
	pattern, err := regexp.Compile(text)
	if err != nil {
		panic(failure(at, "the pattern is not a regular expression: %s; correct it", strings.TrimPrefix(err.Error(), "error parsing regexp: ")))
	}
	n.pattern, n.at = pattern, len(text)
}
