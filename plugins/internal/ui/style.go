// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"strings"

	"github.com/fatih/color"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// Tone is the meaning of a word's colour.
type Tone int

// The tones. Only words that name a state are coloured.
const (
	Plain Tone = iota
	Good
	Pending
	Bad
	Dim
)

// coloured decides about escape codes for one stream: the flag, then NO_COLOR,
// then a dumb terminal, then whether it is a terminal at all.
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

func paint(on bool, tone Tone, text string) string {
	if !on || text == "" {
		return text
	}
	attributes := map[Tone]color.Attribute{Good: color.FgGreen, Pending: color.FgYellow, Bad: color.FgRed, Dim: color.Faint}
	attribute, ok := attributes[tone]
	if !ok {
		return text
	}
	c := color.New(attribute)
	c.EnableColor()
	return c.Sprint(text)
}

// ToneOf returns the colour of a state word; words that name no state are plain.
func ToneOf(word string) Tone {
	switch strings.ToLower(word) {
	case "available", "true", "ready", "ok", "complete", "approved", "issued", "renewed":
		return Good
	case "pendingaccept", "pendingcsr", "joining", "pending", "applying", "progressing", "deleting":
		return Pending
	case "notavailable", "degraded", "false", "denied", "applyfailed", "untrusted", "failed", "expired", "!", "unavailable":
		return Bad
	case "unknown", "-":
		return Dim
	}
	return Plain
}

// symbol returns the mark of a finished step.
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

func stepTone(state fleet.StepState) Tone {
	return map[fleet.StepState]Tone{fleet.Done: Good, fleet.Warned: Pending, fleet.Broken: Bad, fleet.Skipped: Dim}[state]
}

// Branch leads to a child in a tree that is shown in a column.
func (u *UI) Branch(last bool) string {
	switch {
	case !u.Streams.utf8():
		return "- "
	case last:
		return "└─ "
	}
	return "├─ "
}
