// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// answer returns the hub's answer to a certificate request: "", Approved or Denied.
func answer(t *testing.T, client dynamic.Interface, name string) string {
	t.Helper()
	csr, err := client.Resource(requests).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	conditions, _, _ := unstructured.NestedSlice(csr.Object, "status", "conditions")
	if len(conditions) == 0 {
		return ""
	}
	return conditions[0].(map[string]any)["type"].(string)
}

func isAccepted(t *testing.T, client dynamic.Interface, name string) bool {
	t.Helper()
	mc, err := client.Resource(clusters).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	accepted, _, _ := unstructured.NestedBool(mc.Object, "spec", "hubAcceptsClient")
	return accepted
}

func TestAcceptApprovesExactlyWhatItTrusts(t *testing.T) {
	hub := harness.Shared(t, "hub")
	kubeconfig(t, hub)
	client := asHub(t, hub)
	require.Contains(t, run(t, "hub", "status", "--context", hub.Name).out, "14 of 15 webhooks do not answer", "this hub has no process")
	found := run(t, "check", "--context", hub.Name)
	for _, hook := range []string{"managedclustermutators", "managedclustervalidators", "managedclustersetvalidators", "managedclustersetbindingvalidators",
		"placementvalidators", "manifestworkvalidators", "manifestworkreplicasetvalidators"} {
		require.Contains(t, found.out, hook+".admission.", "it has no admission")
	}
	token := bearer(hub, newToken(t, "--context", "hub").Token)

	t.Run("a cluster that asked with a join token is let in, once", func(t *testing.T) {
		registers(t, client, "good", false)
		csr := ask(t, token, "good", "agent")
		dry := run(t, "accept", "good", "--context", "hub", "--dry-run")
		require.Zero(t, dry.code)
		require.Empty(t, answer(t, client, csr))
		require.False(t, isAccepted(t, client, "good"))
		require.Zero(t, run(t, "accept", "--clusters", "good", "--context", "hub").code)
		require.Equal(t, "Approved", answer(t, client, csr))
		require.True(t, isAccepted(t, client, "good"))
		again := run(t, "accept", "good", "--context", "hub")
		require.Zero(t, again.code)
		require.Contains(t, again.out, "managedcluster/good unchanged")
	})
	t.Run("a cluster that did not ask", func(t *testing.T) {
		got := run(t, "accept", "nobody", "--context", "hub")
		require.Equal(t, 1, got.code)
		require.Contains(t, got.err, "has not asked to join")
	})
	t.Run("a ManagedCluster alone is no request", func(t *testing.T) {
		registers(t, client, "silent", false)
		got := run(t, "accept", "silent", "--context", "hub")
		require.Equal(t, 1, got.code)
		require.Contains(t, got.err, "no certificate request")
		require.False(t, isAccepted(t, client, "silent"))
	})
	t.Run("an untrusted sender is refused, and trusted when named", func(t *testing.T) {
		registers(t, client, "odd", false)
		csr := ask(t, hub.Config, "odd", "agent")
		got := run(t, "accept", "odd", "--context", "hub")
		require.Equal(t, 6, got.code)
		require.Contains(t, got.err, "not a bootstrap identity")
		require.Empty(t, answer(t, client, csr))
		require.False(t, isAccepted(t, client, "odd"))
		show := run(t, "accept", "--show", "--context", "hub", "-o", "wide")
		require.Contains(t, show.out, "untrusted")
	})
	t.Run("more groups than an agent has", func(t *testing.T) {
		registers(t, client, "greedy", false)
		csr := ask(t, token, "greedy", "agent", "system:open-cluster-management:greedy", "system:open-cluster-management:managed-clusters", "other")
		require.Equal(t, 6, run(t, "accept", "greedy", "--context", "hub").code)
		require.Empty(t, answer(t, client, csr))
	})
	t.Run("two agents under one name are ambiguous until one is chosen", func(t *testing.T) {
		registers(t, client, "twins", false)
		first, second := ask(t, token, "twins", "a"), ask(t, token, "twins", "b")
		got := run(t, "accept", "twins", "--context", "hub")
		require.Equal(t, 6, got.code)
		require.Contains(t, got.err, "--requester")
		require.Empty(t, answer(t, client, first)+answer(t, client, second))
		require.False(t, isAccepted(t, client, "twins"))
		require.Zero(t, run(t, "accept", "twins", "--context", "hub", "--requester", "system:open-cluster-management:twins:b").code)
		require.Empty(t, answer(t, client, first))
		require.Equal(t, "Approved", answer(t, client, second))
	})
	t.Run("a token that is for another cluster", func(t *testing.T) {
		bound := bearer(hub, newToken(t, "--context", "hub", "--cluster", "mine").Token)
		registers(t, client, "yours", false)
		csr := ask(t, bound, "yours", "agent")
		got := run(t, "accept", "yours", "--context", "hub")
		require.Equal(t, 6, got.code)
		require.Contains(t, got.err, "for cluster mine only")
		require.Empty(t, answer(t, client, csr))
	})
	t.Run("another agent of a cluster that is alive", func(t *testing.T) {
		reports(t, client, registers(t, client, "alive", true), "True")
		csr := ask(t, token, "alive", "thief")
		require.Equal(t, 6, run(t, "accept", "alive", "--context", "hub").code)
		require.Empty(t, answer(t, client, csr))
	})
	t.Run("a cluster that is denied", func(t *testing.T) {
		registers(t, client, "denied", false)
		csr := ask(t, token, "denied", "agent")
		require.Zero(t, run(t, "accept", "denied", "--deny", "--context", "hub").code)
		require.Equal(t, "Denied", answer(t, client, csr))
	})
	t.Run("nothing waits of a cluster that is denied before it was accepted", func(t *testing.T) {
		for name, senders := range map[string][]string{"refused": {"agent", "other"}, "quiet": nil} {
			registers(t, client, name, false)
			require.Equal(t, "OCM0301", looked(t, "cluster", name, "--context", "hub")["OCM0301"].Code)
			var asked []string
			for _, agent := range senders {
				asked = append(asked, ask(t, token, name, agent))
			}
			got := run(t, "cluster", "deny", name, "--context", "hub", "--yes")
			require.Zero(t, got.code)
			require.Contains(t, got.out, fmt.Sprintf("managedcluster/%s denied: it was not accepted; %d certificate request", name, len(asked)))
			for _, csr := range asked {
				require.Equal(t, "Denied", answer(t, client, csr))
			}
			require.False(t, isAccepted(t, client, name))
			found := looked(t, "cluster", name, "--context", "hub")
			require.NotContains(t, found, "OCM0301")
			require.Contains(t, found, "OCM0306")
			require.Regexp(t, name+` +Denied`, run(t, "cluster", "list", "--context", "hub").out)
			require.Contains(t, run(t, "cluster", "deny", name, "--context", "hub", "--yes").out, "managedcluster/"+name+" unchanged")
		}
		require.NotContains(t, run(t, "accept", "--all-pending", "--context", "hub", "--dry-run").out, "refused")
		// It may ask again, and be accepted.
		ask(t, token, "quiet", "agent")
		require.Zero(t, run(t, "accept", "quiet", "--context", "hub").code)
		require.True(t, isAccepted(t, client, "quiet"))
	})
	t.Run("one of two fails", func(t *testing.T) {
		got := run(t, "accept", "good", "nobody", "--context", "hub")
		require.Equal(t, 5, got.code)
		require.Contains(t, got.out, "nobody")
		require.Contains(t, got.out, "good")
	})
	t.Run("a reserved name", func(t *testing.T) {
		require.Equal(t, 2, run(t, "accept", "kube-system", "--context", "hub").code)
	})
	t.Run("what was asked with a revoked token is denied", func(t *testing.T) {
		made := newToken(t, "--context", "hub")
		csr := ask(t, bearer(hub, made.Token), "late", "agent")
		require.Zero(t, run(t, "hub", "token", "revoke", made.ID, "--context", "hub", "--yes").code)
		require.Equal(t, "Denied", answer(t, client, csr))
	})
}
