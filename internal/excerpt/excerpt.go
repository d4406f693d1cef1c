// SPDX-License-Identifier: Apache-2.0

// Package excerpt truncates untrusted text of any length for messages and API objects.
// Truncated text ends with "..." and is valid UTF-8.
package excerpt

import "strings"

const dots = "..."

// Of returns text, or its first length bytes and dots if it is longer.
func Of(text string, length int) string {
	text = strings.ToValidUTF8(text, "")
	if len(text) <= length {
		return text
	}
	return strings.ToValidUTF8(text[:length], "") + dots
}

// Within returns text in at most limit bytes, including the dots.
func Within(text string, limit int) string {
	if text = strings.ToValidUTF8(text, ""); len(text) > limit {
		return Of(text, max(limit-len(dots), 0))
	}
	return text
}
