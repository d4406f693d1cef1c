// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// inherited is the number of works with one object each that the test of leaving deploys,
// in addition to a replica set.
const inherited = 8

// deploy sends the works and waits until they are applied.
func deploy(t *testing.T) {
	t.Helper()
	for i := range inherited {
		body := strings.ReplaceAll(configMap, "greeting", fmt.Sprintf("greeting%d", i))
		sent := runWith(t, body, "work", "apply", fmt.Sprintf("web%d", i), "-f", "-", "-c", "cluster1", "--context", "hub", "--wait", "--timeout", "5m")
		require.Zero(t, sent.code)
	}
	body := strings.ReplaceAll(configMap, "greeting", "greeting-of-a-set")
	sent := runWith(t, body, "work", "apply", "shared", "-f", "-", "--placement", "default/everywhere", "--context", "hub", "--wait", "--timeout", "5m")
	require.Zero(t, sent.code)
}

// stays waits until the agent has forgotten the works, and checks that the same objects,
// by UID, are still there.
func stays(t *testing.T, spoke *harness.Cluster, before map[string]string) {
	t.Helper()
	records := spoke.Dynamic(t).Resource(workRecord)
	eventually(t, func() bool {
		list, err := records.List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 0
	}, patience, 100*time.Millisecond, "the agent has done all that it does with works that go")
	require.Equal(t, before, running(t, spoke))
}

// running returns the objects of the works on the cluster, and their UIDs.
func running(t *testing.T, spoke *harness.Cluster) map[string]string {
	t.Helper()
	list, err := spoke.Dynamic(t).Resource(configMaps).Namespace("default").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	out := map[string]string{}
	for _, item := range list.Items {
		if strings.HasPrefix(item.GetName(), "greeting") {
			out[item.GetName()] = string(item.GetUID())
		}
	}
	return out
}

// TestLeavingLeavesWhatRuns counts the objects on a cluster after it has left its hub,
// and after the hub was removed, while its agent runs.
func TestLeavingLeavesWhatRuns(t *testing.T) {
	t.Parallel()
	agent := harness.Program(t, "controllers/ocm-agent")
	hub := harness.FreshWithNode(t, "hub", map[string]string{"ocm-hub": harness.Program(t, "controllers/ocm-hub"), "ocm-agent": agent})
	spoke := harness.FreshWithNode(t, "spoke", map[string]string{"ocm-agent": agent})
	kubeconfig(t, hub, spoke)
	require.Zero(t, run(t, "hub", "init", "--context", "hub", "--timeout", "5m").code)
	join := []string{"join", "cluster1", "--context", "spoke", "--hub-context", "hub", "--accept", "--timeout", "5m"}
	require.Zero(t, run(t, join...).code)
	require.Zero(t, run(t, "clusterset", "bind", "global", "-n", "default", "--context", "hub").code)
	require.Zero(t, run(t, "placement", "create", "everywhere", "-n", "default", "--context", "hub").code)
	deploy(t)
	whoLeaves(t, hub, spoke)
	before := running(t, spoke)
	require.Len(t, before, inherited+1)

	removed := run(t, "cluster", "remove", "cluster1", "--context", "hub", "--keep-works", "--yes", "--timeout", "5m")
	require.Zero(t, removed.code)
	require.Contains(t, removed.out, "9 objects of 9 works stay on the cluster: ")
	stays(t, spoke, before)

	require.Zero(t, run(t, join...).code)
	deploy(t)
	cleaned := run(t, "hub", "clean", "--context", "hub", "--yes", "--force", "--timeout", "5m")
	require.Zero(t, cleaned.code)
	require.Contains(t, cleaned.err, "9 objects of 9 works stay on 1 cluster")
	require.NotContains(t, cleaned.err, "have not confirmed")
	stays(t, spoke, before)

	// The same by kubectl: the operator goes in the same order.
	require.Zero(t, run(t, "hub", "init", "--context", "hub", "--timeout", "5m").code)
	require.Zero(t, run(t, "clusterset", "bind", "global", "-n", "default", "--context", "hub").code)
	require.Zero(t, run(t, "placement", "create", "everywhere", "-n", "default", "--context", "hub").code)
	require.Zero(t, run(t, append(join, "--rejoin")...).code)
	deploy(t)
	typeLine(t, "kubectl delete clustermanager cluster-manager --timeout 5m --context hub")
	stays(t, spoke, before)
}
