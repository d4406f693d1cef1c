// SPDX-License-Identifier: Apache-2.0

//go:build perf

package agent_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	"github.com/kubectl-ocm/kubectl-ocm/config/agent/operator"
	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// The maximum memory of an agent, in bytes: anonymous memory, and the same with the pages
// of its program that it has touched.
const (
	mostAnon     = 9 << 20
	mostResident = 30 << 20
)

// The maximum anonymous memory of an operator: without a Klusterlet, and more for each hosted one.
const (
	operatorAnon  = 12 << 20
	operatorShare = 1 << 20
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

// TestResidentMemoryOfAnOperator checks the memory of the operator of a hosting cluster with a
// hundred hosted agents, twenty with -short. What they are themselves is measured by
// TestAnOperatorServesEveryKlusterlet.
func TestResidentMemoryOfAnOperator(t *testing.T) {
	t.Parallel()
	h, s, managed := newHub(t), newSpoke(t), newSpoke(t)
	objects, err := operator.Objects("registry.example/ocm-agent:test")
	require.NoError(t, err)
	for _, u := range objects {
		apply(t, s.client, u)
	}
	process := s.startIn(t, operatorv1.NamespaceOperator, operator.ServiceAccount, t.TempDir(), "operator")
	count := 100
	if testing.Short() {
		count = 20
	}
	guests := make([]*hosted, count)
	for i := range guests {
		guests[i] = newHosted(s, managed, h, fmt.Sprintf("guest-%d", i))
		guests[i].createIn(t, "SingletonHosted")
	}
	access := guests[0].access(t)
	for _, o := range guests {
		await(t, func() bool { return o.live(t, namespaces, "", o.namespace) != nil })
		o.setSecret(t, operatorv1.SecretExternalManagedKubeconfig, map[string][]byte{"kubeconfig": access})
	}
	for _, o := range guests {
		o.awaitCondition(t, operatorv1.ConditionApplied, metav1.ConditionTrue, operatorv1.ReasonKlusterletApplied)
	}
	rests(t)
	got := process.memory(t)
	t.Logf("measured: an operator with %d hosted agents: %s", count, got)
	require.LessOrEqual(t, got.Anon, int64(operatorAnon+count*operatorShare))
}
