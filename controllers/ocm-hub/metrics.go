// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/internal/certs"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// leaseAges are the histogram buckets for ages of leases, in seconds.
var leaseAges = []float64{30, 60, 120, 300, 900, 3600, 86400}

var (
	clustersDesc = prometheus.NewDesc(
		"ocm_clusters",
		"ManagedClusters by state: pending, accepted, joined, available, unavailable, unknown, deleting.",
		[]string{"state"}, nil,
	)
	leaseDesc   = prometheus.NewDesc("ocm_cluster_lease_age_seconds", "Time since clusters renewed their leases, as the hub saw it.", nil, nil)
	servingDesc = prometheus.NewDesc("ocm_serving_certificate_expiry_timestamp_seconds", "When the serving certificates of admission end.", []string{"name"}, nil)
	clientDesc  = prometheus.NewDesc("ocm_cluster_certificate_expiry_timestamp_seconds", "When the first of the agents' certificates ends.", nil, nil)
)

// collector reads the state of the fleet from the caches at each scrape. Only the leader
// reports any, and of the parts that it runs.
type collector struct {
	loops *loops
	// book is nil in a process that serves no admission.
	book  *certs.Book
	clock clock.PassiveClock
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{clustersDesc, leaseDesc, servingDesc, clientDesc, worksDesc, deletionDesc, setsDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	if c.book != nil {
		for name, end := range c.book.Expiries() {
			ch <- prometheus.MustNewConstMetric(servingDesc, prometheus.GaugeValue, float64(end.Unix()), name)
		}
	}
	if s := c.loops.current(); s.reader != nil {
		c.collectClusters(ch, s)
		c.collectWorks(ch, s)
		c.collectSets(ch, s)
	}
}

// collectClusters reports the state of the clusters and the age of their leases.
func (c *collector) collectClusters(ch chan<- prometheus.Metric, seen state) {
	now := c.clock.Now()
	ages := histogram{buckets: map[float64]uint64{}}
	for _, bound := range leaseAges {
		ages.buckets[bound] = 0
	}
	states := map[string]int{"pending": 0, "accepted": 0, "joined": 0, "available": 0, "unavailable": 0, "unknown": 0, "deleting": 0}
	var first time.Time
	err := manager.Each(seen.reader, &clusterv1.ManagedCluster{}, func(mc *clusterv1.ManagedCluster) {
		for _, state := range statesOf(mc) {
			states[state]++
		}
		end, err := time.Parse(time.RFC3339, mc.Annotations[clusterv1.AnnotationCertificateExpires])
		if err == nil && (first.IsZero() || end.Before(first)) {
			first = end
		}
		if b, ok := seen.arrivals.Get(mc.Name); ok {
			ages.add(now.Sub(b.Arrived).Seconds())
		}
	})
	if err != nil {
		return
	}
	for state, n := range states {
		ch <- prometheus.MustNewConstMetric(clustersDesc, prometheus.GaugeValue, float64(n), state)
	}
	if !first.IsZero() {
		ch <- prometheus.MustNewConstMetric(clientDesc, prometheus.GaugeValue, float64(first.Unix()))
	}
	ch <- prometheus.MustNewConstHistogram(leaseDesc, ages.count, ages.sum, ages.buckets)
}

// histogram collects the ages of the clusters' leases. Leases of deleted clusters do not
// count.
type histogram struct {
	count   uint64
	sum     float64
	buckets map[float64]uint64
}

func (h *histogram) add(age float64) {
	h.count++
	h.sum += age
	for _, bound := range leaseAges {
		if age <= bound {
			h.buckets[bound]++
		}
	}
}

// statesOf returns the states that a cluster counts in.
func statesOf(mc *clusterv1.ManagedCluster) []string {
	if mc.DeletionTimestamp != nil {
		return []string{"deleting"}
	}
	if !mc.Spec.HubAcceptsClient {
		return []string{"pending"}
	}
	out := []string{"accepted"}
	conditions := mc.Status.Conditions
	if apimeta.IsStatusConditionTrue(conditions, clusterv1.ConditionJoined) {
		out = append(out, "joined")
	}
	available := apimeta.FindStatusCondition(conditions, clusterv1.ConditionAvailable)
	switch {
	case available == nil || available.Status == "Unknown":
		out = append(out, "unknown")
	case available.Status == "True":
		out = append(out, "available")
	default:
		out = append(out, "unavailable")
	}
	return out
}
