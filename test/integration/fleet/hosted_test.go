// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// hostedJoin joins cluster edge with an agent that the hub hosts.
func hostedJoin(file string, more ...string) []string {
	return append([]string{"join", "edge", "--context", "hub", "--hub-context", "hub", "--mode", "hosted", "--managed-cluster-kubeconfig", file}, more...)
}

// pointed returns a copy of a kubeconfig that leads to another address.
func pointed(t *testing.T, c *harness.Cluster, server string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(c.Kubeconfig)
	require.NoError(t, err)
	for _, one := range config.Clusters {
		one.Server = server
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, file))
	return file
}

// TestAClusterJoinsWithAHostedAgent joins a cluster whose agent runs on the hub, applies a work
// there, and lets it leave: both clusters are then as they were before. What cannot work is refused
// before anything is written.
func TestAClusterJoinsWithAHostedAgent(t *testing.T) {
	t.Parallel()
	agent := harness.Program(t, "controllers/ocm-agent")
	hub := harness.FreshWithNode(t, "hub", map[string]string{"ocm-hub": harness.Program(t, "controllers/ocm-hub"), "ocm-agent": agent})
	edge := harness.FreshWithNode(t, "edge", map[string]string{"ocm-agent": agent})
	kubeconfig(t, hub, edge)
	require.Zero(t, run(t, "hub", "init", "--context", "hub", "--feature-gates", "ClusterProxy=true", "--timeout", "5m").code)
	before, there := inventory(t, hub), inventory(t, edge)
	hostedRefused(t, hub, edge)
	eventually(t, func() bool { return maps.Equal(before, inventory(t, hub)) }, patience, 100*time.Millisecond, "a refusal writes nothing")
	dry := run(t, hostedJoin(edge.Kubeconfig, "--dry-run", "-o", "yaml")...)
	require.Zero(t, dry.code)
	for _, want := range []string{"kind: Klusterlet", "mode: Hosted", "name: external-managed-kubeconfig", "name: klusterlet-edge"} {
		require.Contains(t, dry.out, want)
	}
	require.NotContains(t, dry.out, "client-key-data")
	require.Equal(t, before, inventory(t, hub), "a dry run writes nothing")

	guide, err := os.ReadFile("../../../docs/guides/hosted.md")
	require.NoError(t, err)
	var lines []string
	for _, block := range regexp.MustCompile("(?s)```\n(.*?)```").FindAllStringSubmatch(string(guide), -1) {
		lines = append(lines, strings.Split(strings.TrimSpace(strings.ReplaceAll(block[1], "edge.kubeconfig", edge.Kubeconfig)), "\n")...)
	}
	require.Len(t, lines, 3)
	require.Contains(t, typeLine(t, lines[0]), "edge joined hub hub (created)")
	require.Contains(t, run(t, hostedJoin(edge.Kubeconfig)...).out, "unchanged")
	require.Contains(t, run(t, "join", "--upgrade", "--klusterlet", "klusterlet-edge", "--context", "hub").out, "unchanged")
	taken := run(t, "join", "edge2", "--context", "hub", "--hub-context", "hub", "--mode", "singletonhosted", "--managed-cluster-kubeconfig", edge.Kubeconfig)
	require.Equal(t, 6, taken.code)
	require.Contains(t, taken.err, `is joined to this hub already, as "edge"`)
	require.Contains(t, taken.err, "kubectl ocm unjoin edge --klusterlet klusterlet-edge --context hub")

	greet := func() {
		require.Zero(t, runWith(t, configMap, "work", "apply", "web", "-f", "-", "-c", "edge", "--context", "hub", "--wait", "--timeout", "5m").code)
	}
	greet()
	require.Len(t, running(t, edge), 1)
	require.Empty(t, running(t, hub))
	leadsThere(t, hub, edge)
	held := run(t, "unjoin", "edge", "--context", "hub", "--yes")
	require.Equal(t, 6, held.code)
	require.Contains(t, held.err, "1 work is applied")
	besideOperator(t, hub)
	eventually(t, func() bool { return strings.Contains(typeLine(t, lines[1]), "klusterlet-edge of cluster edge is well") }, patience, time.Second)
	typeLine(t, lines[2]+" --timeout 5m")
	require.Empty(t, running(t, edge))
	typeLine(t, "kubectl delete namespace edge local --ignore-not-found --context hub")
	eventually(t, func() bool { return maps.Equal(before, inventory(t, hub)) && maps.Equal(there, inventory(t, edge)) }, patience, 200*time.Millisecond,
		"the operator goes with the last agent")
	require.Zero(t, run(t, "hub", "status", "--context", "hub").code)
}

// leadsThere has the agent open a tunnel: it leads to the cluster that the agent manages, not to the one that it runs on, and the
// agent acts for users with the rights that it has there.
func leadsThere(t *testing.T, hub, edge *harness.Cluster) {
	t.Helper()
	require.Zero(t, run(t, hostedJoin(edge.Kubeconfig, "--feature-gates", "ClusterProxy=true", "--timeout", "5m")...).code)
	binaries, err := harness.Binaries(t.Context())
	require.NoError(t, err)
	r := &reachable{hub: hub, kubectl: binaries.Kubectl, memory: t.TempDir()}
	grant := []string{"create", "clusterrolebinding", "views", "--clusterrole=view", "--user=kubernetes-admin", "--context", "edge"}
	require.Contains(t, r.direct(t, grant...), "created")
	own := func(c *harness.Cluster) string {
		u, err := c.Dynamic(t).Resource(namespaces).Get(t.Context(), "kube-system", metav1.GetOptions{})
		require.NoError(t, err)
		return string(u.GetUID())
	}
	require.NotEqual(t, own(hub), own(edge))
	ask := []string{"kubectl", "-c", "edge", "--context", "hub", "--", "get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}"}
	until(t, func() error { // the agent has started with the gate, and the right counts
		if got := r.runs(t, "", ask...); got.code != 0 || got.out != own(edge) {
			return fmt.Errorf("exit %d, %s, not %s\n%s", got.code, got.out, own(edge), got.err)
		}
		return nil
	})
	require.Contains(t, r.direct(t, "delete", "clusterrolebinding", "views", "--context", "edge"), "deleted")
}

// besideOperator joins the hosting cluster itself: the operator that is there runs the agent, and
// stays for the others when that leaves.
func besideOperator(t *testing.T, hub *harness.Cluster) {
	t.Helper()
	join := []string{"join", "local", "--context", "hub", "--hub-context", "hub", "--accept", "--timeout", "5m"}
	narrow := run(t, append(join, "--agent-rights", "narrow")...)
	require.Equal(t, 6, narrow.code)
	require.Contains(t, narrow.err, "the operator there runs it")
	require.Zero(t, run(t, join...).code)
	require.Contains(t, run(t, join...).out, "unchanged")
	d, err := hub.Dynamic(t).Resource(deployments).Namespace(agentSpace).Get(t.Context(), "klusterlet-agent", metav1.GetOptions{})
	require.NoError(t, err)
	containers, _, _ := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "containers")
	require.Equal(t, "agent", containers[0].(map[string]any)["args"].([]any)[0])
	require.Zero(t, run(t, "unjoin", "local", "--context", "hub", "--hub-context", "hub", "--yes", "--timeout", "5m").code)
	_, err = hub.Dynamic(t).Resource(deployments).Namespace("open-cluster-management").Get(t.Context(), "klusterlet", metav1.GetOptions{})
	require.NoError(t, err)
}

// hostedRefused tries what cannot work.
func hostedRefused(t *testing.T, hub, edge *harness.Cluster) {
	t.Helper()
	broken := filepath.Join(t.TempDir(), "broken")
	require.NoError(t, os.WriteFile(broken, []byte("clusters: ["), 0o600))
	borrowed := filepath.Join(t.TempDir(), "borrowed")
	config, err := clientcmd.LoadFromFile(edge.Kubeconfig)
	require.NoError(t, err)
	for _, user := range config.AuthInfos {
		user.Impersonate = "someone"
	}
	require.NoError(t, clientcmd.WriteToFile(*config, borrowed))
	_, err = hub.Dynamic(t).Resource(namespaces).Create(t.Context(), object("v1", "Namespace", "", "klusterlet-taken", nil), metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = hub.Dynamic(t).Resource(namespaces).Delete(context.Background(), "klusterlet-taken", metav1.DeleteOptions{})
	})
	for name, tc := range map[string]struct {
		words []string
		code  int
		want  string
	}{
		"no file":       {hostedJoin("nowhere"), 2, "--managed-cluster-kubeconfig nowhere cannot be read"},
		"not one":       {hostedJoin(broken), 2, "it is not a kubeconfig"},
		"impersonation": {hostedJoin(borrowed), 2, "impersonation (as, as-uid, as-groups) is refused"},
		"not given": {
			[]string{"join", "edge", "--context", "hub", "--hub-context", "hub", "--mode", "hosted"},
			2, "--mode hosted needs --managed-cluster-kubeconfig",
		},
		"no mode":      {[]string{"join", "edge", "--context", "hub", "--hub-context", "hub", "--managed-cluster-kubeconfig", broken}, 2, "needs --mode hosted"},
		"wrong mode":   {hostedJoin(broken, "--mode", "other"), 2, "use default, hosted, singleton, singletonhosted"},
		"out of reach": {hostedJoin(pointed(t, edge, "https://127.0.0.1:1")), 1, "cannot be reached"},
		"itself":       {hostedJoin(hub.Kubeconfig), 6, "is the hosting cluster, context hub"},
		"the hub":      {hostedJoin(hub.Kubeconfig, "--context", "edge"), 6, "is the hub"},
		"namespace":    {hostedJoin(edge.Kubeconfig, "--klusterlet", "klusterlet-taken"), 6, "namespace klusterlet-taken exists on context hub"},
		"reserved":     {hostedJoin(edge.Kubeconfig, "--klusterlet", "kube-system"), 2, `"kube-system" cannot be the name of the klusterlet of a hosted agent`},
		"narrow":       {hostedJoin(edge.Kubeconfig, "--agent-rights", "narrow"), 2, "leave these out"},
	} {
		got := run(t, tc.words...)
		require.Equal(t, tc.code, got.code, name)
		require.Contains(t, got.err, tc.want, name)
	}
	require.NoError(t, hub.Dynamic(t).Resource(namespaces).Delete(context.Background(), "klusterlet-taken", metav1.DeleteOptions{}))
}
