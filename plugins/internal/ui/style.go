// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"strings"

	"github.com/fatih/color"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// tone is what the colour of a word means.
type tone int

// The tones. Only words that name a state are coloured; others are plain.
const (
	plain tone = iota
	good
	pending
	bad
	dim
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
	return isTerminal(stream)
}

func paint(on bool, t tone, text string) string {
	if !on || text == "" {
		return text
	}
	attributes := map[tone]color.Attribute{good: color.FgGreen, pending: color.FgYellow, bad: color.FgRed, dim: color.Faint}
	attribute, ok := attributes[t]
	if !ok {
		return text
	}
	c := color.New(attribute)
	c.EnableColor()
	return c.Sprint(text)
}

// toneOf returns the tone of a word; words that name no state are plain.
func toneOf(word string) tone {
	switch strings.ToLower(word) {
	case "available", "true", "ready", "ok", "complete", "approved", "issued", "renewed":
		return good
	case "pendingaccept", "pendingcsr", "joining", "pending", "applying", "progressing", "deleting":
		return pending
	case "notavailable", "degraded", "false", "denied", "applyfailed", "untrusted", "failed", "expired", "!", "unavailable":
		return bad
	case "unknown", "-":
		return dim
	}
	return plain
}

// symbol returns the mark of a step's state.
func (u *UI) symbol(state fleet.StepState) string {
	rich := map[fleet.StepState]string{fleet.Done: "✓", fleet.Warned: "!", fleet.Broken: "✗", fleet.Skipped: "-", fleet.Running: "…"}
	ascii := map[fleet.StepState]string{fleet.Done: "[ok]", fleet.Warned: "[warn]", fleet.Broken: "[FAIL]", fleet.Skipped: "[skip]", fleet.Running: "[..]"}
	if u.Streams.utf8() {
		return rich[state]
	}
	return ascii[state]
}

// Mark returns the coloured mark of a state, for a result on stdout.
func (u *UI) Mark(state fleet.StepState) string {
	return paint(u.coloured(u.Streams.Out), stepTone(state), u.symbol(state))
}

func stepTone(state fleet.StepState) tone {
	return map[fleet.StepState]tone{fleet.Done: good, fleet.Warned: pending, fleet.Broken: bad, fleet.Skipped: dim}[state]
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
