// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/client-go/tools/metrics"
	"k8s.io/client-go/util/workqueue"
)

// NewRegistry returns a registry with the metrics that every process has: Go, the
// process, ocm_build_info with the version, requests to API servers (rest_client_*) and
// queues of control loops (workqueue_*, label name is the loop's id). Client and queue
// metrics are global in client-go: the last registry of a process gets those of the
// client, and the first registry those of the queues.
func NewRegistry(version string) *prometheus.Registry {
	r := prometheus.NewRegistry()
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ocm_build_info", Help: "Version of this process; the value is always 1.",
	}, []string{"version"})
	info.WithLabelValues(version).Set(1)
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), info)
	registerClient(r)
	registerQueues(r)
	return r
}

type clientMetrics struct {
	latency *prometheus.HistogramVec
	results *prometheus.CounterVec
}

func registerClient(r *prometheus.Registry) {
	m := &clientMetrics{
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "rest_client_request_duration_seconds", Help: "Time of requests to API servers, by verb.",
			Buckets: []float64{0.005, 0.025, 0.1, 0.5, 2, 15, 60},
		}, []string{"verb"}),
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rest_client_requests_total", Help: "Requests to API servers, by status code and method.",
		}, []string{"code", "method"}),
	}
	r.MustRegister(m.latency, m.results)
	// metrics.Register would lose to a library that registers when it is linked.
	metrics.RequestLatency, metrics.RequestResult = m, m
}

// Observe implements metrics.LatencyMetric.
func (m *clientMetrics) Observe(_ context.Context, verb string, _ url.URL, latency time.Duration) {
	m.latency.WithLabelValues(verb).Observe(latency.Seconds())
}

// Increment implements metrics.ResultMetric.
func (m *clientMetrics) Increment(_ context.Context, code, method, _ string) {
	m.results.WithLabelValues(code, method).Inc()
}

// queueMetrics is what workqueue reports about each queue.
type queueMetrics struct {
	depth, unfinished, longest *prometheus.GaugeVec
	adds, retries              *prometheus.CounterVec
	latency, duration          *prometheus.HistogramVec
}

func registerQueues(r *prometheus.Registry) {
	name := []string{"name"}
	gauge := func(n, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Subsystem: "workqueue", Name: n, Help: help}, name)
	}
	counter := func(n, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Subsystem: "workqueue", Name: n, Help: help}, name)
	}
	histogram := func(n, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Subsystem: "workqueue", Name: n, Help: help, Buckets: []float64{0.001, 0.01, 0.1, 1, 10, 60},
		}, name)
	}
	m := &queueMetrics{
		depth:      gauge("depth", "Keys that wait for a worker."),
		unfinished: gauge("unfinished_work_seconds", "Time that running passes have taken so far."),
		longest:    gauge("longest_running_processor_seconds", "Time of the longest running pass."),
		adds:       counter("adds_total", "Keys added."),
		retries:    counter("retries_total", "Passes repeated after an error."),
		latency:    histogram("queue_duration_seconds", "Time that keys waited for a worker."),
		duration:   histogram("work_duration_seconds", "Time of passes."),
	}
	r.MustRegister(m.depth, m.unfinished, m.longest, m.adds, m.retries, m.latency, m.duration)
	workqueue.SetProvider(m)
}

// NewDepthMetric implements workqueue.MetricsProvider.
func (m *queueMetrics) NewDepthMetric(name string) workqueue.GaugeMetric {
	return m.depth.WithLabelValues(name)
}

// NewAddsMetric implements workqueue.MetricsProvider.
func (m *queueMetrics) NewAddsMetric(name string) workqueue.CounterMetric {
	return m.adds.WithLabelValues(name)
}

// NewLatencyMetric implements workqueue.MetricsProvider.
func (m *queueMetrics) NewLatencyMetric(name string) workqueue.HistogramMetric {
	return m.latency.WithLabelValues(name)
}

// NewWorkDurationMetric implements workqueue.MetricsProvider.
func (m *queueMetrics) NewWorkDurationMetric(name string) workqueue.HistogramMetric {
	return m.duration.WithLabelValues(name)
}

// NewUnfinishedWorkSecondsMetric implements workqueue.MetricsProvider.
func (m *queueMetrics) NewUnfinishedWorkSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return m.unfinished.WithLabelValues(name)
}

// NewLongestRunningProcessorSecondsMetric implements workqueue.MetricsProvider.
func (m *queueMetrics) NewLongestRunningProcessorSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return m.longest.WithLabelValues(name)
}

// NewRetriesMetric implements workqueue.MetricsProvider.
func (m *queueMetrics) NewRetriesMetric(name string) workqueue.CounterMetric {
	return m.retries.WithLabelValues(name)
}
