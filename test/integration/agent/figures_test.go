// SPDX-License-Identifier: Apache-2.0

//go:build perf

package agent_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// idle is how long an agent rests before its memory is read.
const idle = time.Minute

// TestResidentMemory holds the memory budgets of both ways to run an agent:
// VmRSS, warm, after a minute of rest, with ten works of two objects each.
func TestResidentMemory(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args   []string
		budget int
	}{
		"run":   {[]string{"run"}, 30 << 10},
		"agent": {[]string{"agent", "--spoke-cluster-name=figures-agent"}, 25 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, s := newHub(t), newSpoke(t)
			cluster := "figures-" + name
			s.install(t, config.Options{ClusterName: cluster, BootstrapKubeconfig: h.bootstrap(t)})
			if name == "agent" {
				definitions, err := crd.Agent()
				require.NoError(t, err)
				for _, u := range definitions {
					apply(t, s.client, u)
				}
			}
			a := s.start(t, tc.args...)
			h.join(t, cluster)
			for i := range 10 {
				h.deliver(t, cluster, fmt.Sprintf("work-%d", i))
			}
			await(t, func() bool { return h.applied(t, cluster) == 10 })
			rested := time.Now().Add(idle)
			await(t, func() bool { return time.Now().After(rested) }, "a minute does not pass")
			got := a.resident(t)
			t.Logf("%s with 10 works: %d KiB resident, budget %d KiB", name, got, tc.budget)
			require.LessOrEqual(t, got, tc.budget)
		})
	}
}

// applied counts the works of a cluster that are applied.
func (h *hub) applied(t *testing.T, cluster string) int {
	t.Helper()
	list, err := typed.List[workv1.ManifestWork](t.Context(), h.client, works, cluster, metav1.ListOptions{})
	require.NoError(t, err)
	n := 0
	for _, w := range list {
		if apimeta.IsStatusConditionTrue(w.Status.Conditions, workv1.ConditionApplied) {
			n++
		}
	}
	return n
}
