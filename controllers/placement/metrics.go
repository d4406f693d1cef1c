// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
)

// Metrics records how long decisions, their steps and their writes take, under the metric
// names of the API. It has some ten series, however many placements there are: all add-on
// prioritizers share one.
type Metrics struct {
	scheduling, bind, cel prometheus.Histogram
	plugin                *prometheus.HistogramVec
}

var _ prometheus.Collector = (*Metrics)(nil)

// NewMetrics returns empty metrics.
func NewMetrics() *Metrics {
	options := func(name, help string) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{
			Subsystem: "scheduling", Name: name, Help: help, ConstLabels: prometheus.Labels{"name": "placement_scheduling"},
			Buckets: prometheus.ExponentialBuckets(1e-6, 10, 10),
		}
	}
	return &Metrics{
		scheduling: prometheus.NewHistogram(options("scheduling_duration_seconds", "How long it takes to decide on a placement.")),
		bind:       prometheus.NewHistogram(options("bind_duration_seconds", "How long it takes to write the decisions of a placement.")),
		cel:        prometheus.NewHistogram(options("cel_runtime_duration_seconds", "How long the CEL expressions of a predicate take for one cluster.")),
		plugin: prometheus.NewHistogramVec(options("plugin_duration_seconds", "How long a filter or prioritizer takes for all clusters of a placement."),
			[]string{"plugin_type", "plugin_name"}),
	}
}

func (m *Metrics) parts() []prometheus.Collector {
	return []prometheus.Collector{m.scheduling, m.bind, m.cel, m.plugin}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, part := range m.parts() {
		part.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, part := range m.parts() {
		part.Collect(ch)
	}
}

func (m *Metrics) decided(took time.Duration) { m.scheduling.Observe(took.Seconds()) }

func (m *Metrics) written(took time.Duration) { m.bind.Observe(took.Seconds()) }

// observeStep records one step of a decision.
func (m *Metrics) observeStep(step schedule.Step, took time.Duration) {
	if step.Kind == schedule.KindCEL {
		m.cel.Observe(took.Seconds())
		return
	}
	m.plugin.WithLabelValues(string(step.Kind), step.Name).Observe(took.Seconds())
}
