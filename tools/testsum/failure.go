// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// failure is what a failed test says of its failure, shortened.
type failure struct {
	Test  string
	Lines []string
}

const (
	// maxDump is how many lines of a panic or a race are its reason; the other goroutines
	// of a panic are not.
	maxDump = 60
	// before and after are how many of the other lines are shown around the reason.
	before, after = 100, 120
	// maxRecorded and maxWidth bound what is repeated at the end of all runs.
	maxRecorded, maxWidth = 16, 240
)

var (
	logged    = regexp.MustCompile(`^ +\S+\.go:\d+: `)
	dumped    = regexp.MustCompile(`^(panic|fatal error): |^WARNING: DATA RACE`)
	asserted  = regexp.MustCompile(`^ +\tError Trace:`)
	goroutine = regexp.MustCompile(`^goroutine \d`)
)

// reason returns how many lines from the first on say why a test failed: a message of a
// failed assertion, a panic with its goroutine, or a data race. It returns 0 if the first
// line begins none of these.
func reason(lines []string) int {
	switch {
	case logged.MatchString(lines[0]):
		n := 1
		for n < len(lines) && strings.HasPrefix(lines[n], "        ") {
			n++
		}
		if slices.ContainsFunc(lines[:n], asserted.MatchString) {
			return n
		}
	case dumped.MatchString(lines[0]):
		goroutines := 0
		for n, line := range lines[:min(maxDump, len(lines))] {
			if goroutine.MatchString(line) {
				goroutines++
			}
			if goroutines > 1 || strings.HasPrefix(line, "=====") {
				return n
			}
		}
		return min(maxDump, len(lines))
	}
	return 0
}

// explained separates the output of a failed test into the reasons for its failure and
// the lines around the first of them; without a reason, these are the last lines.
func explained(output []string) (reasons, around []string) {
	lines := slices.Collect(strings.Lines(strings.Join(output, "")))
	var rest []string
	first := -1
	for len(lines) > 0 {
		n := reason(lines)
		if n == 0 {
			rest, lines = append(rest, lines[0]), lines[1:]
			continue
		}
		if first < 0 {
			first = len(rest)
		}
		reasons, lines = append(reasons, lines[:n]...), lines[n:]
	}
	if first < 0 {
		first = len(rest)
	}
	from, to := max(0, first-before), min(len(rest), first+after)
	around = leftOut(nil, from)
	around = append(around, rest[from:to]...)
	return reasons, leftOut(around, len(rest)-to)
}

func leftOut(lines []string, n int) []string {
	if n == 0 {
		return lines
	}
	return append(lines, fmt.Sprintf("[%d lines are left out]\n", n))
}

// brief returns the beginning of the reasons without the newlines.
func brief(reasons []string) []string {
	var out []string
	for _, line := range reasons[:min(maxRecorded, len(reasons))] {
		line = strings.TrimRight(line, "\n")
		if len(line) > maxWidth {
			line = strings.ToValidUTF8(line[:maxWidth], "") + " …"
		}
		out = append(out, line)
	}
	return out
}

// showFailures prints why the tests failed, so that it is also found at the end of a log.
func showFailures(out io.Writer, all []failure) {
	for _, f := range all {
		fmt.Fprintf(out, "FAIL %s\n", f.Test)
		for _, line := range f.Lines {
			fmt.Fprintln(out, line)
		}
	}
}
