// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// shownRequests is how many kinds of requests of a stage the page shows; requests.csv has all.
const shownRequests = 12

// page returns the report in Markdown.
func (r *Report) page() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\nWritten by:\n\n```\n%s\n```\n\n## Machine\n\n", r.Title, r.Command)
	facts(&b, r.Machine)
	fmt.Fprintf(&b, "## Method\n\n%s\n\n", strings.TrimSpace(r.Method))
	b.WriteString("[processes.csv](processes.csv), [times.csv](times.csv) and [requests.csv](requests.csv) have the raw figures.\n\n")
	b.WriteString("## CPU and memory\n\n")
	r.processTable(&b)
	for _, p := range r.plots() {
		fmt.Fprintf(&b, "![%s](%s)\n\n", p.Title, p.File)
	}
	for _, s := range r.Stages {
		fmt.Fprintf(&b, "## %s\n\nFrom %s to %s of the run.\n\n", s.Name, brief(s.From), brief(s.To))
		facts(&b, s.Facts)
		times(&b, s.Times)
		requests(&b, s.Requests)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func facts(b *strings.Builder, all []Fact) {
	if len(all) == 0 {
		return
	}
	b.WriteString("| what | figure |\n|---|---|\n")
	for _, f := range all {
		fmt.Fprintf(b, "| %s | %s |\n", f.What, f.Value)
	}
	b.WriteString("\n")
}

func times(b *strings.Builder, all []Times) {
	if len(all) == 0 {
		return
	}
	b.WriteString("| time of | number | P50 | P90 | P99 | longest |\n|---|---|---|---|---|---|\n")
	for _, t := range all {
		if len(t.Took) == 0 {
			fmt.Fprintf(b, "| %s | 0 | - | - | - | - |\n", t.What)
			continue
		}
		fmt.Fprintf(
			b, "| %s | %d | %s | %s | %s | %s |\n", t.What, len(t.Took),
			brief(Percentile(t.Took, 0.5)), brief(Percentile(t.Took, 0.9)), brief(Percentile(t.Took, 0.99)), brief(slices.Max(t.Took)),
		)
	}
	b.WriteString("\n")
}

func requests(b *strings.Builder, all []Requests) {
	if len(all) == 0 {
		return
	}
	sorted := slices.SortedStableFunc(slices.Values(all), func(x, y Requests) int { return cmp.Compare(y.Count, x.Count) })
	b.WriteString("| by | write | number | bytes of bodies |\n|---|---|---|---|\n")
	for _, q := range sorted[:min(len(sorted), shownRequests)] {
		size := "-"
		if q.Bytes >= 0 {
			size = fmt.Sprint(q.Bytes)
		}
		fmt.Fprintf(b, "| %s | %s | %d | %s |\n", q.By, q.What, q.Count, size)
	}
	if more := len(sorted) - shownRequests; more > 0 {
		fmt.Fprintf(b, "\n%d more kinds are in requests.csv.\n", more)
	}
	b.WriteString("\n")
}

// processTable shows the load of each process in each stage: the CPU time in it, and the
// memory at its end.
func (r *Report) processTable(b *strings.Builder) {
	b.WriteString("CPU is that used in the stage, in seconds; memory is RssAnon / VmRSS at its end, in MiB.\n\n| stage |")
	for _, p := range r.Processes {
		fmt.Fprintf(b, " %s CPU | %s memory |", p, p)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|---|", len(r.Processes)) + "\n")
	for _, s := range r.Stages {
		fmt.Fprintf(b, "| %s |", s.Name)
		for i := range r.Processes {
			used, last := r.load(i, s.From, s.To)
			if last == nil {
				b.WriteString(" - | - |")
				continue
			}
			fmt.Fprintf(b, " %.1f | %.0f / %.0f |", used.Seconds(), mebi(last.Anon), mebi(last.Resident))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
}

// load returns the CPU time that a process used between two times, and its last sample there.
// A process that was replaced counts from zero again.
func (r *Report) load(process int, from, to time.Duration) (used time.Duration, last *Load) {
	for _, s := range r.Samples {
		l := s.Of[process]
		if s.At < from || s.At > to || l == nil {
			continue
		}
		if last != nil {
			used += grown(last.CPU, l.CPU)
		}
		last = l
	}
	return used, last
}

// grown is the growth of a counter that begins at zero again with a new process.
func grown(before, now time.Duration) time.Duration {
	if now < before {
		return now
	}
	return now - before
}

func mebi(n int64) float64 { return float64(n) / (1 << 20) }

// brief prints a duration with three digits or so.
func brief(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	default:
		return d.Round(100 * time.Microsecond).String()
	}
}
