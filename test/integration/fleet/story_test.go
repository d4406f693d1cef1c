// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	library "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

var (
	configMaps   = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	pods         = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	clusterRoles = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
)

// TestAFleetFromNothingAndBack runs the commands of the guide with the real hub
// process and a real agent.
func TestAFleetFromNothingAndBack(t *testing.T) {
	t.Parallel()
	agent := harness.Program(t, "controllers/ocm-agent")
	hub := harness.FreshWithNode(t, "hub", map[string]string{"ocm-hub": harness.Program(t, "controllers/ocm-hub"), "ocm-agent": agent})
	spoke := harness.FreshWithNode(t, "spoke", map[string]string{"ocm-agent": agent})
	kubeconfig(t, hub, spoke)
	before := inventory(t, hub)
	spokeBefore := inventory(t, spoke)

	ready := run(t, "hub", "init", "--context", "hub", "--timeout", "5m")
	require.Zero(t, ready.code)
	require.Contains(t, ready.out, "hub/ocm-hub ready on context hub")
	require.Contains(t, run(t, "hub", "init", "--context", "hub", "--timeout", "5m").out, "unchanged")
	status := run(t, "hub", "status", "--context", "hub")
	require.Zero(t, status.code)
	require.Contains(t, status.out, "1/1")

	start := time.Now()
	joined := run(t, "join", "cluster1", "--context", "spoke", "--hub-context", "hub", "--accept", "--labels", "env=prod", "--timeout", "5m")
	require.Zero(t, joined.code)
	require.Contains(t, joined.out, "cluster1 joined hub hub")
	t.Logf("join to Available: %s", time.Since(start))
	require.Contains(t, run(t, "join", "cluster1", "--context", "spoke", "--hub-context", "hub", "--accept", "--timeout", "5m").out, "unchanged")
	edited(t, spoke)
	gate := hub.Gate(t)
	elsewhere := gate.Server
	repointed := run(t, "join", "cluster1", "--context", "spoke", "--hub-context", "hub", "--hub-apiserver", elsewhere, "--timeout", "5m")
	require.Zero(t, repointed.code)
	require.Contains(t, repointed.err, "it uses "+elsewhere+" with the certificate that it has")
	require.Contains(t, run(t, "accept", "cluster1", "--context", "hub").out, "unchanged")
	require.Contains(t, run(t, "cluster", "list", "--context", "hub", "-l", "env=prod").out, "Available")
	recovers(t, hub, spoke, elsewhere)
	moves(t, hub, spoke)
	sets(t)
	whole := well(t, "--context", "hub")
	require.Contains(t, whole.out, "1 of 1 available")
	require.Contains(t, whole.out, "12 kinds are served")
	require.Empty(t, whole.err, "what webhooks say of the probes is not shown")
	both := well(t, "spoke", "--context", "spoke", "--hub-context", "hub")
	for _, line := range []string{
		"klusterlet-agent 1/1 ready",
		"klusterlet/klusterlet of cluster cluster1 is well",
		"certificate of system:open-cluster-management:cluster1:",
		"the hub answers at " + elsewhere,
		"cluster cluster1\n  ✓ available",
	} {
		require.Contains(t, both.out, line)
	}
	require.Equal(t, 6, run(t, "hub", "clean", "--context", "hub", "--yes").code, "a cluster is attached")
	listed := run(t, "cluster", "list", "--context", "hub", "-o", "json")
	require.Contains(t, listed.out, `"agentVersion": "v`, "the agent reports its version with its first renewal")
	faults(t, hub, spoke, gate)

	applied := runWith(t, configMap, "work", "apply", "web", "-f", "-", "-c", "cluster1", "--context", "hub", "--wait", "--timeout", "5m")
	require.Zero(t, applied.code)
	_, err := spoke.Dynamic(t).Resource(configMaps).Namespace("default").Get(t.Context(), "greeting", metav1.GetOptions{})
	require.NoError(t, err)
	require.Regexp(t, `cluster1 +web +True +True +1/1 +Ready`, run(t, "work", "list", "--context", "hub").out)
	refused := run(t, "unjoin", "cluster1", "--context", "spoke", "--yes")
	require.Equal(t, 6, refused.code, "its works would stay")
	require.Contains(t, refused.out, "web")

	gone := run(t, "unjoin", "cluster1", "--context", "spoke", "--hub-context", "hub", "--yes", "--timeout", "5m", "-o", "json")
	require.Zero(t, gone.code)
	require.True(t, json.Valid([]byte(gone.out)))
	asBefore(t, spoke, spokeBefore)

	require.Zero(t, run(t, "hub", "clean", "--context", "hub", "--yes", "--timeout", "5m").code)
	asBefore(t, hub, before, "namespaces/cluster1")
	require.Contains(t, run(t, "hub", "clean", "--context", "hub", "--yes").out, "unchanged")
	readme(t, hub, spoke)
}

// edited does to a managed cluster what an upgrade by other tools does, and undoes it:
// the cluster keeps its name throughout. It also edits where the pod of the agent may run, which the
// repeated join puts into effect.
func edited(t *testing.T, spoke *harness.Cluster) {
	client := spoke.Dynamic(t)
	_, err := client.Resource(klusterlets).Patch(
		t.Context(), "klusterlet", types.MergePatchType,
		[]byte(`{"spec":{"clusterName":"cluster2","nodePlacement":{"tolerations":[{"key":"infra","operator":"Exists"}]}}}`),
		metav1.PatchOptions{FieldManager: "stranger"},
	)
	require.NoError(t, err)
	former := object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "open-cluster-management:klusterlet-work:agent", nil)
	former.SetLabels(map[string]string{"open-cluster-management.io/created-by-klusterlet": "klusterlet"})
	others := former.DeepCopy()
	others.SetName("open-cluster-management:klusterlet-work:execution")
	tunnel := former.DeepCopy()
	tunnel.SetName("kubectl-ocm:klusterlet-registration:proxy")
	for u, manager := range map[*unstructured.Unstructured]string{former: "kubectl-ocm", tunnel: "kubectl-ocm", others: "stranger"} {
		_, err := client.Resource(clusterRoles).Create(t.Context(), u, metav1.CreateOptions{FieldManager: manager})
		require.NoError(t, err)
	}
	ofAccounts := client.Resource(library.Roles).Namespace("open-cluster-management-agent-addon")
	accounts := object("rbac.authorization.k8s.io/v1", "Role", "open-cluster-management-agent-addon", tunnel.GetName(), nil)
	accounts.SetLabels(tunnel.GetLabels())
	_, err = ofAccounts.Create(t.Context(), accounts, metav1.CreateOptions{FieldManager: "kubectl-ocm"})
	require.NoError(t, err)

	refused := run(t, "unjoin", "cluster2", "--context", "spoke", "--hub-context", "hub", "--yes")
	require.Equal(t, 6, refused.code)
	require.Contains(t, refused.err, `is joined as "cluster1", not as "cluster2"`)
	require.Contains(t, refused.err, "kubectl ocm unjoin cluster1")
	eventually(t, func() bool {
		said := run(t, "check", "spoke", "--context", "spoke", "--hub-context", "hub").out
		return strings.Contains(said, "the agent is joined as cluster1 and keeps that name") && strings.Contains(said, "nodePlacement (the Deployment of the agent")
	}, patience, time.Second)
	require.Equal(t, 6, run(t, "join", "cluster2", "--context", "spoke", "--hub-context", "hub").code)

	back := run(t, "join", "cluster1", "--context", "spoke", "--hub-context", "hub", "--accept", "--rejoin", "--timeout", "5m")
	require.Zero(t, back.code)
	u, err := client.Resource(klusterlets).Get(t.Context(), "klusterlet", metav1.GetOptions{})
	require.NoError(t, err)
	name, _, _ := unstructured.NestedString(u.Object, "spec", "clusterName")
	require.Equal(t, "cluster1", name)
	u, err = client.Resource(deployments).Namespace("open-cluster-management-agent").Get(t.Context(), "klusterlet-agent", metav1.GetOptions{})
	require.NoError(t, err)
	tolerations, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "tolerations")
	require.Equal(t, []any{map[string]any{"key": "infra", "operator": "Exists"}}, tolerations)
	for _, old := range []*unstructured.Unstructured{former, tunnel} {
		_, err = client.Resource(clusterRoles).Get(t.Context(), old.GetName(), metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "a role of an earlier release, or of a gate that is off, is left: %v", err)
	}
	_, err = ofAccounts.Get(t.Context(), accounts.GetName(), metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "a role in the namespace of add-ons is left: %v", err)
	_, err = client.Resource(clusterRoles).Get(t.Context(), others.GetName(), metav1.GetOptions{})
	require.NoError(t, err, "what others made is theirs")
	require.NoError(t, client.Resource(clusterRoles).Delete(t.Context(), others.GetName(), metav1.DeleteOptions{}))
}

// moves moves the agent to another release as the guide says, without a missed lease, and does not move
// it back.
func moves(t *testing.T, hub, spoke *harness.Cluster) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/guides/upgrade.md")
	require.NoError(t, err)
	var lines [][]string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "kubectl ocm join ") {
			lines = append(lines, append(strings.Fields(line)[2:], "--version", "v0.2.0", "--timeout", "5m"))
		}
	}
	require.Len(t, lines, 2)
	agents := spoke.Dynamic(t).Resource(deployments).Namespace("open-cluster-management-agent")
	image := func() string {
		u, err := agents.Get(t.Context(), "klusterlet-agent", metav1.GetOptions{})
		require.NoError(t, err)
		d, err := typed.FromUnstructured[appsv1.Deployment](u)
		require.NoError(t, err)
		return d.Spec.Template.Spec.Containers[0].Image
	}
	before := image()
	identity, declared := uids(t, spoke, secrets), uids(t, spoke, klusterlets)
	require.Zero(t, run(t, lines[0]...).code)
	require.Equal(t, before, image(), "a dry run changes nothing")
	leases := watchRenewals(t, hub, "cluster1")
	require.Contains(t, run(t, lines[1]...).out, "to v0.2.0 (configured)")
	leases.noneMissed(t, true)
	require.Equal(t, strings.Split(before, ":v")[0]+":v0.2.0", image())
	require.Contains(t, run(t, lines[1]...).out, "from v0.2.0 to v0.2.0 (unchanged)")
	require.Equal(t, identity, uids(t, spoke, secrets))
	require.Equal(t, declared, uids(t, spoke, klusterlets))
	for cause, words := range map[string]string{
		"it has v0.2.0, and v0.1.9 is older": "join --upgrade --context spoke --version v0.1.9",
		"is joined as cluster1, not as c2":   "join c2 --upgrade --context spoke --version v0.2.0",
		"has no agent to upgrade":            "join --upgrade --context hub --version v0.2.0",
	} {
		refused := run(t, strings.Fields(words)...)
		require.Equal(t, 6, refused.code)
		require.Contains(t, refused.err, cause)
	}
	require.Equal(t, 2, run(t, "join", "--upgrade", "--accept", "--context", "spoke").code)
}

// recovers removes the agent's certificate while its lease is fresh; each of the two ways
// of the guide restores it immediately, although there are requests with lost keys.
func recovers(t *testing.T, hub, spoke *harness.Cluster, server string) {
	t.Helper()
	agentSecrets := spoke.Dynamic(t).Resource(secrets).Namespace("open-cluster-management-agent")
	for _, words := range []string{
		"accept cluster1 --context hub --wait --timeout 5m",
		"join cluster1 --context spoke --hub-context hub --accept --timeout 5m --hub-apiserver " + server,
	} {
		require.NoError(t, agentSecrets.Delete(t.Context(), "hub-kubeconfig-secret", metav1.DeleteOptions{}))
		eventually(
			t,
			func() bool { return strings.Contains(run(t, "accept", "--show", "--context", "hub").out, "pending") },
			patience, time.Second, "the agent does not ask",
		)
		eventually(t, func() bool {
			unwell := run(t, "check", "--context", "hub").out
			return strings.Contains(unwell, "its agent asks for a new certificate and waits for an answer") &&
				strings.Contains(unwell, "kubectl ocm accept cluster1 --context hub")
		}, patience, time.Second, "check does not tell that the agent asks")
		require.Zero(t, run(t, strings.Fields(words)...).code, words)
		// As long as it has the key, it restores a lost certificate on its own.
		eventually(t, func() bool {
			_, err := agentSecrets.Get(t.Context(), "hub-kubeconfig-secret", metav1.GetOptions{})
			_, asking := agentSecrets.Get(t.Context(), "hub-kubeconfig-pending", metav1.GetOptions{})
			return err == nil && apierrors.IsNotFound(asking)
		}, patience, time.Second, "it has no certificate after %s", words)
	}
}

// sets puts the cluster into a set, binds a namespace to it, and undoes both.
func sets(t *testing.T) {
	t.Helper()
	for _, step := range []struct {
		words string
		code  int
		want  string
	}{
		{"create prod", 0, "prod created"},
		{"create prod", 0, "prod unchanged"},
		{"create eu --selector env=prod,tier!=test", 0, "eu created"},
		{"add prod -c cluster1", 0, "managedcluster/cluster1 put into prod"},
		{"add prod -c cluster1", 0, "unchanged"},
		{"create other", 0, "other created"},
		{"add other -c cluster1", 6, ""},
		{"bind prod -n default", 0, "prod created in default"},
		{"bind prod -n nosuch", 1, ""},
		{"delete prod --yes", 6, ""},
		{"drop prod --all --yes", 0, "managedcluster/cluster1 taken out of prod"},
		{"delete prod --yes", 6, ""},
		{"add other -c cluster1 --move --yes", 0, "put into other"},
		{"unbind prod -n default", 0, "prod deleted in default"},
		{"delete prod --yes", 0, "prod deleted"},
	} {
		got := run(t, strings.Fields("clusterset "+step.words+" --context hub")...)
		require.Equal(t, step.code, got.code, step.words)
		require.Contains(t, got.out, step.want, step.words)
	}
	listed := run(t, "clusterset", "list", "--context", "hub").out
	require.Regexp(t, `eu +env=prod,tier notin \(test\) +1 +1 +-`, listed)
	require.Regexp(t, `other +clusterset=other +1 +1 +-`, listed)
	require.Regexp(t, `global +<all> +1 +1 +-`, listed)
}

// well runs check until it finds nothing wrong, and returns what it says then. What an agent has
// done before may still show: it reports the access to its hub only once it has tried it.
func well(t *testing.T, words ...string) said {
	t.Helper()
	var got said
	ended := harness.Until(patience, func() bool {
		got = run(t, append([]string{"check"}, words...)...)
		return got.code == 0
	})
	require.True(t, ended, "check %s finds: %s%s", strings.Join(words, " "), got.out, got.err)
	return got
}

// asBefore checks that a cluster has the objects that it had before an installation, except for
// some that may stay. The commands wait until everything of theirs is gone; what the test itself has
// deleted goes in the background.
func asBefore(t *testing.T, c *harness.Cluster, before map[string]bool, except ...string) {
	t.Helper()
	for name := range inventory(t, c) {
		ours := strings.Contains(name, "open-cluster-management") || strings.Contains(name, "klusterlet")
		require.True(t, before[name] || slices.Contains(except, name) || !ours, "%s is left", name)
	}
	becomes(t, c, before, except...)
}

// becomes waits until a cluster has these objects, and perhaps the exceptions.
func becomes(t *testing.T, c *harness.Cluster, want map[string]bool, except ...string) {
	t.Helper()
	var have map[string]bool
	harness.Until(patience, func() bool {
		have = inventory(t, c)
		for _, name := range except {
			delete(have, name)
		}
		return maps.Equal(want, have)
	})
	require.Equal(t, want, have)
}

// inventory names the objects of an installation.
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
