// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// The exit codes of every command.
const (
	// ExitDone: done; no differences; no findings.
	ExitDone = 0
	// ExitFailed: failed; for a diff: there are differences.
	ExitFailed = 1
	// ExitUsage: wrong usage; for a diff: it failed.
	ExitUsage = 2
	// ExitFindings: a check found problems.
	ExitFindings = 3
	// ExitTimeout: a wait timed out.
	ExitTimeout = 4
	// ExitPartial: some clusters succeeded, some failed.
	ExitPartial = 5
	// ExitRefused: refused for safety.
	ExitRefused = 6
)

// Exit is an error that only carries an exit code; nothing is left to print.
type Exit int

// Error returns "exit code N".
func (e Exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Code returns the exit code for err.
func Code(err error) int {
	var exit Exit
	var e *fleet.Error
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &exit):
		return int(exit)
	case errors.As(err, &e):
		return map[fleet.Kind]int{fleet.Failed: ExitFailed, fleet.Usage: ExitUsage, fleet.Timeout: ExitTimeout,
			fleet.Partial: ExitPartial, fleet.Refused: ExitRefused}[e.Kind]
	}
	return ExitFailed
}

// Fail prints err to stderr and returns its exit code. A result that could not be written
// is reported too, unless something else failed.
func (u *UI) Fail(err error) int {
	var exit Exit
	if u.broken != nil && (err == nil || errors.As(err, &exit)) {
		err = u.broken // whatever the result was, nobody has it
	}
	code := Code(err)
	if err == nil || errors.As(err, &exit) {
		return code
	}
	var e *fleet.Error
	switch {
	case errors.Is(err, context.Canceled):
		e = &fleet.Error{Message: "interrupted", Fix: fleet.Advice("run the same command again; it continues where it stopped")}
	case !errors.As(err, &e):
		e = &fleet.Error{Message: strings.TrimSpace(err.Error())}
	}
	on := u.coloured(u.Streams.Err)
	u.errorLine(paint(on, bad, "error:") + " " + u.Own(tidy(e.Message)))
	if e.Cause != "" {
		u.errorLine("  cause: " + u.Own(tidy(e.Cause)))
	}
	if e.Since > 0 {
		line := "  since: " + Lasting(e.Since)
		if e.LastEvent > 0 {
			line += "   last event: " + Lasting(e.LastEvent) + " ago"
		}
		u.errorLine(line)
	}
	if line := Fix(e.Fix); line != "" {
		u.errorLine("  fix:   " + u.Own(tidy(line)))
	}
	return code
}

// maxText is how much of one text of a message is printed, in bytes. A server may answer with more.
const maxText = 4 << 10

// tidy returns text that a terminal shows and does not obey: control characters are spelled out, and
// what is too long to be read is left out.
func tidy(text string) string {
	if !strings.ContainsFunc(text, isControl) {
		return excerpt.Of(text, maxText)
	}
	var out strings.Builder
	for _, r := range excerpt.Of(text, maxText) {
		if isControl(r) {
			out.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

func isControl(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
