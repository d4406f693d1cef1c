// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// UI writes to, and asks, the user or program behind the streams.
type UI struct {
	// Streams are those of the process.
	Streams Streams
	// Program is the command that the user typed: "kubectl ocm" when called through
	// kubectl, otherwise the name of the binary.
	Program string
	// Color is auto, always or never.
	Color string
	// Quiet suppresses progress, notes, warnings and hints, but not errors and questions.
	Quiet bool
	// Interrupted is closed when the user interrupts the program; nil means never.
	Interrupted <-chan struct{}

	// broken is the first error of writing a result.
	broken error
}

// Note prints one line to stderr, unless quiet.
func (u *UI) Note(format string, args ...any) {
	if !u.Quiet {
		u.errorLine(tidy(fmt.Sprintf(format, args...)))
	}
}

// Warn prints one warning to stderr, unless quiet.
func (u *UI) Warn(format string, args ...any) {
	if !u.Quiet {
		u.errorLine(paint(u.coloured(u.Streams.Err), pending, "warning:") + " " + u.Own(tidy(fmt.Sprintf(format, args...))))
	}
}

// Complain prints one line to stderr about a part that failed while others did not.
func (u *UI) Complain(line string) { u.errorLine(tidy(line)) }

// Next prints the command to run next to stderr, if that is a terminal, unless quiet.
func (u *UI) Next(command string) {
	if !u.Quiet && IsTerminal(u.Streams.Err) && command != "" {
		u.errorLine("next: " + u.Own(tidy(command)))
	}
}

// Say prints one line of the result to stdout. If that fails, Fail reports it.
func (u *UI) Say(format string, args ...any) {
	if _, err := fmt.Fprintf(u.Streams.Out, format+"\n", args...); err != nil && u.broken == nil {
		u.broken = wrapOutput(err)
	}
}

// Own replaces "kubectl ocm" in text by the command that the user typed.
func (u *UI) Own(text string) string {
	if u.Program == "" || u.Program == "kubectl ocm" {
		return text
	}
	return strings.ReplaceAll(text, "kubectl ocm ", u.Program+" ")
}

func (u *UI) errorLine(text string) {
	_, _ = io.WriteString(u.Streams.Err, text+"\n")
}

// Confirm asks for confirmation before something is destroyed. It first shows the
// targets, even if yes is set, unless quiet. Without a terminal, yes must be set.
func (u *UI) Confirm(yes bool, question string, targets []string) error {
	if yes && u.Quiet {
		return nil
	}
	for _, t := range targets {
		u.errorLine("  " + tidy(t))
	}
	if yes {
		return nil
	}
	if !IsTerminal(u.Streams.In) || !IsTerminal(u.Streams.Err) {
		return &fleet.Error{Kind: fleet.Refused, Message: "not done: " + strings.TrimSuffix(question, "?"),
			Cause: "there is no terminal to ask on", Fix: fleet.Advice("add --yes")}
	}
	return u.ask(question)
}

// ask asks a question on the terminal. An interrupt ends it at once; the pending read
// ends with the process.
func (u *UI) ask(question string) error {
	_, _ = fmt.Fprintf(u.Streams.Err, "%s [y/N] ", question)
	answers := make(chan bool, 1)
	go func() {
		answer, err := bufio.NewReader(u.Streams.In).ReadString('\n')
		a := strings.ToLower(strings.TrimSpace(answer))
		answers <- (a == "y" || a == "yes") && err == nil
	}()
	select {
	case <-u.Interrupted:
		u.errorLine("")
		return &fleet.Error{Message: "interrupted", Cause: "you did not answer; nothing was done"}
	case yes := <-answers:
		if yes {
			return nil
		}
	}
	return &fleet.Error{Kind: fleet.Refused, Message: "not done: you did not answer yes", Fix: fleet.Advice("answer y, or add --yes")}
}
