// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"strings"
	"text/template"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// word is a value that is printed as it must be typed in a shell.
type word string

// String returns the word, quoted if a shell needs that.
func (w word) String() string { return ShellWord(string(w)) }

// wordFuncs are the functions of the templates: raw prints a value unquoted, words
// quotes each word of a value with several.
var wordFuncs = template.FuncMap{
	"raw": func(w word) string { return string(w) },
	"words": func(w word) string {
		out := strings.Fields(string(w))
		for i := range out {
			out[i] = ShellWord(out[i])
		}
		return strings.Join(out, " ")
	},
}

// Fix returns the text of a fix; "" if there is none.
func Fix(f fleet.Fix) string {
	switch f := f.(type) {
	case fleet.Advice:
		return string(f)
	case fleet.Remedy:
		line, err := fill(wordings[f.Code], f)
		if err != nil || line == "" {
			return string(f.Code) // not reached: a test checks that every code has a wording
		}
		return line
	}
	return ""
}

// fill fills the values of a remedy into its wording.
func fill(text string, r fleet.Remedy) (string, error) {
	values := map[string]any{"on": "", "where": ""}
	if r.On != nil {
		values["on"], values["where"] = ContextFlag(r.On), r.On.Where()
	}
	for key, value := range r.Values {
		values[key] = word(value)
	}
	t, err := template.New("remedy").Option("missingkey=error").Funcs(wordFuncs).Parse(text)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = t.Execute(&out, values)
	return out.String(), err
}

// Told returns the text of a note, followed by joint and its fix if it has one.
func Told(n fleet.Note, joint string) string {
	if fix := Fix(n.Fix); fix != "" {
		return n.Text + joint + fix
	}
	return n.Text
}

// ContextFlag returns " --context NAME" for a command about c; empty if c has no context.
func ContextFlag(c *fleet.Cluster) string {
	if c.Context == "" {
		return ""
	}
	return " --context " + ShellWord(c.Context)
}

// ShellWord returns s, quoted for a POSIX shell if it needs quoting.
func ShellWord(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+=,", r)
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
