// SPDX-License-Identifier: Apache-2.0

package node

import "strings"

// expand replaces $(NAME) by known variables as Kubernetes does in command, arguments and
// environment: an unknown name stays as it is, and $$ is an escaped dollar sign.
func expand(text string, known map[string]string) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, "$")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		switch {
		case strings.HasPrefix(after, "$"):
			out.WriteByte('$')
			text = after[1:]
		case strings.HasPrefix(after, "("):
			text = expandName(&out, after, known)
		default:
			out.WriteByte('$')
			text = after
		}
	}
}

// expandName writes what "(NAME)..." stands for and returns the rest.
func expandName(out *strings.Builder, text string, known map[string]string) string {
	name, rest, closed := strings.Cut(text[1:], ")")
	if !closed {
		out.WriteString("$")
		return text
	}
	if value, ok := known[name]; ok {
		out.WriteString(value)
	} else {
		out.WriteString("$(" + name + ")")
	}
	return rest
}
