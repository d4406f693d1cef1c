// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// UI talks to the person or program behind the streams.
type UI struct {
	// Streams are those of the process.
	Streams Streams
	// Program is how the person called us: "kubectl ocm" behind kubectl, else
	// the name of the binary.
	Program string
	// Color is auto, always or never.
	Color string
	// Quiet silences progress, notes and hints, but not errors and questions.
	Quiet bool
	// Interrupted is closed when the person ends the program; nil for never.
	Interrupted <-chan struct{}

	// broken is why a line of result could not be written.
	broken error
}

// Note prints one line about what is being done to stderr.
func (u *UI) Note(format string, args ...any) {
	if !u.Quiet {
		u.errorLine(fmt.Sprintf(format, args...))
	}
}

// Warn prints one warning to stderr.
func (u *UI) Warn(format string, args ...any) {
	if !u.Quiet {
		u.errorLine(paint(u.coloured(u.Streams.Err), pending, "warning:") + " " + u.own(fmt.Sprintf(format, args...)))
	}
}

// Next prints the one hint about what comes next, where a person reads it.
func (u *UI) Next(command string) {
	if !u.Quiet && isTerminal(u.Streams.Err) && command != "" {
		u.errorLine("next: " + u.own(command))
	}
}

// Say prints one line of result to stdout. Fail tells when that was not
// possible.
func (u *UI) Say(format string, args ...any) {
	if _, err := fmt.Fprintf(u.Streams.Out, format+"\n", args...); err != nil && u.broken == nil {
		u.broken = wrapOutput(err)
	}
}

// own puts the name under which we were called into a command line.
func (u *UI) own(text string) string {
	if u.Program == "" || u.Program == "kubectl ocm" {
		return text
	}
	return strings.ReplaceAll(text, "kubectl ocm ", u.Program+" ")
}

// Own returns a command line of ours as this person has to type it.
func (u *UI) Own(command string) string { return u.own(command) }

func (u *UI) errorLine(text string) {
	_, _ = io.WriteString(u.Streams.Err, text+"\n")
}

// Confirm asks before something is destroyed. The targets are shown first, also where
// the answer was given, unless quiet. Without a terminal nobody can answer, so yes must be given.
func (u *UI) Confirm(yes bool, question string, targets []string) error {
	if yes && u.Quiet {
		return nil
	}
	for _, t := range targets {
		u.errorLine("  " + t)
	}
	if yes {
		return nil
	}
	if !isTerminal(u.Streams.In) || !isTerminal(u.Streams.Err) {
		return &fleet.Error{Kind: fleet.Refused, Message: "not done: " + strings.TrimSuffix(question, "?"),
			Cause: "there is no terminal to ask on", Fix: fleet.Advice("add --yes")}
	}
	return u.ask(question)
}

// ask puts a question on the terminal. Whoever interrupts it need not answer: the line
// that is still read ends with the process.
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
