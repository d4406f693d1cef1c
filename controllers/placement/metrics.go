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
	// Collector collects all of them.
	prometheus.Collector
	scheduling, bind, cel prometheus.Histogram
	plugin                *prometheus.HistogramVec
}

// NewMetrics returns empty metrics.
func NewMetrics() *Metrics {
	options := func(name, help string) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{
			Subsystem: "scheduling", Name: name, Help: help, ConstLabels: prometheus.Labels{"name": "placement_scheduling"},
			Buckets: prometheus.ExponentialBuckets(1e-6, 10, 10),
		}
	}
	registry := prometheus.NewRegistry()
	m := &Metrics{
		Collector:  registry,
		scheduling: prometheus.NewHistogram(options("scheduling_duration_seconds", "How long it takes to decide on a placement.")),
		bind:       prometheus.NewHistogram(options("bind_duration_seconds", "How long it takes to write the decisions of a placement.")),
		cel:        prometheus.NewHistogram(options("cel_runtime_duration_seconds", "How long the CEL expressions of a predicate take for one cluster.")),
		plugin: prometheus.NewHistogramVec(options("plugin_duration_seconds", "How long a filter or prioritizer takes for all clusters of a placement."),
			[]string{"plugin_type", "plugin_name"}),
	}
	registry.MustRegister(m.scheduling, m.bind, m.cel, m.plugin)
	return m
}

// observeStep records one step of a decision.
func (m *Metrics) observeStep(step schedule.Step, took time.Duration) {
	if step.Kind == schedule.KindCEL {
		m.cel.Observe(took.Seconds())
		return
	}
	m.plugin.WithLabelValues(string(step.Kind), step.Name).Observe(took.Seconds())
}
