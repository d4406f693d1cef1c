// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/gc"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
)

var (
	worksDesc    = prometheus.NewDesc("ocm_manifestworks", "ManifestWorks by state: present, deleting.", []string{"state"}, nil)
	deletionDesc = prometheus.NewDesc(
		"ocm_manifestwork_deletion_age_seconds",
		"Time since the deletion of the ManifestWork that waits longest for its agent; 0 when none does.", nil, nil,
	)
	setsDesc = prometheus.NewDesc(
		"ocm_manifestworkreplicaset_clusters",
		"Clusters of all ManifestWorkReplicaSets by state: selected, applied, available, progressing, degraded, updated.",
		[]string{"state"}, nil,
	)
)

// collectWorks reports what the caches hold about works: their metadata.
func (c *collector) collectWorks(ch chan<- prometheus.Metric, seen state) {
	present, deleting := 0, 0
	var oldest time.Time
	err := manager.Each(seen.reader, manager.Metadata(gc.ManifestWorkKind), func(w *metav1.PartialObjectMetadata) {
		if w.DeletionTimestamp == nil {
			present++
			return
		}
		deleting++
		if at := w.DeletionTimestamp.Time; oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	})
	if err != nil {
		return
	}
	ch <- prometheus.MustNewConstMetric(worksDesc, prometheus.GaugeValue, float64(present), "present")
	ch <- prometheus.MustNewConstMetric(worksDesc, prometheus.GaugeValue, float64(deleting), "deleting")
	age := 0.0
	if !oldest.IsZero() {
		age = max(c.clock.Since(oldest).Seconds(), 0)
	}
	ch <- prometheus.MustNewConstMetric(deletionDesc, prometheus.GaugeValue, age)
}

// collectSets reports the sums of the summaries of replica sets.
func (c *collector) collectSets(ch chan<- prometheus.Metric, seen state) {
	if !seen.features.ManifestWorkReplicaSet {
		return // they are not watched, and reading them would start a watch
	}
	list := &workv1alpha1.ManifestWorkReplicaSetList{}
	if err := seen.reader.List(context.Background(), list, manager.NotCopied); err != nil {
		return
	}
	for state, n := range setSums(list.Items) {
		ch <- prometheus.MustNewConstMetric(setsDesc, prometheus.GaugeValue, float64(n), state)
	}
}

// setSums returns the sums of the summaries of replica sets, by state.
func setSums(sets []workv1alpha1.ManifestWorkReplicaSet) map[string]int {
	out := map[string]int{"selected": 0, "applied": 0, "available": 0, "progressing": 0, "degraded": 0, "updated": 0}
	for i := range sets {
		s := sets[i].Status.Summary
		updated, selected := sets[i].Status.RolledOut()
		for state, n := range map[string]int{
			"selected": selected, "applied": s.Applied, "available": s.Available, "progressing": s.Progressing, "degraded": s.Degraded, "updated": updated,
		} {
			out[state] += n
		}
	}
	return out
}
