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
	// leastCell is how much of a long cell stays, the mark of the cut included.
	leastCell = 14
	// mark is where a cell was cut. It is as wide as it has bytes, which is what kubectl's
	// tables count.
	mark = ".."
)

// kept are the columns without which a row says nothing.
var kept = []string{"NAME", "CLUSTER", "STATE", "STATUS", "RESULT"}

// fit makes a table as narrow as the terminal: long cells are cut with a mark at their
// end; where that is not enough, whole columns are left out and named on stderr. What
// states are called is never cut.
func (u *UI) fit(t Table) Table {
	width := u.tableWidth()
	if width == 0 {
		return t
	}
	var left []string
	widths := t.widths()
	for !t.narrow(widths, width) {
		i := t.dispensable()
		if i < 0 {
			break // what remains is as narrow as it can be
		}
		left = append(left, t.Heads[i])
		t = t.without(i)
		widths = t.widths()
	}
	if len(left) > 0 {
		u.Note("not shown, for want of room: %s; -o wide shows all", strings.Join(left, ", "))
	}
	return t.cut(widths)
}

// tableWidth is the width of the terminal that tables go to; 0 for none.
func (u *UI) tableWidth() int {
	if isTerminal(u.Streams.Out) || u.Streams.Width > 0 {
		return u.Streams.width()
	}
	return 0
}

// widths returns how wide the columns are.
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

// narrow takes from the widest columns until all fit, and tells whether they do.
func (t Table) narrow(widths []int, width int) bool {
	over := (len(widths)-1)*gap - width
	for _, w := range widths {
		over += w
	}
	for ; over > 0; over-- {
		widest := -1
		for i, w := range widths {
			if w > max(leastCell, utf8.RuneCountInString(t.Heads[i])) && t.Heads[i] != "STATE" && t.Heads[i] != "STATUS" && (widest < 0 || w > widths[widest]) {
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

// cut shortens the cells that are wider than their column.
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

// dispensable is the column that goes first where there is no room: those that the table
// names, then from the right; -1 when every one of the rest is kept.
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

// without is the table without a column.
func (t Table) without(i int) Table {
	out := Table{Heads: slices.Delete(slices.Clone(t.Heads), i, i+1), Least: t.Least}
	for _, row := range t.Rows {
		out.Rows = append(out.Rows, slices.Delete(slices.Clone(row), i, i+1))
	}
	return out
}
