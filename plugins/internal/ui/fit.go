// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// gap is the space between two columns.
	gap = 3
	// leastCell is the minimum width of a truncated cell, including the mark.
	leastCell = 14
	// mark ends a truncated cell. It is ASCII, because kubectl's tables count bytes.
	mark = ".."
)

// kept are the columns that are never left out.
var kept = []string{"NAME", "CLUSTER", "STATE", "STATUS", "RESULT"}

// whole are the columns whose cells are never truncated.
var whole = []string{"STATE", "STATUS", "ROLLOUT"}

// fit makes a table as narrow as the terminal: it truncates long cells; if that is not
// enough, it leaves out whole columns and names them on stderr. States are never
// truncated, nor are rollouts.
func (u *UI) fit(t Table) Table {
	width := u.Streams.width()
	if width == 0 {
		return t
	}
	var left []string
	widths := t.widths()
	for !t.narrow(widths, width) {
		i := t.dispensable()
		if i < 0 {
			break // the rest cannot get narrower
		}
		left = append(left, t.Heads[i])
		t = t.without(i)
		widths = t.widths()
	}
	if len(left) > 0 {
		u.Note("columns not shown for lack of space: %s; -o wide shows all", strings.Join(left, ", "))
	}
	return t.cut(widths)
}

// widths returns the width of each column.
func (t Table) widths() []int {
	out := make([]int, len(t.Heads))
	for i, head := range t.Heads {
		out[i] = utf8.RuneCountInString(head)
		for _, row := range t.Rows {
			out[i] = max(out[i], utf8.RuneCountInString(row[i]))
		}
	}
	return out
}

// narrow reduces the widest columns until the table fits, and reports whether it does.
func (t Table) narrow(widths []int, width int) bool {
	over := (len(widths)-1)*gap - width
	for _, w := range widths {
		over += w
	}
	for ; over > 0; over-- {
		widest := -1
		for i, w := range widths {
			if w > max(leastCell, utf8.RuneCountInString(t.Heads[i])) && !slices.Contains(whole, t.Heads[i]) && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return false
		}
		widths[widest]--
	}
	return true
}

// cut truncates the cells that are wider than their column.
func (t Table) cut(widths []int) Table {
	out := Table{Heads: t.Heads}
	for _, row := range t.Rows {
		row = slices.Clone(row)
		for i, cell := range row {
			if runes := []rune(cell); len(runes) > widths[i] {
				row[i] = string(runes[:widths[i]-len(mark)]) + mark
			}
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

// dispensable returns the column to leave out next: first those in Least, then from the
// right; -1 if only columns to keep remain.
func (t Table) dispensable() int {
	for _, head := range t.Least {
		if i := slices.Index(t.Heads, head); i >= 0 {
			return i
		}
	}
	for i := len(t.Heads) - 1; i > 0; i-- {
		if !slices.Contains(kept, t.Heads[i]) {
			return i
		}
	}
	return -1
}

// without returns the table without column i.
func (t Table) without(i int) Table {
	out := Table{Heads: slices.Delete(slices.Clone(t.Heads), i, i+1), Least: t.Least}
	for _, row := range t.Rows {
		out.Rows = append(out.Rows, slices.Delete(slices.Clone(row), i, i+1))
	}
	return out
}
