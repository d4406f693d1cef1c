// SPDX-License-Identifier: Apache-2.0

package path

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// class is the kind of a word.
type class int

const (
	wordEnd class = iota
	wordSign
	wordName
	wordString
	wordNumber
)

// word is one word of an expression.
type word struct {
	class class
	// text is a sign, a name, or the content of a string.
	text string
	// number is an int64 or a float64.
	number any
	// at is its offset in bytes; spaced is set if white space precedes it.
	at     int
	spaced bool
}

func (w word) is(sign string) bool { return w.class == wordSign && w.text == sign }

// describe returns the word for a message.
func (w word) describe() string {
	switch w.class {
	case wordEnd:
		return "the end"
	case wordString:
		return "a string"
	case wordNumber:
		return "a number"
	}
	return strconv.Quote(w.text)
}

// signs are tried in this order.
var signs = []string{
	"?//", "//=", "..", "//", "==", "!=", "<=", ">=", "|=", "+=", "-=", "*=", "/=", "%=", "&&", "||", "=~",
	".", "[", "]", "(", ")", "|", ",", "?", "<", ">", ":", "=", "@", "$", "*", "-", "{", "}",
}

// lexer splits an expression into words.
type lexer struct {
	text string
	at   int
	// single allows strings in single quotes.
	single bool
}

func (l *lexer) next() word {
	begin := l.at
	for l.at < len(l.text) && strings.IndexByte(" \t\r\n", l.text[l.at]) >= 0 {
		l.at++
	}
	w := word{at: l.at, spaced: l.at > begin}
	if l.at == len(l.text) {
		return w
	}
	c := l.text[l.at]
	switch {
	case c == '"' || (c == '\'' && l.single):
		return l.quoted(w, c)
	case c >= '0' && c <= '9':
		return l.number(w)
	case nameByte(c):
		w.class, w.text = wordName, l.name()
		return w
	}
	for _, s := range signs {
		if strings.HasPrefix(l.text[l.at:], s) {
			l.at += len(s)
			w.class, w.text = wordSign, s
			return w
		}
	}
	r, _ := utf8.DecodeRuneInString(l.text[l.at:])
	panic(failure(w.at, "%q has no meaning here; remove it, or put the name in quotes: .[\"a-name\"]", r))
}

func nameByte(c byte) bool {
	return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
}

func (l *lexer) name() string {
	begin := l.at
	for l.at < len(l.text) && (nameByte(l.text[l.at]) || (l.text[l.at] >= '0' && l.text[l.at] <= '9')) {
		l.at++
	}
	return l.text[begin:l.at]
}

func (l *lexer) number(w word) word {
	for l.at < len(l.text) && strings.IndexByte("0123456789.eE", l.text[l.at]) >= 0 {
		l.at++
	}
	text := l.text[w.at:l.at]
	w.class = wordNumber
	if l.at < len(l.text) && nameByte(l.text[l.at]) {
		panic(failure(w.at, "a number runs into a name; put a space between them"))
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		w.number = n
	} else if f, err := strconv.ParseFloat(text, 64); err == nil {
		w.number = f
	} else {
		panic(failure(w.at, "%s is not a number; correct it", text))
	}
	return w
}

// quoted parses a string as in JSON.
func (l *lexer) quoted(w word, quote byte) word {
	w.class = wordString
	var raw strings.Builder
	raw.WriteByte('"')
	for l.at++; l.at < len(l.text); l.at++ {
		c := l.text[l.at]
		switch {
		case c == quote:
			l.at++
			raw.WriteByte('"')
			if err := json.Unmarshal([]byte(raw.String()), &w.text); err != nil {
				panic(failure(w.at, "the string is not a valid JSON string; correct what follows its backslashes"))
			}
			return w
		case c == '\\' && l.at+1 < len(l.text):
			l.at++
			if l.text[l.at] == '(' {
				panic(failure(w.at, "strings may not be built from values; write a plain string"))
			}
			if !l.single || l.text[l.at] != '\'' {
				raw.WriteByte('\\')
			}
			raw.WriteByte(l.text[l.at])
		case c == '"':
			raw.WriteString(`\"`)
		default:
			raw.WriteByte(c)
		}
	}
	panic(failure(w.at, "the string has no end; close the quotes"))
}

// fault is what the parsers panic with if an expression is wrong.
type fault struct{ error }

// failure returns the fault at a position of an expression.
func failure(at int, format string, args ...any) fault {
	return fault{fmt.Errorf("at character %d: %s", at+1, fmt.Sprintf(format, args...))}
}

// parse returns the expression that a parser reads, or the error of its fault.
func parse(read func() *node) (x *Expression, err error) {
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(fault)
			if !ok {
				panic(r)
			}
			x, err = nil, f.error
		}
	}()
	return &Expression{read()}, nil
}
