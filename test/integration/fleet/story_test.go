// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// TestAFleetFromNothingAndBack runs the commands of the guide with the real hub
// process and a real agent.
func TestAFleetFromNothingAndBack(t *testing.T) {
	hub := harness.WithNode(t, "hub", map[string]string{"ocm-hub": harness.Program(t, "controllers/ocm-hub")})
	spoke := harness.WithNode(t, "spoke", map[string]string{"ocm-agent": harness.Program(t, "controllers/ocm-agent")})
	kubeconfig(t, hub, spoke)
	before := inventory(t, hub)
	spokeBefore := inventory(t, spoke)

	ready := run(t, "hub", "init", "--context", "hub", "--timeout", "90s")
	require.Zero(t, ready.code)
	require.Contains(t, ready.out, "hub/ocm-hub ready on context hub")
	require.Contains(t, run(t, "hub", "init", "--context", "hub", "--timeout", "90s").out, "unchanged")
	status := run(t, "hub", "status", "--context", "hub")
	require.Zero(t, status.code)
	require.Contains(t, status.out, "1/1")

	start := time.Now()
	joined := run(t, "join", "cluster1", "--context", "spoke", "--hub-context", "hub", "--accept", "--labels", "env=prod", "--timeout", "90s")
	require.Zero(t, joined.code)
	require.Contains(t, joined.out, "cluster1 joined hub hub")
	t.Logf("join to Available: %s", time.Since(start))
	require.Contains(t, run(t, "join", "cluster1", "--context", "spoke", "--hub-context", "hub", "--accept", "--timeout", "90s").out, "unchanged")
	require.Contains(t, run(t, "accept", "cluster1", "--context", "hub").out, "unchanged")
	require.Contains(t, run(t, "cluster", "list", "--context", "hub", "-l", "env=prod").out, "Available")
	require.Equal(t, 6, run(t, "hub", "clean", "--context", "hub", "--yes").code, "a cluster is attached")

	applied := runWith(t, configMap, "work", "apply", "web", "-f", "-", "-c", "cluster1", "--context", "hub", "--wait", "--timeout", "60s")
	require.Zero(t, applied.code)
	_, err := spoke.Dynamic(t).Resource(configMaps).Namespace("default").Get(t.Context(), "greeting", metav1.GetOptions{})
	require.NoError(t, err)
	require.Regexp(t, `cluster1 +web +True +True +1/1 +Ready`, run(t, "work", "list", "--context", "hub").out)
	refused := run(t, "unjoin", "cluster1", "--context", "spoke", "--yes")
	require.Equal(t, 6, refused.code, "its works would stay")
	require.Contains(t, refused.out, "web")

	gone := run(t, "unjoin", "cluster1", "--context", "spoke", "--hub-context", "hub", "--yes", "--timeout", "120s", "-o", "json")
	require.Zero(t, gone.code)
	require.True(t, json.Valid([]byte(gone.out)))
	require.Equal(t, spokeBefore, inventory(t, spoke))

	require.Zero(t, run(t, "hub", "clean", "--context", "hub", "--yes", "--timeout", "120s").code)
	after := inventory(t, hub)
	delete(after, "namespaces/cluster1")
	require.Equal(t, before, after)
	require.Contains(t, run(t, "hub", "clean", "--context", "hub", "--yes").out, "unchanged")
}

// inventory names the objects by which an installation shows.
func inventory(t *testing.T, c *harness.Cluster) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	client := c.Dynamic(t)
	for _, resource := range []schema.GroupVersionResource{namespaces, definitions,
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
		{Group: "apps", Version: "v1", Resource: "deployments"}} {
		list, err := client.Resource(resource).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, item := range list.Items {
			out[resource.Resource+"/"+item.GetNamespace()+item.GetName()] = true
		}
	}
	return out
}
