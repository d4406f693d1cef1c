// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/join"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	between "github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
)

// becomesCompact makes one process of the agent that an operator runs: with runs that die after each
// write, beside an operator that others installed, and from one Deployment. Each time everything is then
// as after a fresh join, and two agents never run at once.
func becomesCompact(t *testing.T, hub, c1 *harness.Cluster, fresh map[string]string) {
	t.Helper()
	compact, split := splitJoin("--layout", "compact"), splitJoin("--layout", "split")
	apart := installation(t, c1)
	for _, look := range []string{"--dry-run", "--dry-run=server", "--diff"} {
		require.Contains(t, []int{0, 1}, run(t, append(compact, look)...).code)
		sameContents(t, apart, installation(t, c1))
	}
	declared := uids(t, c1, klusterlets)
	leases, both := watchRenewals(t, hub, "c1"), watchAgents(t, c1)

	patched(t, c1, namespaces, "", operatorSpace, `{"metadata":{"labels":{"open-cluster-management.io/created-by-klusterlet-operator":null}}}`)
	switched := run(t, compact...)
	require.Contains(t, switched.out, "c1 joined hub hub (configured)")
	require.Contains(t, run(t, compact...).out, "unchanged")
	_, err := c1.Dynamic(t).Resource(deployments).Namespace(operatorSpace).Get(t.Context(), "klusterlet", metav1.GetOptions{})
	require.NoError(t, err, "the operator is that of others")
	patched(t, c1, klusterlets, "", "klusterlet", `{"metadata":{"labels":{"wakes":"the-operator"}}}`)
	require.Zero(t, runWith(t, strings.ReplaceAll(configMap, "greeting", "second"), "work", "apply", "more", "-f", "-", "-c", "c1",
		"--context", "hub", "--wait", "--timeout", "5m").code, "the agent applies works")
	require.Equal(t, []string{"klusterlet-agent"}, agents(t, c1), "the operator leaves the agent alone")
	patched(t, c1, klusterlets, "", "klusterlet", `{"metadata":{"labels":{"wakes":null}}}`)
	patched(t, c1, namespaces, "", operatorSpace, `{"metadata":{"labels":{"open-cluster-management.io/created-by-klusterlet-operator":"kubectl-ocm"}}}`)
	require.Zero(t, run(t, compact...).code)
	sameContents(t, fresh, installation(t, c1))

	require.Zero(t, run(t, split...).code)
	dieSwitching(t, hub, c1)
	require.Zero(t, run(t, compact...).code)
	sameContents(t, fresh, installation(t, c1))

	require.Zero(t, run(t, append(split, "--mode", "singleton")...).code)
	require.Equal(t, []string{"klusterlet-agent"}, agents(t, c1))
	require.Contains(t, run(t, compact...).out, "c1 joined hub hub (configured)")
	sameContents(t, fresh, installation(t, c1))
	well(t, "--context", "hub")
	require.Equal(t, declared, uids(t, c1, klusterlets))
	leases.noneMissed(t, true)
	require.Empty(t, both(), "two agents at once")
}

// installation returns every object of the installation of an agent.
func installation(t *testing.T, c *harness.Cluster) map[string]string {
	t.Helper()
	out := contentsOf(t, c, klusterlets, leaseResource)
	maps.DeleteFunc(out, func(name, _ string) bool {
		return strings.HasPrefix(name, "ConfigMap default/") || strings.HasPrefix(name, "Lease kube-")
	})
	for name := range out {
		if strings.HasPrefix(name, "Lease ") {
			out[name] = "held"
		}
	}
	return out
}

// dieSwitching runs joins that die after ever more writes to the cluster, until one comes to its end.
func dieSwitching(t *testing.T, hub, c1 *harness.Cluster) {
	t.Helper()
	onHub, err := fleet.Connect(hub.Config, "hub")
	require.NoError(t, err)
	died := errors.New("the process is dead")
	for writes := 1; ; writes++ {
		ctx, kill := context.WithCancel(t.Context())
		config, process := between.Count(c1.Config)
		var mu sync.Mutex
		left := writes
		process.Fail(func(_ string, r *http.Request) error {
			mu.Lock()
			defer mu.Unlock()
			if left == 0 {
				kill()
				return died
			}
			if r.Method != http.MethodGet {
				left--
			}
			return nil
		})
		c, err := fleet.Connect(config, "c1")
		require.NoError(t, err)
		_, err = join.Run(ctx, join.Options{Name: "c1", Spoke: c, Hub: onHub, Layout: join.LayoutCompact, Version: version.Get()})
		kill()
		if err == nil {
			t.Logf("a run of %d writes to the end", writes)
			require.Greater(t, writes, 20)
			return
		}
	}
}

// watchAgents looks at the pods of the agent again and again; the returned function ends that, and tells
// which ran at the same time in both layouts.
func watchAgents(t *testing.T, c *harness.Cluster) (both func() []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var out []string
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		for out == nil && ctx.Err() == nil {
			out = together(ctx, c.Dynamic(t))
			select {
			case <-ctx.Done():
			case <-ticker.C:
			}
		}
	})
	t.Cleanup(cancel)
	return func() []string {
		cancel()
		running.Wait()
		return out
	}
}

// together returns the pods of the agent if there are some of more than one kind of agent.
func together(ctx context.Context, client dynamic.Interface) []string {
	list, err := client.Resource(pods).Namespace(agentSpace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	kinds, names := map[string]bool{}, []string{}
	for _, u := range list.Items {
		containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "containers")
		args, _, _ := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
		kind := args[0]
		if kind == "registration" || kind == "work" {
			kind = "apart"
		}
		kinds[kind] = true
		names = append(names, u.GetName())
	}
	if len(kinds) < 2 {
		return nil
	}
	return names
}
