// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Report is everything that one run measured.
type Report struct {
	// Title heads the page, Command is the line that repeats the run, and Method explains in
	// Markdown what ran, and how.
	Title, Command, Method string
	// Machine describes what it ran on, one property a row.
	Machine []Fact
	// Began is when the run began; all other times are relative to it.
	Began time.Time
	// Stages are in the order in which they ran.
	Stages []*Stage
	// Processes are the measured ones, and Samples what was seen of them, in that order.
	Processes []string
	Samples   []Sample
	// Plots beside those of CPU and memory.
	Plots []Plot
}

// Fact is a figure with its name.
type Fact struct{ What, Value string }

// Stage is a part of the run.
type Stage struct {
	// Name heads its section.
	Name string
	// From and To are its limits, since the begin of the run.
	From, To time.Duration
	// Facts are its single figures.
	Facts []Fact
	// Times are the durations that were measured, by what they are of.
	Times []Times
	// Requests are those that the API server answered in it.
	Requests []Requests
}

// Times are durations of one kind of operation.
type Times struct {
	What string
	Took []time.Duration
}

// Requests counts the writes of one kind.
type Requests struct {
	// By is who sent them, What the verb and the resource.
	By, What string
	// Count is how many, and Bytes the size of their bodies; -1 where it is not known.
	Count, Bytes int64
}

// Sample is the state of all processes at one time.
type Sample struct {
	// At is the time since the begin of the run.
	At time.Duration
	// Of has an entry for each process; nil for one that did not run.
	Of []*Load
}

// Load is the state of one process.
type Load struct {
	// CPU is the time it has computed since its start.
	CPU time.Duration
	// Anon is RssAnon and Resident VmRSS, in bytes.
	Anon, Resident int64
}

// Add records a figure of the stage.
func (s *Stage) Add(what, format string, args ...any) {
	s.Facts = append(s.Facts, Fact{what, fmt.Sprintf(format, args...)})
}

// Percentile returns the smallest duration that this part of all does not exceed. part is in
// (0, 1]; took must not be empty.
func Percentile(took []time.Duration, part float64) time.Duration {
	sorted := slices.Sorted(slices.Values(took))
	at := int(part*float64(len(sorted)) + 0.9999)
	return sorted[min(max(at, 1), len(sorted))-1]
}

// Write writes the report into a folder, which it creates: README.md, CSV files and plots.
func (r *Report) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	files := map[string]string{
		"README.md":     r.page(),
		"processes.csv": table(r.processRows()),
		"times.csv":     table(r.timeRows()),
		"requests.csv":  table(r.requestRows()),
	}
	for _, p := range r.plots() {
		files[p.File] = p.svg()
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
	}
	return nil
}

// table returns rows as CSV.
func table(rows [][]string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	// A builder takes everything.
	_ = w.WriteAll(rows)
	return b.String()
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }

func (r *Report) processRows() [][]string {
	rows := [][]string{{"seconds", "process", "cpu_seconds", "rss_anon_bytes", "vm_rss_bytes"}}
	for _, s := range r.Samples {
		for i, l := range s.Of {
			if l != nil {
				rows = append(rows, []string{
					seconds(s.At), r.Processes[i], seconds(l.CPU), strconv.FormatInt(l.Anon, 10), strconv.FormatInt(l.Resident, 10),
				})
			}
		}
	}
	return rows
}

func (r *Report) timeRows() [][]string {
	rows := [][]string{{"stage", "what", "seconds"}}
	for _, s := range r.Stages {
		for _, t := range s.Times {
			for _, d := range t.Took {
				rows = append(rows, []string{s.Name, t.What, seconds(d)})
			}
		}
	}
	return rows
}

func (r *Report) requestRows() [][]string {
	rows := [][]string{{"stage", "by", "request", "count", "bytes"}}
	for _, s := range r.Stages {
		for _, q := range s.Requests {
			rows = append(rows, []string{s.Name, q.By, q.What, strconv.FormatInt(q.Count, 10), strconv.FormatInt(q.Bytes, 10)})
		}
	}
	return rows
}
