// SPDX-License-Identifier: Apache-2.0

package work

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workagent "github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// figures returns the values of all metrics, by name and state.
func figures(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	require.NoError(t, err)
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, label := range m.GetLabel() {
				name += " " + label.GetValue()
			}
			out[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return out
}

func TestMetricsTellHowTheWorksDo(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.config.Metrics = &workagent.Metrics{}
	registry := prometheus.NewRegistry()
	require.NoError(t, registry.Register(s.config.Metrics))
	require.Equal(t, map[string]float64{"ocm_agent_work_repairs_total": 0}, figures(t, registry), "no agent runs")
	s.start()
	s.create("good", []string{configMap("good", "k", "v")})
	s.create("bad", []string{`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bad","namespace":"no-such-namespace"}}`})
	s.ready("good")
	s.settled("bad", workv1.ConditionApplied, metav1.ConditionFalse)
	shows := func(want map[string]float64) {
		t.Helper()
		s.eventually(func() bool {
			got := figures(t, registry)
			for name, value := range want {
				if got[name] != value {
					return false
				}
			}
			return true
		}, "metrics are not %v", want)
	}
	shows(map[string]float64{"ocm_agent_works applied": 1, "ocm_agent_works failing": 1, "ocm_agent_works deleting": 0, "ocm_agent_works pending": 0})
	require.Positive(t, figures(t, registry)["ocm_agent_work_lag_seconds"], "a work waits to be carried out")

	s.update("bad", s.manifests(configMap("bad", "k", "v")))
	s.ready("bad")
	shows(map[string]float64{"ocm_agent_works applied": 2, "ocm_agent_works failing": 0, "ocm_agent_work_lag_seconds": 0, "ocm_agent_work_repairs_total": 0})

	s.patch(configMaps, "good", `{"data":{"k":"drift"}}`)
	shows(map[string]float64{"ocm_agent_work_repairs_total": 1})

	s.patch(configMaps, "bad", `{"metadata":{"finalizers":["example.com/hold"]}}`)
	s.remove("bad")
	shows(map[string]float64{"ocm_agent_works applied": 1, "ocm_agent_works deleting": 1})
	s.patch(configMaps, "bad", `{"metadata":{"finalizers":null}}`)
	s.gone("bad")
	shows(map[string]float64{"ocm_agent_works applied": 1, "ocm_agent_works deleting": 0, "ocm_agent_work_lag_seconds": 0})
}
