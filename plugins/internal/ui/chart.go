// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
)

// plainWidth is how wide charts are where there is no terminal, in columns.
const plainWidth = 80

// leastRoom is the width of a chart however narrow the terminal is, in columns.
const leastRoom = 10

// heat are the marks of a step's states that stand for one thing each in a chart, one column wide,
// with and without UTF-8. They differ in shape, because colour may be missing.
var heat = map[fleet.StepState]struct{ rich, ascii string }{
	fleet.Done: {"✓", "+"}, fleet.Warned: {"?", "?"}, fleet.Broken: {"✗", "x"}, fleet.Skipped: {"·", "."}, fleet.Running: {"…", "~"},
}

// heatTones are the tones of these marks.
var heatTones = map[fleet.StepState]tone{fleet.Done: good, fleet.Warned: dim, fleet.Broken: bad, fleet.Skipped: dim, fleet.Running: pending}

// Heat returns the mark of one thing in a state: done, broken, running, skipped where there is
// nothing, and warned where the state is unknown.
func (u *UI) Heat(state fleet.StepState) string {
	if u.Streams.utf8() {
		return heat[state].rich
	}
	return heat[state].ascii
}

// HeatLines returns n marks in lines of at most width columns.
func (u *UI) HeatLines(state fleet.StepState, n, width int) []string {
	var out []string
	for ; n > 0; n -= width {
		out = append(out, strings.Repeat(u.Heat(state), min(n, width)))
	}
	return out
}

// Room returns how many columns of the terminal are left for a chart at the right of a table, which
// is printed by List: kubectl's tables give a cell as many columns as it has bytes.
func (u *UI) Room(t Table) int {
	width := u.Streams.width()
	if width == 0 {
		width = plainWidth
	}
	for i, head := range t.Heads {
		widest := len(head)
		for _, row := range t.Rows {
			widest = max(widest, len(row[i]))
		}
		width -= widest + gap
	}
	return max(width, leastRoom)
}

// heatTone returns the tone of a word that is made of one mark only; plain for other words.
func heatTone(word string) tone {
	for state, m := range heat {
		for _, sign := range []string{m.rich, m.ascii} {
			if word != "" && strings.Trim(word, sign) == "" {
				return heatTones[state]
			}
		}
	}
	return plain
}

// barWidth is how many signs a bar has between its brackets.
const barWidth = 8

// signs are those of a bar: clusters that are done, running, failed and waiting. They are ASCII,
// because kubectl's tables count bytes.
const signs = "#>!."

// Bar returns a rollout as a bar and how many clusters are done, "-" if no cluster gets it.
func Bar(r cluster.Rollout) string {
	if r.Total == 0 {
		return "-"
	}
	var out strings.Builder
	for i, n := range shares([]int{r.Done, r.Running, r.Failed, r.Waiting}, barWidth) {
		out.WriteString(strings.Repeat(signs[i:i+1], n))
	}
	return fmt.Sprintf("[%s] %d/%d", out.String(), r.Done, r.Total)
}

// When says what a rollout still waits for and since when, or how long ago it was complete.
func When(r cluster.Rollout, now time.Time) string {
	if r.Total == 0 {
		return "-"
	}
	var words []string
	for _, part := range []struct {
		n    int
		what string
	}{{r.Running, "running"}, {r.Failed, "failed"}, {r.Waiting, "waiting"}} {
		if part.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	since := ""
	switch {
	case r.Since == nil:
	case r.Complete():
		since = " " + Age(*r.Since, now) + " ago"
	default:
		since = " (" + Age(*r.Since, now) + ")"
	}
	if r.Complete() {
		return "done" + since
	}
	return strings.Join(words, ", ") + since
}

// shares divides width among counts in proportion to them. A count that is not zero has one at
// least, so width must not be less than their number.
func shares(counts []int, width int) []int {
	total, used := 0, 0
	for _, n := range counts {
		total += n
	}
	out := make([]int, len(counts))
	if total == 0 {
		return out
	}
	for i, n := range counts {
		out[i] = max(n*width/total, min(n, 1))
		used += out[i]
	}
	for step := 1; used != width; used += step {
		if used > width {
			step = -1
		}
		next := -1
		for i, n := range counts {
			missing := func(i int) int { return (counts[i]*width - out[i]*total) * step }
			if n > 0 && out[i]+step > 0 && (next < 0 || missing(i) > missing(next)) {
				next = i
			}
		}
		out[next] += step
	}
	return out
}
