// SPDX-License-Identifier: Apache-2.0

//go:build perf

package agent_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
)

// The maximum memory of an agent, in bytes: anonymous memory, and the same with the pages
// of its program that it has touched.
const (
	mostAnon     = 9 << 20
	mostResident = 30 << 20
)

// rests waits before the memory of an agent is read.
func rests(t *testing.T) {
	t.Helper()
	idle := 5 * time.Minute
	if testing.Short() {
		idle = 20 * time.Second
	}
	rested := time.Now().Add(idle)
	require.Eventually(t, func() bool { return time.Now().After(rested) }, 2*idle, time.Second, "time does not pass")
}

// TestResidentMemory checks the memory budgets of both ways to run an agent, as
// installed, after five minutes of rest, with ten works of two objects each.
func TestResidentMemory(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"run":   {"run"},
		"agent": {"agent", "--spoke-cluster-name=figures-agent"},
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
			a := s.start(t, args...)
			h.join(t, cluster)
			for i := range 10 {
				h.deliver(t, cluster, fmt.Sprintf("work-%d", i))
			}
			await(t, func() bool { return h.applied(t, cluster) == 10 })
			rests(t)
			got := a.memory(t)
			t.Logf("measured: %s with 10 works: %s", name, got)
			require.LessOrEqual(t, got.Anon, int64(mostAnon))
			require.LessOrEqual(t, got.Resident, int64(mostResident))
		})
	}
}
