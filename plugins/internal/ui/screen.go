// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strings"

	"golang.org/x/term"
)

// Screen draws a table again and again in the same place of a terminal.
type Screen struct {
	u *UI
	// lines are what the last call drew.
	lines []string
}

// Screen returns a screen on stdout, or nil if that is no terminal on which the cursor moves.
func (u *UI) Screen() *Screen {
	if !IsTerminal(u.Streams.Out) || u.Streams.Getenv("TERM") == "dumb" {
		return nil
	}
	return &Screen{u: u}
}

// Draw replaces what the last call drew by a table and, unless it is empty, a line of trouble below
// it. Rows for which the terminal is too low are counted instead.
func (s *Screen) Draw(t Table, wide, noHeaders bool, trouble string) error {
	width, height := s.size()
	var table, notes bytes.Buffer
	u := &UI{Streams: s.u.Streams, Program: s.u.Program, Quiet: s.u.Quiet, Color: "never"}
	if s.u.coloured(s.u.Streams.Out) {
		u.Color = "always"
	}
	u.Streams.Out, u.Streams.Err, u.Streams.Width = &table, &notes, width
	if err := u.List(t, wide, noHeaders); err != nil {
		return err
	}
	if trouble != "" {
		u.Quiet = false
		u.Warn("%s", strings.ReplaceAll(trouble, "\n", "; "))
	}
	lines := within(split(table.String()), split(notes.String()), width, height-1)
	var out strings.Builder
	if up := rowsOf(s.lines, width); up > 0 {
		fmt.Fprintf(&out, "\x1b[%dA", up)
	}
	out.WriteString("\r")
	for _, line := range lines {
		out.WriteString(line + "\x1b[K\n")
	}
	out.WriteString("\x1b[J")
	s.lines = lines
	_, err := fmt.Fprint(s.u.Streams.Out, out.String())
	return wrapOutput(err)
}

// size returns the columns and lines of the terminal.
func (s *Screen) size() (width, height int) {
	width, height = 80, 24
	if f, ok := s.u.Streams.Out.(*os.File); ok {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 0 {
			width, height = w, h
		}
	}
	return width, height
}

// within joins a table and the notes below it, and leaves out rows at the end of the table until
// both fit into some lines of a terminal.
func within(table, notes []string, width, height int) []string {
	n := min(len(table), height)
	for ; n > 0; n-- {
		if rowsOf(table[:n], width)+rowsOf(notes, width)+min(1, len(table)-n) <= height {
			break
		}
	}
	out := table[:n:n]
	if more := len(table) - n; more > 0 {
		out = append(out, cut(fmt.Sprintf("and %d more", more), width))
	}
	return append(out, notes...)
}

// rowsOf returns how many lines of a terminal some lines take; longer ones are wrapped.
func rowsOf(lines []string, width int) int {
	rows := 0
	for _, line := range lines {
		_, columns := measure(line, math.MaxInt)
		rows += max(1, (columns+width-1)/width)
	}
	return rows
}

func split(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}
