// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// certified returns a bootstrap kubeconfig with a client certificate of the hub's own
// authority that expires after this time.
func (h *hub) certified(t *testing.T, user string, ends time.Duration) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der := h.authority(t, pkix.Name{CommonName: user}, key.Public(), time.Now().Add(-time.Hour), time.Now().Add(ends))
	raw, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	text := func(kind string, der []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return fmt.Appendf(nil, `{"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "hub", "user": "u"}}],
"clusters": [{"name": "hub", "cluster": {"server": %q, "certificate-authority-data": %q}}],
"users": [{"name": "u", "user": {"client-certificate-data": %q, "client-key-data": %q}}]}`,
		h.Config.Host, base64.StdEncoding.EncodeToString(h.Config.CAData), text("CERTIFICATE", der), text("EC PRIVATE KEY", raw))
}

func TestExpiredBootstrapCertificateIsToldAndTheNextOneJoins(t *testing.T) {
	t.Parallel()
	h, s := newHub(t), newSpoke(t)
	h.bind(t, "bootstrap-by-certificate", clusterv1.RoleBootstrap, "", rbacv1.Subject{Kind: "User", Name: "certified"})
	s.install(t, config.Options{ClusterName: "bootcert", BootstrapKubeconfig: h.certified(t, "certified", -time.Minute)})
	a := s.start(t)
	s.awaitKlusterlet(t, "HubConnectionDegraded", "BootstrapSecretUnauthorized,HubKubeConfigSecretMissing", "does not know the credential")
	require.Nil(t, h.cluster(t.Context(), "bootcert"))
	require.Empty(t, h.requestsOf(t, "bootcert"))

	s.setBootstrap(t, h.certified(t, "certified", time.Hour))
	request := h.awaitRequest(t, "bootcert")
	h.accept(t, "bootcert")

	// The first certificate has expired when it arrives: the agent requests the next one.
	h.sign(t, request.GetName(), time.Millisecond)
	await(t, func() bool { return len(s.secret(t.Context(), "hub-kubeconfig-secret")["tls.crt"]) > 0 })
	s.awaitKlusterlet(t, "HubConnectionDegraded", "BootstrapSecretFunctional,HubKubeConfigError", "the certificate expired at")
	second := h.awaitRequest(t, "bootcert", request.GetName())
	h.approve(t, second.GetName())
	h.awaitCondition(t, "bootcert", clusterv1.ConditionAvailable, metav1.ConditionTrue)
	require.Len(t, h.requestsOf(t, "bootcert"), 2)
	require.True(t, a.running())
}

func TestRestartUnderAnotherClusterNameJoinsAnew(t *testing.T) {
	t.Parallel()
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "unused", BootstrapKubeconfig: h.bootstrap(t)})
	definitions, err := crd.Agent()
	require.NoError(t, err)
	for _, u := range definitions {
		apply(t, s.client, u)
	}
	a := s.start(t, "agent", "--spoke-cluster-name=name-one")
	h.join(t, "name-one")
	agentName := string(s.secret(t.Context(), "hub-kubeconfig-secret")["agent-name"])
	a.kill()
	s.start(t, "agent", "--spoke-cluster-name=name-two")
	h.join(t, "name-two")
	checkKept(t, h, s, "name-two", agentName)
	require.Len(t, h.requestsOf(t, "name-one"), 1)
	require.NotNil(t, h.cluster(t.Context(), "name-one"), "the old name is the administrator's to remove")
}

// TestSecretsThatChangeWhileTheAgentRuns takes one agent through all that can happen to
// its secrets. None of it ends the process.
func TestSecretsThatChangeWhileTheAgentRuns(t *testing.T) {
	t.Parallel()
	h, s := newHub(t), newSpoke(t)
	const name = "secrets"
	s.install(t, config.Options{ClusterName: "unused", BootstrapKubeconfig: h.bootstrap(t)})
	definitions, err := crd.Agent()
	require.NoError(t, err)
	for _, u := range definitions {
		apply(t, s.client, u)
	}
	a := s.start(t, "agent", "--spoke-cluster-name="+name)
	h.join(t, name)
	agentName := string(s.secret(t.Context(), "hub-kubeconfig-secret")["agent-name"])
	pid := a.cmd.Process.Pid
	alive := func(requests int, why string) {
		t.Helper()
		h.condition(t, name, clusterv1.ConditionAvailable, metav1.ConditionUnknown, clusterv1.ReasonManagedClusterLeaseUpdateStopped)
		h.awaitCondition(t, name, clusterv1.ConditionAvailable, metav1.ConditionTrue)
		require.Len(t, h.requestsOf(t, name), requests, why)
		require.Equal(t, pid, a.cmd.Process.Pid)
		require.True(t, a.running())
	}
	patch := func(secret string, body map[string]any) {
		t.Helper()
		raw, err := json.Marshal(body)
		require.NoError(t, err)
		_, err = s.client.Resource(secrets).Namespace(operatorv1.NamespaceAgent).Patch(t.Context(), secret, types.MergePatchType, raw, metav1.PatchOptions{})
		require.NoError(t, err)
	}
	const bootstrap, kept = "bootstrap-hub-kubeconfig", "hub-kubeconfig-secret"
	patch(bootstrap, map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}})
	s.bootstrapAs(t, "another", []byte("current-context: x"))
	alive(1, "a label, or another secret, is nothing to the agent")
	s.setBootstrap(t, h.bootstrap(t))
	alive(1, "another token for the same hub changes nothing for an agent that has access")
	require.NoError(t, s.client.Resource(secrets).Namespace(operatorv1.NamespaceAgent).Delete(t.Context(), bootstrap, metav1.DeleteOptions{}))
	alive(1, "it needs no bootstrap secret while it has access")
	s.setBootstrap(t, h.bootstrap(t))
	alive(1, "nor when there is one again")

	// The bundle of the old and the new authority is adopted without a new certificate.
	bundle := h.endpoint("hub")
	bundle.CAData = append(append([]byte{}, h.Config.CAData...), newProxy(t, true).certificate()...)
	s.setBootstrap(t, h.bootstrapBy(t, bundle))
	await(t, func() bool {
		c, err := kubeconfig.ParseSecret(s.secret(t.Context(), kept))
		return err == nil && c.Difference(bundle) == ""
	})
	alive(1, "the hub knows the certificate")

	// Its own credentials are deleted, and garbled: it requests new ones under the same
	// names.
	for i, harm := range map[int]func(){
		0: func() {
			require.NoError(t, s.client.Resource(secrets).Namespace(operatorv1.NamespaceAgent).Delete(t.Context(), kept, metav1.DeleteOptions{}))
		},
		1: func() { patch(kept, map[string]any{"data": map[string]any{"tls.crt": "eA==", "agent-name": "IyMj"}}) },
		2: func() {
			patch(kept, map[string]any{"data": map[string]any{"kubeconfig": "e3s=", "cluster-name": "IyMj"}})
		},
	} {
		before := h.known(t, name)
		harm()
		next := h.awaitRequest(t, name, before...)
		checkRequest(t, next, name, agentName)
		h.approve(t, next.GetName())
		await(t, func() bool {
			c, err := kubeconfig.ParseSecret(s.secret(t.Context(), kept))
			return err == nil && len(c.CertData) > 1
		}, "harm %d", i)
		checkNames(t, s, name, agentName)
		alive(len(before)+1, "one request each time")
	}
}
