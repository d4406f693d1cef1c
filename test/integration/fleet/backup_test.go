// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground"
)

// TestAHubIsLostAndRestored loses the store of a hub with works, a replica set and an add-on, and
// restores the hub from a backup, first with the same authority. Nothing on the clusters is
// written.
func TestAHubIsLostAndRestored(t *testing.T) {
	agent := harness.Program(t, "controllers/ocm-agent")
	hub := harness.WithNode(t, "hub", map[string]string{"ocm-hub": harness.Program(t, "controllers/ocm-hub")})
	spokes := []*harness.Cluster{
		harness.WithNode(t, "cluster1", map[string]string{"ocm-agent": agent}), harness.WithNode(t, "cluster2", map[string]string{"ocm-agent": agent}),
	}
	kubeconfig(t, hub, spokes[0], spokes[1])
	does := func(stdin, line string) said {
		t.Helper()
		got := runWith(t, stdin, append(strings.Fields(line), "--context", "hub")...)
		require.Zero(t, got.code, line)
		return got
	}
	does("", "hub init --timeout 90s")
	for _, c := range spokes {
		require.Zero(t, run(t, "join", c.Name, "--context", c.Name, "--hub-context", "hub", "--accept", "--timeout", "90s").code)
	}
	named := func(name string) string { return strings.ReplaceAll(configMap, "greeting", name) }
	does("", "clusterset create fleet")
	does("", "clusterset add fleet -c cluster1,cluster2")
	typeLine(t, "kubectl create namespace apps --context hub")
	does("", "clusterset bind fleet -n apps")
	does("", "placement create everywhere -n apps")
	does(named("greeting-of-one"), "work apply one -f - -c cluster1 --wait --timeout 60s")
	does(named("greeting-of-set"), "work apply set -f - --placement apps/everywhere --wait --timeout 60s")
	does(named("greeting-of-addon"), "addon create hello -f -")
	does("", "addon enable hello --placement apps/everywhere --wait --timeout 60s")
	before := versions(t, spokes)
	require.Len(t, before, 5)

	file := filepath.Join(t.TempDir(), "hub.jsonl")
	does("", "hub backup "+file)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077)
	lose(t, hub)
	refused := run(t, "hub", "restore", file, "--context", "hub")
	require.Equal(t, 6, refused.code)
	does("", "hub init --timeout 90s")
	planned := does("", "hub restore --dry-run "+file)
	require.Contains(t, planned.out, "ManagedCluster")
	does("", "hub restore --timeout 120s "+file)
	does("", "hub restore --timeout 60s "+file)
	does("", "work wait one -c cluster1 --timeout 60s")
	does("", "addon status hello")
	require.Equal(t, before, versions(t, spokes))
}

// versions returns UID and resourceVersion of everything that works and add-ons have applied.
func versions(t *testing.T, spokes []*harness.Cluster) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, c := range spokes {
		list, err := c.Dynamic(t).Resource(configMaps).Namespace("default").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, item := range list.Items {
			if strings.HasPrefix(item.GetName(), "greeting") {
				out[c.Name+"/"+item.GetName()] = string(item.GetUID()) + " " + item.GetResourceVersion()
			}
		}
	}
	return out
}

// lose starts a cluster again with an empty store.
func lose(t *testing.T, c *harness.Cluster) {
	t.Helper()
	all := []playground.Component{playground.ProcessNode, playground.ControllerManager, playground.APIServer, playground.Etcd}
	for _, component := range all {
		require.NoError(t, c.Playground.Kill(component))
	}
	require.NoError(t, os.RemoveAll(filepath.Join(c.Playground.Dir, "etcd")))
	for i := len(all) - 1; i >= 0; i-- {
		require.NoError(t, c.Playground.Restart(t.Context(), all[i]))
	}
}
