// SPDX-License-Identifier: Apache-2.0

package gotemplate

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"regexp"
	"strings"
	"text/template"
	"unicode"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/values"
)

// maxIndent is the deepest indentation of a block.
const maxIndent = 100

// functions returns those of all templates; load reads from the folder.
func functions(files fs.FS) template.FuncMap {
	return template.FuncMap{
		"base64": func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) },
		"indent": indent,
		"json":   asJSON,
		"load": func(name string) (string, error) {
			text, err := fs.ReadFile(files, name)
			return string(text), err
		},
		"quote":      quote,
		"regexMatch": regexp.MatchString,
		"resources":  resources,
		checker:      printed,
	}
}

// indent puts spaces before each line. Characters that only YAML takes for the end of a
// line would end the block, and are refused.
func indent(by int, text string) (string, error) {
	if by < 0 || by > maxIndent {
		return "", fmt.Errorf("indent takes 0 to %d spaces", maxIndent)
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && hidden(r) }) {
		return "", errors.New("its text has a control character, which no block can hold; print it with json")
	}
	before := strings.Repeat(" ", by)
	return before + strings.ReplaceAll(text, "\n", "\n"+before), nil
}

// asJSON returns a value as one line that YAML reads as JSON does: characters that end a
// line or are dropped in YAML are escaped, which JSON does not require.
func asJSON(value any) (string, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, r := range string(raw) {
		if hidden(r) {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.String(), nil
}

// hidden reports whether YAML does not allow a character in a text.
func hidden(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == '\ufeff'
}

// quote returns a single value as a quoted text.
func quote(value any) (string, error) {
	if err := checkSingle(value); err != nil {
		return "", err
	}
	return asJSON(fmt.Sprint(value))
}

// resources returns those of the last requirement that matches a container, or an empty
// map.
func resources(requirements []any, container string) (any, error) {
	var out any = map[string]any{}
	for _, r := range requirements {
		entry, _ := r.(map[string]any)
		expression, _ := entry[values.ContainerIDRegex].(string)
		fits, err := regexp.MatchString(expression, container)
		if err != nil {
			return nil, err
		}
		if fits && expression != "" {
			out = entry[values.Resources]
		}
	}
	return out, nil
}
