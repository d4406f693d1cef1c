// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// splitJoin joins cluster c1.
func splitJoin(more ...string) []string {
	return append([]string{"join", "c1", "--context", "c1", "--hub-context", "hub", "--accept", "--timeout", "5m"}, more...)
}

// TestAClusterJoinsWithASplitAgent joins a cluster whose agent an operator runs in Deployments, at once
// and later: what was a process of its own is replaced, and the cluster, its identity and what works
// applied are as before; and so they are when it is one process again. When it leaves, nothing is left of
// either layout.
func TestAClusterJoinsWithASplitAgent(t *testing.T) {
	t.Parallel()
	agent := harness.Program(t, "controllers/ocm-agent")
	hub := harness.FreshWithNode(t, "hub", map[string]string{"ocm-hub": harness.Program(t, "controllers/ocm-hub")})
	c1 := harness.FreshWithNode(t, "c1", map[string]string{"ocm-agent": agent})
	kubeconfig(t, hub, c1)
	require.Zero(t, run(t, "hub", "init", "--context", "hub", "--timeout", "5m").code)
	before := inventory(t, c1)
	dry := run(t, splitJoin("--layout", "split", "--dry-run", "-o", "yaml")...)
	require.Zero(t, dry.code)
	require.Contains(t, dry.out, "mode: Default")
	require.Equal(t, before, inventory(t, c1), "a dry run writes nothing")

	require.Contains(t, run(t, splitJoin("--layout", "split")...).out, "c1 joined hub hub (created)")
	apart := []string{"klusterlet-registration-agent", "klusterlet-work-agent"}
	require.Equal(t, apart, agents(t, c1))
	require.Contains(t, run(t, splitJoin("--layout", "split")...).out, "unchanged")
	require.Contains(t, run(t, splitJoin()...).out, "unchanged", "the layout stays")
	require.Equal(t, apart, agents(t, c1))
	require.Contains(t, run(t, "join", "--upgrade", "--context", "c1").out, "unchanged")
	well(t, "--context", "hub")
	leave := []string{"unjoin", "c1", "--context", "c1", "--hub-context", "hub", "--yes", "--timeout", "5m"}
	require.Zero(t, run(t, leave...).code)
	asBefore(t, c1, before)

	require.Zero(t, run(t, splitJoin()...).code)
	require.Equal(t, []string{"klusterlet-agent"}, agents(t, c1))
	fresh := installation(t, c1)
	require.Zero(t, runWith(t, configMap, "work", "apply", "web", "-f", "-", "-c", "c1", "--context", "hub", "--wait", "--timeout", "5m").code)
	was := stateOf(t, hub, c1)
	switched := run(t, splitJoin("--layout", "split")...)
	require.Zero(t, switched.code, switched.err)
	require.Contains(t, switched.out, "c1 joined hub hub (configured)")
	require.Equal(t, apart, agents(t, c1))
	eventually(t, func() bool { return !inventory(t, c1)["clusterroles/kubectl-ocm:klusterlet"] }, patience, 100*time.Millisecond,
		"only an agent that serves itself has these rights: the operator removes them when the new agent is available")
	require.Equal(t, was, stateOf(t, hub, c1), "neither the cluster nor its identity nor what works applied has changed")
	require.Zero(t, runWith(t, strings.ReplaceAll(configMap, "greeting", "second"), "work", "apply", "more", "-f", "-", "-c", "c1",
		"--context", "hub", "--wait", "--timeout", "5m").code, "the new agent applies works")
	require.Contains(t, run(t, splitJoin("--layout", "split")...).out, "unchanged")
	well(t, "--context", "hub")
	becomesCompact(t, hub, c1, fresh)
	require.Equal(t, was, stateOf(t, hub, c1))
	for _, name := range []string{"web", "more"} {
		require.Zero(t, run(t, "work", "delete", name, "-c", "c1", "--context", "hub", "--yes").code)
	}
	eventually(t, func() bool { return len(running(t, c1)) == 0 }, patience, 100*time.Millisecond)
	require.Zero(t, run(t, leave...).code)
	eventually(t, func() bool { return maps.Equal(before, inventory(t, c1)) }, patience, 200*time.Millisecond)
}

// agents returns the names of the Deployments in the namespace of the agent.
func agents(t *testing.T, c *harness.Cluster) []string {
	t.Helper()
	list, err := c.Dynamic(t).Resource(deployments).Namespace(agentSpace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	var out []string
	for i := range list.Items {
		out = append(out, list.Items[i].GetName())
	}
	slices.Sort(out)
	return out
}

// identityAndWork is what a change of the layout must not touch.
type identityAndWork struct {
	available, identity, applied string
}

func stateOf(t *testing.T, hub, c *harness.Cluster) identityAndWork {
	t.Helper()
	ctx := t.Context()
	mc, err := hub.Dynamic(t).Resource(clusters).Get(ctx, "c1", metav1.GetOptions{})
	require.NoError(t, err)
	available := apimeta.FindStatusCondition(fleet.ConditionsOf(mc), clusterv1.ConditionAvailable)
	require.NotNil(t, available)
	secret, err := c.Dynamic(t).Resource(secrets).Namespace(agentSpace).Get(ctx, clusterv1.SecretHubKubeconfig, metav1.GetOptions{})
	require.NoError(t, err)
	return identityAndWork{available: available.LastTransitionTime.String(), identity: string(secret.GetUID()), applied: running(t, c)["greeting"]}
}
