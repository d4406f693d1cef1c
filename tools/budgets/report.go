// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// finding is one location that counts against a figure.
type finding struct {
	// File is the path below the root, with slashes; Line is 0 for a finding
	// about a whole file or folder.
	File string
	Line int
	Text string
}

// figure is one measured number with its budget.
type figure struct {
	Name     string
	Value    string
	Budget   string
	Within   bool
	Findings []finding
}

// report prints the table of all figures and then every finding of the exceeded ones (of
// all figures if all is set). It returns whether every figure is within its budget.
func report(w io.Writer, figures []figure, all bool) bool {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "FIGURE\tVALUE\tBUDGET\tVERDICT")
	within := true
	for _, f := range figures {
		verdict := "ok"
		if !f.Within {
			verdict, within = "BROKEN", false
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", f.Name, f.Value, f.Budget, verdict)
	}
	table.Flush()
	for _, f := range figures {
		if len(f.Findings) == 0 || (f.Within && !all) {
			continue
		}
		fmt.Fprintf(w, "\n%s (%s, budget %s):\n", f.Name, f.Value, f.Budget)
		printFindings(w, f.Findings)
	}
	return within
}

// printFindings prints findings sorted by location, one a line.
func printFindings(w io.Writer, findings []finding) {
	slices.SortStableFunc(findings, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	for _, f := range findings {
		if f.Line == 0 {
			fmt.Fprintf(w, "  %s: %s\n", f.File, f.Text)
			continue
		}
		fmt.Fprintf(w, "  %s:%d: %s\n", f.File, f.Line, f.Text)
	}
}

// share returns a figure that counts how many of total items are right; every finding is
// one that is not.
func share(name string, total int, findings []finding) figure {
	return figure{
		Name:     name,
		Value:    fmt.Sprintf("%d of %d", total-len(findings), total),
		Budget:   "all",
		Within:   len(findings) == 0,
		Findings: findings,
	}
}
