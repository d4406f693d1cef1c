// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground"
)

// bootstrapAt returns a bootstrap kubeconfig for the hub with another address.
func (h *hub) bootstrapAt(t *testing.T, server string) []byte {
	t.Helper()
	endpoint := &kubeconfig.Config{ClusterEntry: "hub", Server: server, CAData: h.Config.CAData}
	raw, err := endpoint.WithToken(h.As(t, "open-cluster-management", clusterv1.BootstrapServiceAccount).BearerToken)
	require.NoError(t, err)
	return raw
}

// degraded waits for HubConnectionDegraded with this reason and a matching message, and
// returns how long that took, and the condition.
func (s *spoke) degraded(t *testing.T, reason, message string) (time.Duration, *metav1.Condition) {
	t.Helper()
	var last *metav1.Condition
	begin, like := time.Now(), regexp.MustCompile(message)
	await(t, func() bool {
		last = apimeta.FindStatusCondition(s.klusterlet(t).Status.Conditions, "HubConnectionDegraded")
		return last != nil && last.Reason == reason && like.MatchString(last.Message)
	}, "HubConnectionDegraded is not %s with %q but %+v", reason, message, func() any { return last })
	return time.Since(begin), last
}

const (
	away    = "BootstrapSecretError,HubKubeConfigError"
	refused = "BootstrapSecretFunctional,HubKubeConfigUnauthorized"
	fine    = "HubConnectionFunctional"
)

func TestCutNetworkIsToldAndItsEndToo(t *testing.T) {
	t.Parallel()
	h, s := newHub(t), newSpoke(t)
	gate := h.Gate(t)
	s.install(t, config.Options{ClusterName: "cut", BootstrapKubeconfig: h.bootstrapAt(t, gate.Server)})
	a := s.start(t)
	h.join(t, "cut")
	s.degraded(t, fine, "")

	gate.Cut()
	took, c := s.degraded(t, away,
		`^The hub has not answered since \d{4}-.*Z: (watching the ManagedCluster|renewing the lease): .+ `+
			`The bootstrap kubeconfig does not work: it goes to the same hub`)
	t.Logf("cut to told: %s: %s", took.Round(time.Millisecond), c.Message)
	require.Equal(t, metav1.ConditionTrue, c.Status)

	gate.Heal()
	took, c = s.degraded(t, fine, "")
	t.Logf("healed to told: %s", took.Round(time.Millisecond))
	require.Equal(t, metav1.ConditionFalse, c.Status)
	require.True(t, a.running())
}

func TestHubThatIsDownIsTold(t *testing.T) {
	t.Parallel()
	h, s := prepareHub(t, harness.ControlPlane(t, "down-hub")), newSpoke(t)
	s.install(t, config.Options{ClusterName: "down", BootstrapKubeconfig: h.bootstrap(t)})
	s.start(t)
	h.join(t, "down")
	s.degraded(t, fine, "")

	require.NoError(t, h.Playground.Kill(playground.APIServer))
	took, c := s.degraded(t, away, "connection refused")
	t.Logf("killed to told: %s: %s", took.Round(time.Millisecond), c.Message)
	require.NoError(t, h.Playground.Restart(t.Context(), playground.APIServer))
	took, _ = s.degraded(t, fine, "")
	t.Logf("back to told: %s", took.Round(time.Millisecond))
}

func TestHubThatRefusesTheAgentIsTold(t *testing.T) {
	t.Parallel()
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "refused", BootstrapKubeconfig: h.bootstrap(t)})
	a := s.start(t)
	h.join(t, "refused")
	s.degraded(t, fine, "")

	// Its right to the lease is removed, and granted again.
	h.change(t, "refused", func(c *clusterv1.ManagedCluster) { c.Spec.LeaseDurationSeconds = 1 })
	bindings := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}
	name := clusterv1.RolePrefixManagedCluster + "refused" + clusterv1.RoleBindingSuffixRegistration
	require.NoError(t, h.client.Resource(bindings).Namespace("refused").Delete(t.Context(), name, metav1.DeleteOptions{}))
	s.degraded(t, refused, "^The hub has refused the agent since .*: renewing the lease: .* is forbidden")
	h.accept(t, "refused")
	s.degraded(t, fine, "")

	// The acceptance is withdrawn, and granted again.
	h.condition(t, "refused", clusterv1.ConditionHubAccepted, metav1.ConditionFalse, clusterv1.ReasonHubClusterAdminDenied)
	s.degraded(t, refused, "the hub does not accept the cluster any more")
	h.accept(t, "refused")
	s.degraded(t, fine, "")

	// The cluster is removed from the hub, and created again.
	require.NoError(t, h.client.Resource(clusters).Delete(t.Context(), "refused", metav1.DeleteOptions{}))
	s.degraded(t, refused, "the hub has no ManagedCluster of this name any more")
	create := &clusterv1.ManagedCluster{TypeMeta: metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "ManagedCluster"}}
	create.Name = "refused"
	apply(t, h.client, object(t, create))
	h.accept(t, "refused")
	s.degraded(t, fine, "")
	require.True(t, a.running())
}

func TestHubThatDoesNotKnowTheCertificateIsTold(t *testing.T) {
	t.Parallel()
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "unknown", BootstrapKubeconfig: h.bootstrap(t)})
	a := s.start(t)
	h.join(t, "unknown")
	s.degraded(t, fine, "")

	// The certificate for the same name is from an authority that the hub does not trust
	// (any more).
	kept := s.secret(t.Context(), "hub-kubeconfig-secret")
	block, _ := pem.Decode(kept["tls.crt"])
	cert, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	cert.SignatureAlgorithm, cert.PublicKey = x509.ECDSAWithSHA256, nil
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	require.NoError(t, err)
	raw, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	harm := func() {
		s.setCertificate(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw}))
		s.degraded(t, refused, "the hub does not know the credential")
	}
	harm()
	s.setCertificate(t, kept["tls.crt"], kept["tls.key"])
	s.degraded(t, fine, "")
	require.Len(t, h.requestsOf(t, "unknown"), 1, "nothing is asked for after a moment")

	// It stays so: the agent asks for another certificate with its bootstrap kubeconfig.
	before := h.known(t, "unknown")
	harm()
	next := h.awaitRequest(t, "unknown", before...)
	checkRequest(t, next, "unknown", string(kept["agent-name"]))
	s.awaitKlusterlet(t, "HubConnectionDegraded", "BootstrapSecretFunctional,HubKubeConfigError", "the hub does not know the certificate any more")
	h.approve(t, next.GetName())
	s.degraded(t, fine, "")
	checkNames(t, s, "unknown", string(kept["agent-name"]))
	h.condition(t, "unknown", clusterv1.ConditionAvailable, metav1.ConditionUnknown, clusterv1.ReasonManagedClusterLeaseUpdateStopped)
	h.awaitCondition(t, "unknown", clusterv1.ConditionAvailable, metav1.ConditionTrue)
	require.Len(t, h.requestsOf(t, "unknown"), 2)
	require.True(t, a.running())
}

// setCertificate replaces the stored certificate and key.
func (s *spoke) setCertificate(t *testing.T, cert, key []byte) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"data": map[string][]byte{"tls.crt": cert, "tls.key": key}})
	require.NoError(t, err)
	_, err = s.client.Resource(secrets).Namespace(operatorv1.NamespaceAgent).Patch(
		t.Context(), "hub-kubeconfig-secret", types.MergePatchType, body, metav1.PatchOptions{},
	)
	require.NoError(t, err)
}
