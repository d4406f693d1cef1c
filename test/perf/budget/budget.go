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
)

// Line is one figure of a budget file.
type Line struct {
	// Limit is the most that is allowed: a duration, an amount of memory or a
	// count; of rates it is the least. Absent means none.
	Limit any `json:"limit"`
	// Ratio bounds a time as a multiple of the calibration that is named where
	// it is measured; of rates it is the most that one may take. 0 means none.
	Ratio float64 `json:"ratio"`
}

// File is a budget file in the benchmark that is checked with it.
type File struct {
	t        testing.TB
	path     string
	lines    map[string]Line
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

// In is the same file in a subtest.
func (f *File) In(t testing.TB) *File {
	return &File{t: t, path: f.path, lines: f.lines, measured: f.measured}
}

// Complete fails the benchmark if the file holds a figure that was not
// measured.
func (f *File) Complete() {
	f.t.Helper()
	for name := range f.lines {
		if !f.measured[name] {
			f.t.Errorf("%s has a budget in %s and was not measured", name, f.path)
		}
	}
}

func (f *File) line(name string) Line {
	f.t.Helper()
	l, ok := f.lines[name]
	require.True(f.t, ok, "%s has no budget in %s", name, f.path)
	f.measured[name] = true
	return l
}

// say prints a figure beside its budget, and fails the benchmark when it is over.
func (f *File) say(name, figure, allowed string, within bool) {
	f.t.Helper()
	f.t.Logf("%-26s %s (budget %s)", name, figure, allowed)
	if !within {
		f.t.Errorf("%s is over its budget: %s, allowed is %s", name, figure, allowed)
	}
}

// Time checks the median of durations against its limit, and as a multiple of
// unit, the calibration.
func (f *File) Time(name string, took []time.Duration, unit time.Duration) {
	f.t.Helper()
	l := f.line(name)
	slices.Sort(took)
	got, last := Median(took), took[len(took)-1]
	ratio := float64(got) / float64(unit)
	figure := fmt.Sprintf("median %s, slowest %s of %d, %.2f units", round(got), round(last), len(took), ratio)
	allowed, within := "", true
	if l.Limit != nil {
		limit, err := time.ParseDuration(fmt.Sprint(l.Limit))
		require.NoError(f.t, err, "%s in %s", name, f.path)
		allowed, within = limit.String(), got <= limit
	}
	if l.Ratio > 0 {
		allowed += fmt.Sprintf(" and %g units of %s", l.Ratio, round(unit))
		within = within && ratio <= l.Ratio
	}
	f.say(name, figure, allowed, within)
}

// Tail checks the 99th percentile of durations against its limit.
func (f *File) Tail(name string, took []time.Duration) {
	f.t.Helper()
	const part = 100
	sorted := slices.Clone(took)
	slices.Sort(sorted)
	got := sorted[len(sorted)-1-len(sorted)/part]
	limit, err := time.ParseDuration(fmt.Sprint(f.line(name).Limit))
	require.NoError(f.t, err, "%s in %s", name, f.path)
	f.say(name, fmt.Sprintf("%s at the 99th of 100", round(got)), limit.String(), got <= limit)
}

// Rate checks that the median of rates, of n things each, is at least its limit,
// and that one takes no longer than Ratio units.
func (f *File) Rate(name string, n int, took []time.Duration, unit time.Duration) {
	f.t.Helper()
	l := f.line(name)
	slices.Sort(took)
	median := Median(took)
	got, one := float64(n)/median.Seconds(), median/time.Duration(n)
	ratio := float64(one) / float64(unit)
	figure := fmt.Sprintf("median %.1f/s, %.1f to %.1f of %d, %.2f units each", got, float64(n)/took[len(took)-1].Seconds(), float64(n)/took[0].Seconds(), len(took), ratio)
	limit, ok := l.Limit.(float64)
	require.True(f.t, ok, "%s in %s is no number", name, f.path)
	allowed, within := fmt.Sprintf("%g/s", limit), got >= limit
	if l.Ratio > 0 {
		allowed += fmt.Sprintf(" and %g units of %s", l.Ratio, round(unit))
		within = within && ratio <= l.Ratio
	}
	f.say(name, figure, allowed, within)
}

// Count checks a counted figure.
func (f *File) Count(name string, got float64) {
	f.t.Helper()
	limit, ok := f.line(name).Limit.(float64)
	require.True(f.t, ok, "%s in %s is no number", name, f.path)
	f.say(name, fmt.Sprintf("%.4g", got), fmt.Sprintf("%g", limit), got <= limit)
}

// Memory checks an amount of memory, in bytes.
func (f *File) Memory(name string, got int64) {
	f.t.Helper()
	limit, err := resource.ParseQuantity(fmt.Sprint(f.line(name).Limit))
	require.NoError(f.t, err, "%s in %s", name, f.path)
	f.say(name, fmt.Sprintf("%.1f MiB", float64(got)/(1<<20)), limit.String(), got <= limit.Value())
}

// Median is the middle one of durations.
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
