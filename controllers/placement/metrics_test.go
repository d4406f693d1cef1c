// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
)

func TestMetricsHaveTheNamesOfTheContract(t *testing.T) {
	m := NewMetrics()
	for range 2 {
		m.scheduling.Observe(0.001)
		m.bind.Observe(1)
		m.observeStep(schedule.Step{Kind: schedule.KindFilter, Name: "Predicate"}, time.Microsecond)
		m.observeStep(schedule.Step{Kind: schedule.KindPrioritizer, Name: "Balance"}, time.Microsecond)
		m.observeStep(schedule.Step{Kind: schedule.KindCEL}, time.Microsecond)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m)
	families, err := registry.Gather()
	require.NoError(t, err)
	var got []string
	for _, f := range families {
		for _, series := range f.GetMetric() {
			text := f.GetName()
			for _, l := range series.GetLabel() {
				if l.GetName() == "name" {
					require.Equal(t, "placement_scheduling", l.GetValue())
					continue
				}
				text += " " + l.GetName() + "=" + l.GetValue()
			}
			require.EqualValues(t, 2, series.GetHistogram().GetSampleCount(), text)
			buckets := series.GetHistogram().GetBucket()
			require.Len(t, buckets, 10)
			require.InDelta(t, 1e-6, buckets[0].GetUpperBound(), 1e-9)
			got = append(got, text)
		}
	}
	slices.Sort(got)
	require.Equal(t, []string{
		"scheduling_bind_duration_seconds", "scheduling_cel_runtime_duration_seconds",
		"scheduling_plugin_duration_seconds plugin_name=Balance plugin_type=prioritizer",
		"scheduling_plugin_duration_seconds plugin_name=Predicate plugin_type=filter",
		"scheduling_scheduling_duration_seconds",
	}, got)
}
