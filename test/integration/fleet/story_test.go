// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

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
	hub := harness.WithNode(t, "hub", map[string]string{"ocm-hub": harness.Program(t, "controllers/ocm-hub"), "ocm-agent": agent})
	spoke := harness.WithNode(t, "spoke", map[string]string{"ocm-agent": agent})
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
	edited(t, spoke)
	gate := hub.Gate(t)
	elsewhere := gate.Server
	repointed := run(t, "join", "cluster1", "--context", "spoke", "--hub-context", "hub", "--hub-apiserver", elsewhere, "--timeout", "90s")
	require.Zero(t, repointed.code)
	require.Contains(t, repointed.err, "it uses "+elsewhere+" with the certificate that it has")
	require.Contains(t, run(t, "accept", "cluster1", "--context", "hub").out, "unchanged")
	require.Contains(t, run(t, "cluster", "list", "--context", "hub", "-l", "env=prod").out, "Available")
	recovers(t, hub, spoke, elsewhere)
	sets(t)
	whole := run(t, "check", "--context", "hub")
	require.Zero(t, whole.code)
	require.Contains(t, whole.out, "1 of 1 available")
	require.Contains(t, whole.out, "12 kinds are served")
	require.Empty(t, whole.err, "what webhooks say of the probes is not shown")
	both := run(t, "check", "spoke", "--context", "spoke", "--hub-context", "hub")
	require.Zero(t, both.code)
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
	readme(t, hub, spoke)
}

// edited does to a managed cluster what an upgrade by other tools does, and undoes it:
// the cluster keeps its name throughout.
func edited(t *testing.T, spoke *harness.Cluster) {
	client := spoke.Dynamic(t)
	_, err := client.Resource(klusterlets).Patch(
		t.Context(), "klusterlet", types.MergePatchType, []byte(`{"spec":{"clusterName":"cluster2"}}`),
		metav1.PatchOptions{FieldManager: "stranger"},
	)
	require.NoError(t, err)
	former := object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "open-cluster-management:klusterlet-work:agent", nil)
	former.SetLabels(map[string]string{"open-cluster-management.io/created-by-klusterlet": "klusterlet"})
	others := former.DeepCopy()
	others.SetName("open-cluster-management:klusterlet-work:execution")
	for u, manager := range map[*unstructured.Unstructured]string{former: "kubectl-ocm", others: "stranger"} {
		_, err := client.Resource(clusterRoles).Create(t.Context(), u, metav1.CreateOptions{FieldManager: manager})
		require.NoError(t, err)
	}

	refused := run(t, "unjoin", "cluster2", "--context", "spoke", "--hub-context", "hub", "--yes")
	require.Equal(t, 6, refused.code)
	require.Contains(t, refused.err, `is joined as "cluster1", not as "cluster2"`)
	require.Contains(t, refused.err, "kubectl ocm unjoin cluster1")
	require.Eventually(t, func() bool {
		return strings.Contains(run(t, "check", "spoke", "--context", "spoke", "--hub-context", "hub").out, "the agent is joined as cluster1 and keeps that name")
	}, time.Minute, time.Second)
	require.Equal(t, 6, run(t, "join", "cluster2", "--context", "spoke", "--hub-context", "hub").code)

	back := run(t, "join", "cluster1", "--context", "spoke", "--hub-context", "hub", "--accept", "--rejoin", "--timeout", "90s")
	require.Zero(t, back.code)
	u, err := client.Resource(klusterlets).Get(t.Context(), "klusterlet", metav1.GetOptions{})
	require.NoError(t, err)
	name, _, _ := unstructured.NestedString(u.Object, "spec", "clusterName")
	require.Equal(t, "cluster1", name)
	_, err = client.Resource(clusterRoles).Get(t.Context(), former.GetName(), metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "a role of an earlier release is left: %v", err)
	_, err = client.Resource(clusterRoles).Get(t.Context(), others.GetName(), metav1.GetOptions{})
	require.NoError(t, err, "what others made is theirs")
	require.NoError(t, client.Resource(clusterRoles).Delete(t.Context(), others.GetName(), metav1.DeleteOptions{}))
}

// recovers removes the agent's certificate while its lease is fresh; each of the two ways
// of the guide restores it immediately, although there are requests with lost keys.
func recovers(t *testing.T, hub, spoke *harness.Cluster, server string) {
	t.Helper()
	agentSecrets := spoke.Dynamic(t).Resource(secrets).Namespace("open-cluster-management-agent")
	for _, words := range []string{
		"accept cluster1 --context hub --wait --timeout 60s",
		"join cluster1 --context spoke --hub-context hub --accept --timeout 60s --hub-apiserver " + server,
	} {
		require.NoError(t, agentSecrets.Delete(t.Context(), "hub-kubeconfig-secret", metav1.DeleteOptions{}))
		require.Eventually(
			t,
			func() bool { return strings.Contains(run(t, "accept", "--show", "--context", "hub").out, "pending") },
			time.Minute, time.Second, "the agent does not ask",
		)
		unwell := run(t, "check", "--context", "hub")
		require.Contains(t, unwell.out, "its agent asks for a new certificate and waits for an answer")
		require.Contains(t, unwell.out, "kubectl ocm accept cluster1 --context hub")
		require.Zero(t, run(t, strings.Fields(words)...).code, words)
		// As long as it has the key, it restores a lost certificate on its own.
		require.Eventually(t, func() bool {
			_, err := agentSecrets.Get(t.Context(), "hub-kubeconfig-secret", metav1.GetOptions{})
			_, asking := agentSecrets.Get(t.Context(), "hub-kubeconfig-pending", metav1.GetOptions{})
			return err == nil && apierrors.IsNotFound(asking)
		}, time.Minute, time.Second, "it has no certificate after %s", words)
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
