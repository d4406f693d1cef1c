// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
)

// Table is a listing or a report, ready to print.
type Table struct {
	// Heads are the column headers in upper case. Wide columns come last.
	Heads []string
	// Wide is the number of columns that only -o wide shows.
	Wide int
	// Rows have one cell for each of Heads.
	Rows [][]string
	// Least are the columns to leave out first if the terminal is too narrow, before
	// those at the right.
	Least []string
}

// Narrow returns the table without its wide columns.
func (t Table) Narrow() Table {
	n := len(t.Heads) - t.Wide
	out := Table{Heads: t.Heads[:n], Least: t.Least}
	for _, row := range t.Rows {
		out.Rows = append(out.Rows, row[:n])
	}
	return out
}

// List prints t as kubectl prints resources. If wide is set, all columns are printed,
// however narrow the terminal is.
func (u *UI) List(t Table, wide, noHeaders bool) error {
	if t.Rows = tidied(t.Rows); !wide {
		t = u.fit(t.Narrow())
	}
	m := &metav1.Table{}
	for _, head := range t.Heads {
		m.ColumnDefinitions = append(m.ColumnDefinitions, metav1.TableColumnDefinition{Name: head, Type: "string"})
	}
	for _, row := range t.Rows {
		cells := make([]any, len(row))
		for i, c := range row {
			cells[i] = c
		}
		m.Rows = append(m.Rows, metav1.TableRow{Cells: cells})
	}
	var out bytes.Buffer
	if err := printers.NewTablePrinter(printers.PrintOptions{NoHeaders: noHeaders, Wide: true}).PrintObj(m, &out); err != nil {
		return fmt.Errorf("printing table: %w", err)
	}
	return u.emit(out.String(), !noHeaders, t.Rows)
}

// Report prints t as a report: left aligned, with three spaces between columns. If wide is
// set, all columns are printed, however narrow the terminal is.
func (u *UI) Report(t Table, wide bool) error {
	if t.Rows = tidied(t.Rows); !wide {
		t = u.fit(t.Narrow())
	}
	var out bytes.Buffer
	none := tw.Border{Left: tw.Off, Right: tw.Off, Top: tw.Off, Bottom: tw.Off}
	table := tablewriter.NewTable(&out,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{Borders: none,
			Settings: tw.Settings{Separators: tw.SeparatorsNone, Lines: tw.LinesNone}})),
		tablewriter.WithTrimSpace(tw.Off), tablewriter.WithHeaderAlignment(tw.AlignLeft), tablewriter.WithRowAlignment(tw.AlignLeft),
		tablewriter.WithHeaderAutoFormat(tw.Off), tablewriter.WithRowAutoWrap(tw.WrapNone), tablewriter.WithHeaderAutoWrap(tw.WrapNone),
		tablewriter.WithPadding(tw.Padding{Left: "", Right: "   ", Overwrite: true}),
	)
	table.Header(t.Heads)
	for _, row := range t.Rows {
		if err := table.Append(row); err != nil {
			return fmt.Errorf("printing report: %w", err)
		}
	}
	if err := table.Render(); err != nil {
		return fmt.Errorf("printing report: %w", err)
	}
	return u.emit(out.String(), true, t.Rows)
}

// tidied returns rows that a terminal shows and does not obey.
func tidied(rows [][]string) [][]string {
	out := make([][]string, len(rows))
	for i, row := range rows {
		for _, cell := range row {
			out[i] = append(out[i], tidy(cell))
		}
	}
	return out
}

// emit writes a formatted table without trailing spaces. It colours words that name a
// state only now, because escape codes would break the alignment.
func (u *UI) emit(text string, header bool, rows [][]string) error {
	on := u.coloured(u.Streams.Out)
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\n")
		switch {
		case header:
			header = false
		case len(rows) > 0:
			if on {
				line = tint(line, rows[0])
			}
			rows = rows[1:]
		}
		if _, err := fmt.Fprintln(u.Streams.Out, line); err != nil {
			return fmt.Errorf("writing output: %w", err)
		}
	}
	return nil
}

// tint colours the first word of each cell in the line of a row.
func tint(line string, cells []string) string {
	var out strings.Builder
	for _, cell := range cells {
		cell = strings.TrimSpace(cell)
		before, after, found := strings.Cut(line, cell)
		if cell == "" || !found {
			continue
		}
		word, _, _ := strings.Cut(cell, " ")
		out.WriteString(before + paint(true, toneOf(word), word) + cell[len(word):])
		line = after
	}
	return out.String() + line
}
