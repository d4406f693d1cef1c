// SPDX-License-Identifier: Apache-2.0

package ignore

import (
	"errors"
	"slices"
	"strings"
)

// parseJSONPath reads a JSONPath as kubectl knows it, with or without braces
// and "$". What a path does not find is nothing to ignore.
func parseJSONPath(text string) (*node, error) {
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
	p := &pathParser{parser: parser{lexer: lexer{text: s, single: true}}}
	n := &node{}
	for p.at < len(s) {
		next, err := p.step()
		if err != nil {
			return nil, err
		}
		n = then(n, next)
	}
	return n, nil
}

// pathParser reads the steps of a JSONPath; the signs in brackets are words.
type pathParser struct{ parser }

func (p *pathParser) step() (*node, error) {
	rest := p.text[p.at:]
	switch {
	case strings.HasPrefix(rest, ".."):
		p.at += 2
		if strings.HasPrefix(p.text[p.at:], "[") {
			inner, err := p.bracket()
			return then(&node{kind: recurse}, inner), err
		}
		inner, err := p.named()
		return then(&node{kind: recurse}, inner), err
	case strings.HasPrefix(rest, ".["):
		p.at++
		return p.bracket()
	case rest[0] == '.':
		p.at++
		return p.named()
	case rest[0] == '[':
		return p.bracket()
	}
	return nil, fault(p.at, "a step must begin with \".\" or \"[\"; correct it")
}

// named reads a name or "*". A backslash takes a dot or bracket into the name.
func (p *pathParser) named() (*node, error) {
	begin := p.at
	var name strings.Builder
	for ; p.at < len(p.text); p.at++ {
		c := p.text[p.at]
		if c == '.' || c == '[' {
			break
		}
		if c == '\\' && p.at+1 < len(p.text) {
			p.at++
			c = p.text[p.at]
		}
		name.WriteByte(c)
	}
	switch p.text[begin:p.at] {
	case "":
		return nil, fault(begin, "a name is missing; correct it")
	case "*":
		return lenient(&node{kind: iterate}), nil
	}
	return lenient(&node{kind: field, name: name.String()}), nil
}

// bracket reads ['name'], [0], [1:3], [*], a list of them, or a filter.
func (p *pathParser) bracket() (*node, error) {
	p.at++
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.word.is("?") {
		return p.filter()
	}
	var n *node
	for {
		next, err := p.choice()
		if err != nil {
			return nil, err
		}
		if next = lenient(next); n == nil {
			n = next
		} else {
			n = both(comma, n, next)
		}
		if p.word.is(",") {
			if err := p.advance(); err != nil {
				return nil, err
			}
			continue
		}
		return n, p.closed()
	}
}

// closed checks the closing bracket. The word after it is not read, because
// names between dots are not words.
func (p *pathParser) closed() error {
	if !p.word.is("]") {
		return p.unexpected("\"]\"")
	}
	return nil
}

func (p *pathParser) choice() (*node, error) {
	w := p.word
	switch {
	case p.word.is("*"):
		return &node{kind: iterate}, p.advance()
	case p.word.class == wordString:
		return &node{kind: field, name: w.text}, p.advance()
	case p.word.class == wordNumber, p.word.is("-"), p.word.is(":"):
		return p.position()
	}
	return nil, p.unexpected("a name in quotes, a number, \"*\" or a filter")
}

// filter reads ?(@.name == "web"), or ?(@.name) for what is there.
func (p *pathParser) filter() (*node, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	if err := p.expect("("); err != nil {
		return nil, err
	}
	test, err := p.operand()
	if err != nil {
		return nil, err
	}
	if p.word.class == wordSign && slices.Contains(comparisons, p.word.text) {
		operator := p.word.text
		if err := p.advance(); err != nil {
			return nil, err
		}
		right, err := p.operand()
		if err != nil {
			return nil, err
		}
		test = both(compare, test, right)
		test.name = operator
	}
	if err := p.expect(")"); err != nil {
		return nil, err
	}
	chosen := &node{kind: call, name: "select", kids: []*node{test}}
	return then(lenient(&node{kind: iterate}), chosen), p.closed()
}

// operand reads @ with a path of names and indexes, or a literal.
func (p *pathParser) operand() (*node, error) {
	w := p.word
	switch {
	case w.class == wordString:
		return &node{kind: literal, value: w.text}, p.advance()
	case p.word.class == wordNumber, p.word.is("-"):
		v, err := p.signed()
		return &node{kind: literal, value: v}, err
	case p.word.named("true"), p.word.named("false"):
		return &node{kind: literal, value: w.text == "true"}, p.advance()
	case !p.word.is("@"):
		return nil, p.unexpected("\"@\" or a value")
	}
	n := &node{}
	if err := p.advance(); err != nil {
		return nil, err
	}
	for p.word.is(".") || p.word.is("[") {
		dotted := p.word.is(".")
		if err := p.advance(); err != nil {
			return nil, err
		}
		switch {
		case dotted && p.word.class == wordName:
			n = then(n, lenient(&node{kind: field, name: p.word.text}))
			if err := p.advance(); err != nil {
				return nil, err
			}
			continue
		case dotted:
			return nil, p.unexpected("the name of a field")
		}
		inner, err := p.choice()
		if err != nil {
			return nil, err
		}
		n = then(n, lenient(inner))
		if err := p.expect("]"); err != nil {
			return nil, err
		}
	}
	return n, nil
}
