// SPDX-License-Identifier: Apache-2.0

package naming

import (
	"strings"
)

// Nearest returns the name that differs least from word, or "" when none is similar enough.
func Nearest(word string, names []string) string {
	best, bestDistance := "", len(word)/2+1
	for _, name := range names {
		if len(word) > 2 && strings.HasPrefix(name, word) {
			return name
		}
		if d := distance(word, name); d < bestDistance {
			best, bestDistance = name, d
		}
	}
	return best
}

// distance returns the number of single-character edits between a and b; swapping two
// neighbours counts as one.
func distance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
