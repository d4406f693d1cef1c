// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness/memory"
)

// line is one figure in a budget file.
type line struct {
	// Limit is the maximum: a duration, an amount of memory or a count. For rates it is
	// the minimum.
	Limit any `json:"limit"`
	// Anon, Resident and Peak are the limits of a memory.Usage; those left out are printed
	// and not checked.
	Anon     string `json:"anon"`
	Resident string `json:"resident"`
	Peak     string `json:"peak"`
	// Ratio is the limit of times and rates on a machine that is too slow for Limit: the
	// maximum time of one operation, as a multiple of the calibration named where it is
	// measured. With 0, Limit applies on every machine.
	Ratio float64 `json:"ratio"`
	// Full figures are measured only in a full run, without -short.
	Full bool `json:"full"`
}

// File is a budget file, used by the benchmark that is checked against it.
type File struct {
	t        testing.TB
	path     string
	lines    map[string]line
	measured map[string]bool
}

// Open reads a budget file.
func Open(t testing.TB, path string) *File {
	t.Helper()
	raw, err := os.ReadFile(path) //nolint:gosec // a path in this repository
	require.NoError(t, err)
	f := &File{t: t, path: path, measured: map[string]bool{}}
	require.NoError(t, yaml.UnmarshalStrict(raw, &f.lines))
	return f
}

// In returns the same file for a subtest.
func (f *File) In(t testing.TB) *File {
	return &File{t: t, path: f.path, lines: f.lines, measured: f.measured}
}

// Complete fails the benchmark if the file holds a figure that was not
// measured.
func (f *File) Complete() {
	f.t.Helper()
	for name, line := range f.lines {
		if !f.measured[name] && !(line.Full && testing.Short()) {
			f.t.Errorf("%s has a budget in %s and was not measured", name, f.path)
		}
	}
}

func (f *File) line(name string) line {
	f.t.Helper()
	l, ok := f.lines[name]
	require.True(f.t, ok, "%s has no budget in %s", name, f.path)
	f.measured[name] = true
	return l
}

// report prints a figure next to its budget, and fails the benchmark when the figure
// exceeds it.
func (f *File) report(name, figure, allowed string, within bool) {
	f.t.Helper()
	f.t.Logf("%-26s %s (budget %s)", name, figure, allowed)
	if !within {
		f.t.Errorf("%s is over its budget: %s, allowed is %s", name, figure, allowed)
	}
}

// Time checks the median of durations against its limit or, where the machine is
// too slow for that, as a multiple of unit, the calibration.
func (f *File) Time(name string, took []time.Duration, unit time.Duration) {
	f.t.Helper()
	got, last := Median(took), slices.Max(took)
	f.time(name, got, unit, fmt.Sprintf("median %s, slowest %s of %d", round(got), round(last), len(took)))
}

// Tail checks the 99th percentile of durations, as Time checks their median.
func (f *File) Tail(name string, took []time.Duration, unit time.Duration) {
	f.t.Helper()
	const part = 100
	sorted := slices.Sorted(slices.Values(took))
	got := sorted[len(sorted)-1-len(sorted)/part]
	f.time(name, got, unit, fmt.Sprintf("%s at the 99th of 100", round(got)))
}

func (f *File) time(name string, got, unit time.Duration, figure string) {
	f.t.Helper()
	l := f.line(name)
	limit, err := time.ParseDuration(fmt.Sprint(l.Limit))
	require.NoError(f.t, err, "%s in %s", name, f.path)
	f.either(name, l, unit, timed{figure: figure, allowed: limit.String(), within: got <= limit, one: got})
}

// Rate checks that the median of rates, of n operations each, is at least the limit or,
// where the machine is too slow for that, that one operation takes no longer than Ratio
// units.
func (f *File) Rate(name string, n int, took []time.Duration, unit time.Duration) {
	f.t.Helper()
	l := f.line(name)
	limit, ok := l.Limit.(float64)
	require.True(f.t, ok, "%s in %s is no number", name, f.path)
	median := Median(took)
	perSecond := func(d time.Duration) float64 { return float64(n) / d.Seconds() }
	f.either(name, l, unit, timed{
		figure:  fmt.Sprintf("median %.1f/s, %.1f to %.1f of %d", perSecond(median), perSecond(slices.Max(took)), perSecond(slices.Min(took)), len(took)),
		allowed: fmt.Sprintf("%g/s", limit), within: perSecond(median) >= limit, one: median / time.Duration(n),
	})
}

// timed is a time and its limit.
type timed struct {
	figure, allowed string
	within          bool
	// one is the time that the ratio bounds.
	one time.Duration
}

// either fails the benchmark when a figure exceeds both its limit and its ratio: on a
// slow machine, only the limit is exceeded; with a slow program, both are.
func (f *File) either(name string, l line, unit time.Duration, m timed) {
	f.t.Helper()
	ratio := float64(m.one) / float64(unit)
	if l.Ratio > 0 {
		m.allowed += fmt.Sprintf(" or %g units of %s", l.Ratio, round(unit))
		m.within = m.within || ratio <= l.Ratio
	}
	f.report(name, fmt.Sprintf("%s, %.2f units", m.figure, ratio), m.allowed, m.within)
}

// Count checks a counted figure.
func (f *File) Count(name string, got float64) {
	f.t.Helper()
	limit, ok := f.line(name).Limit.(float64)
	require.True(f.t, ok, "%s in %s is no number", name, f.path)
	f.report(name, fmt.Sprintf("%.4g", got), fmt.Sprintf("%g", limit), got <= limit)
}

// Bytes checks an amount of memory that the benchmark counts itself.
func (f *File) Bytes(name string, got int64) {
	f.t.Helper()
	limit, err := resource.ParseQuantity(fmt.Sprint(f.line(name).Limit))
	require.NoError(f.t, err, "%s in %s", name, f.path)
	f.report(name, memory.MiB(got), limit.String(), got <= limit.Value())
}

// Memory checks the memory of a process against the limits in the file, at least one of
// which must be set.
func (f *File) Memory(name string, got memory.Usage) {
	f.t.Helper()
	l := f.line(name)
	require.NotEmpty(f.t, l.Anon+l.Resident+l.Peak, "%s in %s limits nothing", name, f.path)
	for _, one := range []struct {
		what, limit string
		got         int64
	}{{"RssAnon", l.Anon, got.Anon}, {"VmRSS", l.Resident, got.Resident}, {"VmHWM", l.Peak, got.Peak}} {
		if one.limit == "" {
			f.report(name+" "+one.what, memory.MiB(one.got), "none", true)
			continue
		}
		limit, err := resource.ParseQuantity(one.limit)
		require.NoError(f.t, err, "%s in %s", name, f.path)
		f.report(name+" "+one.what, memory.MiB(one.got), limit.String(), one.got <= limit.Value())
	}
}

// Median returns the median of durations.
func Median(took []time.Duration) time.Duration {
	sorted := slices.Clone(took)
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}

func round(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(10 * time.Millisecond)
}
