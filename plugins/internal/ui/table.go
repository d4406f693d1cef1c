// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
)

// Table is a listing or a report, ready to be shown.
type Table struct {
	// Heads are the column heads in upper case. Wide columns come last.
	Heads []string
	// Wide is the number of heads that only -o wide shows.
	Wide int
	// Rows hold as many cells as there are heads.
	Rows [][]string
	// Least are the heads of columns that go first where a terminal is too narrow for
	// all, before those at the right.
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

// List prints t as kubectl prints resources. A wide one has all of its columns, however
// narrow the terminal is.
func (u *UI) List(t Table, wide, noHeaders bool) error {
	if !wide {
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
	return u.emit(out.String(), !noHeaders)
}

// Report prints t as a report: left aligned, three blanks between columns. A wide one
// has all of its columns, however narrow the terminal is.
func (u *UI) Report(t Table, wide bool) error {
	if !wide {
		t = u.fit(t.Narrow())
	}
	var out bytes.Buffer
	none := tw.Border{Left: tw.Off, Right: tw.Off, Top: tw.Off, Bottom: tw.Off}
	table := tablewriter.NewTable(&out,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{Borders: none,
			Settings: tw.Settings{Separators: tw.SeparatorsNone, Lines: tw.LinesNone}})),
		tablewriter.WithHeaderAlignment(tw.AlignLeft), tablewriter.WithRowAlignment(tw.AlignLeft),
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
	return u.emit(out.String(), true)
}

// words finds the cells of a printed row: they are two or more blanks apart.
var words = regexp.MustCompile(`(^|\s{2,})(\S+)`)

// emit writes a printed table: state words coloured, trailing blanks removed.
func (u *UI) emit(text string, header bool) error {
	on := u.coloured(u.Streams.Out)
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		line = strings.TrimRight(line, " \t")
		if on && (i > 0 || !header) {
			line = words.ReplaceAllStringFunc(line, func(m string) string {
				word := strings.TrimLeft(m, " ")
				return m[:len(m)-len(word)] + paint(true, ToneOf(word), word)
			})
		}
		if _, err := fmt.Fprintln(u.Streams.Out, line); err != nil {
			return fmt.Errorf("writing output: %w", err)
		}
	}
	return nil
}
