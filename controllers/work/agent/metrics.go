// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the metrics of an agent's works. It is a prometheus.Collector that outlives
// the agents it is given to, one after the other; anything that requires reading all
// works is computed when it is collected.
type Metrics struct {
	current atomic.Pointer[agent]
	repairs atomic.Uint64
}

var (
	worksDesc = prometheus.NewDesc("ocm_agent_works",
		"ManifestWorks of this cluster by state: applied, failing, deleting, or pending until their newest generation is reconciled.", []string{"state"}, nil)
	lagDesc = prometheus.NewDesc("ocm_agent_work_lag_seconds",
		"Time since the oldest change of a ManifestWork was seen that is not applied yet; 0 for none.", nil, nil)
	repairsDesc = prometheus.NewDesc("ocm_agent_work_repairs_total",
		"Objects of ManifestWorks that were repaired after others changed or deleted them.", nil, nil)
)

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	out <- worksDesc
	out <- lagDesc
	out <- repairsDesc
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	out <- prometheus.MustNewConstMetric(repairsDesc, prometheus.CounterValue, float64(m.repairs.Load()))
	a := m.current.Load()
	if a == nil {
		return
	}
	states := map[string]float64{"applied": 0, "failing": 0, "deleting": 0, "pending": 0}
	for _, work := range a.works.List() {
		stands := a.apply.Standing(work.Name)
		switch {
		case work.Deleting:
			states["deleting"]++
		case stands.Failing:
			states["failing"]++
		case stands.Generation == work.Generation:
			states["applied"]++
		default:
			states["pending"]++
		}
	}
	for state, n := range states {
		out <- prometheus.MustNewConstMetric(worksDesc, prometheus.GaugeValue, n, state)
	}
	out <- prometheus.MustNewConstMetric(lagDesc, prometheus.GaugeValue, a.lag.oldest(a.cfg.Clock.Now()).Seconds())
}

// lag records since when works have changes that are not applied yet.
type lag struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// record adds a work with such a change; a work that is recorded already keeps its time.
func (l *lag) record(work string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.since == nil {
		l.since = map[string]time.Time{}
	}
	if _, waits := l.since[work]; !waits {
		l.since[work] = now
	}
}

// clear removes a work.
func (l *lag) clear(work string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.since, work)
}

// oldest returns how long the oldest change has been waiting.
func (l *lag) oldest(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out time.Duration
	for _, since := range l.since {
		out = max(out, now.Sub(since))
	}
	return out
}
