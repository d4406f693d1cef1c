// SPDX-License-Identifier: Apache-2.0

// Package excerpt cuts texts of others, which may have any length, for messages
// and API objects. What is cut ends with "..." and is valid as UTF-8.
package excerpt

import "strings"

const dots = "..."

// Of is text, or so many bytes of it and dots where it is longer.
func Of(text string, length int) string {
	text = strings.ToValidUTF8(text, "")
	if len(text) <= length {
		return text
	}
	return strings.ToValidUTF8(text[:length], "") + dots
}

// Within is text in so many bytes at most, the dots counted.
func Within(text string, limit int) string {
	text = strings.ToValidUTF8(text, "")
	if len(text) <= limit {
		return text
	}
	return Of(text, max(limit-len(dots), 0))
}
