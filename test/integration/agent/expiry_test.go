// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// authority signs a certificate with this lifetime for a public key, with the hub's own
// authority.
func (h *hub) authority(t *testing.T, subject pkix.Name, key any, begin, end time.Time) []byte {
	t.Helper()
	dir := filepath.Join(h.Playground.Dir, "pki")
	authority, err := tls.LoadX509KeyPair(filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key"))
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: subject, NotBefore: begin, NotAfter: end,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, authority.Leaf, key, authority.PrivateKey)
	require.NoError(t, err)
	return der
}

// sign issues the certificate of a request with this lifetime, with the hub's own
// authority. kube-controller-manager signs only approved requests, and for minutes at
// least.
func (h *hub) sign(t *testing.T, name string, life time.Duration) {
	t.Helper()
	live, err := h.client.Resource(requests).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	csr, now := parsed(t, live), time.Now()
	h.certify(t, name, h.authority(t, csr.Subject, csr.PublicKey, now.Add(-time.Second), now.Add(life)))
}

// TestCertificateThatExpiredWhileTheHubWasAwayIsReplacedInProcess gives the agent a
// certificate with a lifetime of a few seconds once the hub is already away, so that the
// time to join does not matter.
func TestCertificateThatExpiredWhileTheHubWasAwayIsReplacedInProcess(t *testing.T) {
	t.Parallel()
	const life = 5 * time.Second
	h, s := newHub(t), newSpoke(t)
	gate := h.Gate(t)
	s.install(t, config.Options{ClusterName: "expired", BootstrapKubeconfig: h.bootstrapAt(t, gate.Server)})
	a := s.start(t)
	pid, uid := a.cmd.Process.Pid, string(s.klusterlet(t).UID)
	h.join(t, "expired")
	first := h.requestsOf(t, "expired")[0].GetName()
	s.degraded(t, fine, "")

	gate.Cut()
	kept := s.secret(t.Context(), "hub-kubeconfig-secret")
	before, end := certificate(t, kept["tls.crt"]), time.Now().Add(life)
	der := h.authority(t, before.Subject, before.PublicKey, before.NotBefore, end)
	s.setCertificate(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), kept["tls.key"])
	s.awaitKlusterlet(t, "HubConnectionDegraded", away, "The kept access cannot be used: the certificate expired at ")
	t.Logf("expiry to told: %s", time.Since(end).Round(time.Millisecond))
	require.Len(t, h.requestsOf(t, "expired"), 1, "nothing got through")

	gate.Heal()
	healed := time.Now()
	second := h.awaitRequest(t, "expired", first)
	user, _, _ := unstructured.NestedString(second.Object, "spec", "username")
	require.Equal(t, "system:serviceaccount:open-cluster-management:"+clusterv1.BootstrapServiceAccount, user, "an expired certificate asks for nothing")
	checkRequest(t, second, "expired", uid)
	h.condition(t, "expired", clusterv1.ConditionAvailable, metav1.ConditionUnknown, clusterv1.ReasonManagedClusterLeaseUpdateStopped)
	h.approve(t, second.GetName())
	h.awaitCondition(t, "expired", clusterv1.ConditionAvailable, metav1.ConditionTrue)
	t.Logf("healed to available: %s", time.Since(healed).Round(time.Millisecond))
	checkNames(t, s, "expired", uid)
	s.awaitKlusterlet(t, "HubConnectionDegraded", fine, "")
	require.True(t, a.running())
	require.Equal(t, pid, a.cmd.Process.Pid)
}

// checkNames compares the stored identity of the agent.
func checkNames(t *testing.T, s *spoke, cluster, agent string) {
	t.Helper()
	kept := s.secret(t.Context(), "hub-kubeconfig-secret")
	require.Equal(t, cluster, string(kept["cluster-name"]))
	require.Equal(t, agent, string(kept["agent-name"]))
}
