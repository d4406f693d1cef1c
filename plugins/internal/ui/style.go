// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"strings"

	"github.com/fatih/color"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// tone is the colour of a word.
type tone = color.Attribute

// The tones. Only words that name a state are coloured; others are plain.
const (
	plain   = color.Reset
	good    = color.FgGreen
	pending = color.FgYellow
	bad     = color.FgRed
	dim     = color.Faint
)

// coloured reports whether to write escape codes to a stream. The flag decides, then
// NO_COLOR, then TERM=dumb, then whether the stream is a terminal.
func (u *UI) coloured(stream any) bool {
	switch u.Color {
	case "always":
		return true
	case "never":
		return false
	}
	if u.Streams.Getenv("NO_COLOR") != "" || u.Streams.Getenv("TERM") == "dumb" {
		return false
	}
	return IsTerminal(stream)
}

func paint(on bool, t tone, text string) string {
	if !on || text == "" || t == plain {
		return text
	}
	c := color.New(t)
	c.EnableColor()
	return c.Sprint(text)
}

// toneOf returns the tone of a word; words that name no state are plain.
func toneOf(word string) tone {
	switch strings.ToLower(word) {
	case "available", "true", "ready", "ok", "complete", "approved", "issued", "renewed", "✓", "[ok]":
		return good
	case "pendingaccept", "pendingcsr", "joining", "pending", "applying", "progressing", "deleting", "[warn]":
		return pending
	case "notavailable", "degraded", "false", "denied", "applyfailed", "untrusted", "failed", "expired", "!", "unavailable", "✗", "[fail]":
		return bad
	case "unknown", "-":
		return dim
	}
	return heatTone(word)
}

// marks are the marks of the states of a step, with and without UTF-8, and their tones.
var marks = map[fleet.StepState]struct {
	rich, ascii string
	tone        tone
}{
	fleet.Done: {"✓", "[ok]", good}, fleet.Warned: {"!", "[warn]", pending}, fleet.Broken: {"✗", "[FAIL]", bad},
	fleet.Skipped: {"-", "[skip]", dim}, fleet.Running: {"…", "[..]", plain},
}

// Symbol returns the mark of a step's state.
func (u *UI) Symbol(state fleet.StepState) string {
	if u.Streams.utf8() {
		return marks[state].rich
	}
	return marks[state].ascii
}

// Mark returns the coloured mark of a state, for a result on stdout.
func (u *UI) Mark(state fleet.StepState) string {
	return paint(u.coloured(u.Streams.Out), marks[state].tone, u.Symbol(state))
}

// Branch returns the line that leads to a child in a tree; last is the last child.
func (u *UI) Branch(last bool) string {
	switch {
	case !u.Streams.utf8():
		return "- "
	case last:
		return "└─ "
	}
	return "├─ "
}

// Stem returns the line that passes below a child in a tree to its next sibling; last is the
// last child, below which there is none.
func (u *UI) Stem(last bool) string {
	switch {
	case !u.Streams.utf8():
		return "  "
	case last:
		return "   "
	}
	return "│  "
}
