// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"strings"
)

// OrElse returns the first text that is not empty.
func OrElse(text, other string) string {
	if text != "" {
		return text
	}
	return other
}

// Many counts things: "1 work", "2 works".
func Many(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// AreMany counts things: "1 work is", "2 works are".
func AreMany(n int, what string) string {
	if n == 1 {
		return Many(n, what) + " is"
	}
	return Many(n, what) + " are"
}

// OneLine folds an error text into one line.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// listedAtMost bounds how many names a message contains.
const listedAtMost = 8

// Listed joins names, up to a limit.
func Listed(names []string) string {
	if len(names) > listedAtMost {
		return strings.Join(names[:listedAtMost], ", ") + fmt.Sprintf(" and %d more", len(names)-listedAtMost)
	}
	return strings.Join(names, ", ")
}
