// SPDX-License-Identifier: Apache-2.0

// Package metrics reads what a process says of itself in the text format of Prometheus, as far
// as a run of test/scale needs it.
package metrics

import (
	"maps"
	"regexp"
	"strconv"
	"strings"
)

// Set holds the values of one reading.
type Set []value

type value struct {
	name   string
	labels map[string]string
	number float64
}

// sample is a line with a name, labels and a number; label is one of the labels.
var (
	sample = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)`)
	label  = regexp.MustCompile(`([a-zA-Z_]+)="((?:[^"\\]|\\.)*)"`)
)

// Parse reads the text, and skips lines that it does not understand.
func Parse(text string) Set {
	var out Set
	for line := range strings.Lines(text) {
		m := sample.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		number, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			continue
		}
		v := value{name: m[1], labels: map[string]string{}, number: number}
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			v.labels[l[1]] = l[2]
		}
		out = append(out, v)
	}
	return out
}

// Sum adds the values of a metric, by the values of these labels joined with spaces.
func (s Set) Sum(name string, labels ...string) map[string]float64 {
	out := map[string]float64{}
	for _, v := range s {
		if v.name != name {
			continue
		}
		var key []string
		for _, l := range labels {
			key = append(key, v.labels[l])
		}
		out[strings.Join(key, " ")] += v.number
	}
	return out
}

// Since returns how much each value of now is more than before, without those that are not.
func Since(before, now map[string]float64) map[string]float64 {
	out := maps.Clone(now)
	for key := range out {
		if out[key] -= before[key]; out[key] <= 0 {
			delete(out, key)
		}
	}
	return out
}
