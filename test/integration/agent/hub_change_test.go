// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

func TestWrongTokenIsReportedAndTheRightOneJoins(t *testing.T) {
	h, s := newHub(t), newSpoke(t)
	wrong, err := h.endpoint("hub").WithToken("no-such-token")
	require.NoError(t, err)
	s.install(t, config.Options{ClusterName: "token", BootstrapKubeconfig: wrong})
	a := s.start(t)
	s.awaitKlusterlet(t, "HubConnectionDegraded", "BootstrapSecretUnauthorized,HubKubeConfigSecretMissing", "does not know the credential")
	require.Nil(t, h.cluster(t.Context(), "token"))
	s.setBootstrap(t, h.bootstrap(t))
	h.join(t, "token")
	require.True(t, a.running())
}

func TestUnusableBootstrapSecretIsReported(t *testing.T) {
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "broken"})
	s.start(t)
	s.awaitKlusterlet(t, "HubConnectionDegraded", "BootstrapSecretMissing,HubKubeConfigSecretMissing", "bootstrap-hub-kubeconfig")
	s.setBootstrap(t, []byte("current-context: x"))
	s.awaitKlusterlet(t, "HubConnectionDegraded", "BootstrapSecretError,HubKubeConfigSecretMissing", "current-context")
	away, err := (&kubeconfig.Config{ClusterEntry: "hub", Server: "https://127.0.0.1:1", CAData: h.Config.CAData}).WithToken("t")
	require.NoError(t, err)
	s.setBootstrap(t, away)
	s.awaitKlusterlet(t, "HubConnectionDegraded", "BootstrapSecretError,HubKubeConfigSecretMissing", "connection refused")
	other := harness.Shared(t, "other-hub")
	mismatch := h.endpoint("hub")
	mismatch.CAData = other.Config.CAData
	raw, err := mismatch.WithToken("t")
	require.NoError(t, err)
	s.setBootstrap(t, raw)
	s.awaitKlusterlet(t, "HubConnectionDegraded", "BootstrapSecretError,HubKubeConfigSecretMissing", "certificate signed by unknown authority")
	s.setBootstrap(t, h.bootstrap(t))
	h.join(t, "broken")
}

func TestServerThatIsNoHubIsReported(t *testing.T) {
	s := newSpoke(t)
	none := harness.Shared(t, "other-hub")
	cfg := none.As(t, "default", "somebody")
	raw, err := (&kubeconfig.Config{ClusterEntry: "hub", Server: cfg.Host, CAData: cfg.CAData}).WithToken(cfg.BearerToken)
	require.NoError(t, err)
	s.install(t, config.Options{ClusterName: "nohub", BootstrapKubeconfig: raw})
	s.start(t)
	s.awaitKlusterlet(t, "HubConnectionDegraded", "BootstrapSecretUnauthorized,HubKubeConfigSecretMissing", "joining the hub as nohub")
}

func TestMovedHubIsJoinedInProcess(t *testing.T) {
	h, s := newHub(t), newSpoke(t)
	second := prepareHub(t, harness.ControlPlane(t, "second-hub"))
	s.install(t, config.Options{ClusterName: "moved", BootstrapKubeconfig: h.bootstrap(t)})
	a := s.start(t)
	h.join(t, "moved")

	s.setBootstrap(t, second.bootstrap(t))
	second.join(t, "moved")
	kept, err := kubeconfig.ParseSecret(s.secret(t.Context(), "hub-kubeconfig-secret"))
	require.NoError(t, err)
	require.Equal(t, second.Config.Host, kept.Server)
	require.True(t, a.running())
	s.awaitKlusterlet(t, "HubConnectionDegraded", "HubConnectionFunctional", "")
}

func TestHubAtAnotherAddressKnowsTheCertificate(t *testing.T) {
	h, s := newAddonHub(t), newSpoke(t)
	elsewhere := h.Gate(t)
	s.install(t, config.Options{ClusterName: "address", BootstrapKubeconfig: h.bootstrap(t)})
	s.start(t)
	h.join(t, "address")
	before := s.secret(t.Context(), "hub-kubeconfig-secret")
	h.enable(t, "address", "web", kubeClient())
	h.grant(t, "address", "web")
	given := s.awaitSecret(t, addonSpace, "web-hub-kubeconfig")

	// The token is not valid: the certificate is enough.
	raw, err := (&kubeconfig.Config{ClusterEntry: "hub", Server: elsewhere.Server, CAData: h.Config.CAData}).WithToken("worthless")
	require.NoError(t, err)
	s.setBootstrap(t, raw)
	await(t, func() bool {
		kept, err := kubeconfig.ParseSecret(s.secret(t.Context(), "hub-kubeconfig-secret"))
		return err == nil && kept.Server == elsewhere.Server
	})
	after := s.secret(t.Context(), "hub-kubeconfig-secret")
	require.Equal(t, string(before["tls.crt"]), string(after["tls.crt"]))
	h.condition(t, "address", clusterv1.ConditionAvailable, metav1.ConditionUnknown, clusterv1.ReasonManagedClusterLeaseUpdateStopped)
	h.awaitCondition(t, "address", clusterv1.ConditionAvailable, metav1.ConditionTrue)
	// An add-on does not need another credential either: it gets the new address.
	var moved map[string][]byte
	await(t, func() bool {
		moved = s.secretIn(t.Context(), addonSpace, "web-hub-kubeconfig")
		c, err := kubeconfig.ParseSecret(moved)
		return err == nil && c.Server == elsewhere.Server
	})
	require.Equal(t, string(given["tls.crt"]), string(moved["tls.crt"]))
	require.Equal(t, "system:open-cluster-management:cluster:address:addon:web:agent:web", whoami(t, moved))
	require.Len(t, h.requestsOf(t, "address"), 2, "no approval is needed")
}

func TestRebuiltHubIsToldByTheNameOfItsEntry(t *testing.T) {
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "rebuilt", BootstrapKubeconfig: h.bootstrap(t)})
	s.start(t)
	h.join(t, "rebuilt")
	first := h.requestsOf(t, "rebuilt")[0].GetName()

	cfg := h.As(t, "open-cluster-management", clusterv1.BootstrapServiceAccount)
	raw, err := h.endpoint("hub-v2").WithToken(cfg.BearerToken)
	require.NoError(t, err)
	s.setBootstrap(t, raw)
	second := h.awaitRequest(t, "rebuilt", first)
	h.approve(t, second.GetName())
	await(t, func() bool {
		kept, err := kubeconfig.ParseSecret(s.secret(t.Context(), "hub-kubeconfig-secret"))
		return err == nil && kept.ClusterEntry == "hub-v2"
	})
	h.condition(t, "rebuilt", clusterv1.ConditionAvailable, metav1.ConditionUnknown, clusterv1.ReasonManagedClusterLeaseUpdateStopped)
	h.awaitCondition(t, "rebuilt", clusterv1.ConditionAvailable, metav1.ConditionTrue)
}

func TestMissingBootstrapSecretDoesNotDisturbAJoinedAgent(t *testing.T) {
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "orphan", BootstrapKubeconfig: h.bootstrap(t)})
	a := s.start(t)
	h.join(t, "orphan")
	require.NoError(
		t,
		s.client.Resource(secrets).Namespace("open-cluster-management-agent").Delete(t.Context(), "bootstrap-hub-kubeconfig", metav1.DeleteOptions{}),
	)
	a.kill()
	h.condition(t, "orphan", clusterv1.ConditionAvailable, metav1.ConditionUnknown, clusterv1.ReasonManagedClusterLeaseUpdateStopped)
	s.start(t)
	h.awaitCondition(t, "orphan", clusterv1.ConditionAvailable, metav1.ConditionTrue)
	require.Len(t, h.requestsOf(t, "orphan"), 1)
}
