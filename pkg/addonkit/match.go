// SPDX-License-Identifier: Apache-2.0

package addonkit

import (
	"strings"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// Matches reports whether a pattern matches an object; a * in its name or namespace stands
// for any text.
func Matches(pattern, at workv1.ResourceIdentifier) bool {
	return pattern.Group == at.Group && pattern.Resource == at.Resource && like(pattern.Namespace, at.Namespace) && like(pattern.Name, at.Name)
}

// like matches text against a pattern in which a * stands for any text.
func like(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	rest, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}
