// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"strings"
	"text/template"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// wordings put into words what the library says would help: by code, a template of the
// remedy's values. "on" is the flag that names its cluster, "where" that cluster in
// words. What stands behind six spaces is a remark on the command before it.
type wordings map[fleet.RemedyCode]string

// allWordings are the wordings by the areas of the library.
func allWordings() []wordings {
	return []wordings{sharedWordings, hubWordings, clusterWordings, addonWordings, workWordings, checkWordings}
}

// word is a value that is printed as it has to be typed.
type word string

// String quotes the word where a shell needs that.
func (w word) String() string { return ShellWord(string(w)) }

// wordFuncs are what a template of a wording may use: raw prints a value as it is,
// words one that holds several words, each as it has to be typed.
var wordFuncs = template.FuncMap{
	"raw": func(w word) string { return string(w) },
	"words": func(w word) string {
		var out []string
		for _, one := range strings.Fields(string(w)) {
			out = append(out, ShellWord(one))
		}
		return strings.Join(out, " ")
	},
}

// Fix is what helps, in words; "" where nothing is known to.
func Fix(f fleet.Fix) string {
	switch f := f.(type) {
	case fleet.Advice:
		return string(f)
	case fleet.Remedy:
		for _, w := range allWordings() {
			if text, ok := w[f.Code]; ok {
				line, err := worded(text, f)
				if err != nil {
					break
				}
				return line
			}
		}
		return string(f.Code) // a test keeps every code and its values worded
	}
	return ""
}

// worded fills the values of a remedy into its wording.
func worded(text string, r fleet.Remedy) (string, error) {
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

// Told is a note with what helps behind it, which joint joins to the text.
func Told(n fleet.Note, joint string) string {
	if fix := Fix(n.Fix); fix != "" {
		return n.Text + joint + fix
	}
	return n.Text
}

// ContextFlag is " --context NAME" for a command that shall run on a cluster, empty for
// a cluster without a context.
func ContextFlag(c *fleet.Cluster) string {
	if c.Context == "" {
		return ""
	}
	return " --context " + ShellWord(c.Context)
}

// ShellWord quotes s for a shell where it needs quoting.
func ShellWord(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+=,", r)
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
