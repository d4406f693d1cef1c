// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

var configmaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// twoHubs returns the shared hub and another one.
func twoHubs(t *testing.T) (one, two *hub) {
	t.Helper()
	return newHub(t), prepareHub(t, harness.Shared(t, "hub-two"))
}

// chooses returns the spec of a Klusterlet that chooses between the secrets.
func chooses(names ...string) operatorv1.KlusterletSpec {
	list := &operatorv1.LocalSecretsConfig{HubConnectionTimeoutSeconds: 180}
	for _, name := range names {
		list.KubeConfigSecrets = append(list.KubeConfigSecrets, operatorv1.KubeConfigSecret{Name: name})
	}
	return operatorv1.KlusterletSpec{RegistrationConfiguration: &operatorv1.RegistrationConfiguration{
		FeatureGates:         []operatorv1.FeatureGate{{Feature: "MultipleHubs", Mode: operatorv1.FeatureGateModeTypeEnable}},
		BootstrapKubeConfigs: operatorv1.BootstrapKubeConfigs{Type: operatorv1.BootstrapKubeConfigTypeLocalSecrets, LocalSecretsConfig: list},
	}}
}

// bootstrapAs writes a bootstrap secret with this name.
func (s *spoke) bootstrapAs(t *testing.T, name string, raw []byte) {
	t.Helper()
	apply(t, s.client, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{"namespace": operatorv1.NamespaceAgent, "name": name},
		"data":     map[string]any{"kubeconfig": base64.StdEncoding.EncodeToString(raw)}}})
}

// unaccept does what a hub does when its administrator withdraws the acceptance.
func (h *hub) unaccept(t *testing.T, name string) {
	t.Helper()
	h.change(t, name, func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false })
	h.condition(t, name, clusterv1.ConditionHubAccepted, metav1.ConditionFalse, clusterv1.ReasonHubClusterAdminDenied)
}

// awaitServer waits until the stored credentials are for a hub.
func (s *spoke) awaitServer(t *testing.T, server string) {
	t.Helper()
	await(t, func() bool {
		kept, err := kubeconfig.ParseSecret(s.secret(t.Context(), "hub-kubeconfig-secret"))
		return err == nil && kept.Server == server
	}, "the access is not for %s", server)
}

// known returns the names of the existing requests of a cluster.
func (h *hub) known(t *testing.T, name string) []string {
	t.Helper()
	var out []string
	for _, u := range h.requestsOf(t, name) {
		out = append(out, u.GetName())
	}
	return out
}

func TestAgentLeavesAHubThatDoesNotAcceptItAndComesBack(t *testing.T) {
	t.Parallel()
	one, two := twoHubs(t)
	s := newSpoke(t)
	s.install(t, config.Options{ClusterName: "leaves", Spec: chooses("hub-1", "hub-2")})
	s.bootstrapAs(t, "hub-1", one.bootstrap(t))
	s.bootstrapAs(t, "hub-2", two.bootstrap(t))
	a := s.start(t)
	pid := a.cmd.Process.Pid
	one.join(t, "leaves")
	s.awaitKlusterlet(t, "SpecSupported", "AllFieldsSupported", "")
	s.awaitKlusterlet(t, "HubConnectionDegraded", fine, "")
	require.Nil(t, two.cluster(t.Context(), "leaves"), "the second hub is left in peace")
	one.deliver(t, "leaves", "stays")
	running := func() bool {
		_, err := s.client.Resource(configmaps).Namespace("default").Get(t.Context(), "stays-1", metav1.GetOptions{})
		return err == nil
	}
	await(t, running)

	one.unaccept(t, "leaves")
	two.join(t, "leaves")
	s.awaitServer(t, two.Config.Host)
	s.awaitKlusterlet(t, "HubConnectionDegraded", fine, "")
	require.True(t, running(), "what the first hub ordered is not taken away")

	// The agent goes back when the second hub does the same.
	before := one.known(t, "leaves")
	one.accept(t, "leaves")
	two.unaccept(t, "leaves")
	one.approve(t, one.awaitRequest(t, "leaves", before...).GetName())
	s.awaitServer(t, one.Config.Host)
	one.condition(t, "leaves", clusterv1.ConditionAvailable, metav1.ConditionUnknown, clusterv1.ReasonManagedClusterLeaseUpdateStopped)
	one.awaitCondition(t, "leaves", clusterv1.ConditionAvailable, metav1.ConditionTrue)
	require.True(t, running())
	require.True(t, a.running())
	require.Equal(t, pid, a.cmd.Process.Pid, "in the same process")
}

func TestAgentLeavesAHubThatIsAwayForTooLong(t *testing.T) {
	t.Parallel()
	one, two := twoHubs(t)
	s := newSpoke(t)
	gate := one.Gate(t)
	s.install(t, config.Options{ClusterName: "unused"})
	definitions, err := crd.Agent()
	require.NoError(t, err)
	for _, u := range definitions {
		apply(t, s.client, u)
	}
	s.bootstrapAs(t, "hub-1", one.bootstrapAt(t, gate.Server))
	s.bootstrapAs(t, "hub-2", two.bootstrap(t))
	a := s.start(t, "agent", "--spoke-cluster-name=failsover", "--feature-gates=MultipleHubs=true",
		"--bootstrap-kubeconfigs=hub-1", "--bootstrap-kubeconfigs=/spoke/hub-2/kubeconfig", "--hub-connection-timeout-seconds=15")
	request := one.awaitRequest(t, "failsover")
	one.accept(t, "failsover")
	one.change(t, "failsover", func(c *clusterv1.ManagedCluster) { c.Spec.LeaseDurationSeconds = 2 })
	one.approve(t, request.GetName())
	one.awaitCondition(t, "failsover", clusterv1.ConditionAvailable, metav1.ConditionTrue)
	never(t, 17*time.Second, func() bool { return two.cluster(t.Context(), "failsover") != nil }, "a hub was left that is there")

	cut := time.Now()
	gate.Cut()
	request = two.awaitRequest(t, "failsover")
	t.Logf("cut to asked elsewhere: %s", time.Since(cut).Round(time.Millisecond))
	require.GreaterOrEqual(t, time.Since(cut), 7*time.Second, "a short break is no reason")
	two.accept(t, "failsover")
	two.change(t, "failsover", func(c *clusterv1.ManagedCluster) { c.Spec.LeaseDurationSeconds = 2 })
	two.approve(t, request.GetName())
	two.awaitCondition(t, "failsover", clusterv1.ConditionAvailable, metav1.ConditionTrue)
	s.awaitServer(t, two.Config.Host)
	require.True(t, a.running())

	// A restarted agent stays on its hub, although the first one is preferred and
	// available again.
	gate.Heal()
	a.kill()
	two.condition(t, "failsover", clusterv1.ConditionAvailable, metav1.ConditionUnknown, clusterv1.ReasonManagedClusterLeaseUpdateStopped)
	s.start(t, "agent", "--spoke-cluster-name=failsover", "--feature-gates=MultipleHubs=true",
		"--bootstrap-kubeconfigs=hub-1", "--bootstrap-kubeconfigs=hub-2", "--hub-connection-timeout-seconds=15")
	two.awaitCondition(t, "failsover", clusterv1.ConditionAvailable, metav1.ConditionTrue)
	require.Len(t, one.requestsOf(t, "failsover"), 1)
	require.Len(t, two.requestsOf(t, "failsover"), 1)
}

func TestWithoutAUsableHubEachIsNamedAndAskedAgain(t *testing.T) {
	t.Parallel()
	one, two := twoHubs(t)
	s := newSpoke(t)
	wrong, err := one.endpoint("hub").WithToken("no-such-token")
	require.NoError(t, err)
	undecided := &clusterv1.ManagedCluster{TypeMeta: metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "ManagedCluster"}}
	undecided.Name = "nowhere"
	apply(t, two.client, object(t, undecided))
	s.install(t, config.Options{ClusterName: "nowhere", Spec: chooses("hub-1", "hub-2", "hub-3")})
	s.bootstrapAs(t, "hub-1", wrong)
	s.bootstrapAs(t, "hub-2", two.bootstrap(t))
	s.start(t)
	s.awaitKlusterlet(t, "HubConnectionDegraded", "BootstrapSecretError,HubKubeConfigSecretMissing",
		"no hub of the list is usable: hub-1: the bootstrap kubeconfig lacks: the hub does not know the credential; "+
			"hub-2: ManagedCluster nowhere exists but is not accepted: accept or delete it on that hub; hub-3: secret hub-3 with key kubeconfig is missing")
	require.Empty(t, one.requestsOf(t, "nowhere"))
	require.Empty(t, two.requestsOf(t, "nowhere"))

	// A change of a listed secret takes effect immediately.
	s.bootstrapAs(t, "hub-3", one.bootstrap(t))
	request := one.awaitRequest(t, "nowhere")
	one.accept(t, "nowhere")
	one.approve(t, request.GetName())
	one.awaitCondition(t, "nowhere", clusterv1.ConditionAvailable, metav1.ConditionTrue)

	// The current hub stays in use while no other one is usable.
	one.unaccept(t, "nowhere")
	s.awaitKlusterlet(
		t, "HubConnectionDegraded", refused,
		"secret hub-3 is still in use: its hub does not accept the cluster any more, and no other hub is usable: ",
	)
	one.accept(t, "nowhere")
	s.awaitKlusterlet(t, "HubConnectionDegraded", fine, "")
	one.unaccept(t, "nowhere")
	two.accept(t, "nowhere")
	two.join(t, "nowhere")
	s.awaitServer(t, two.Config.Host)
}

func TestListOfHubsThatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	s := newSpoke(t)
	s.install(t, config.Options{ClusterName: "short", Spec: chooses("hub-1")})
	s.start(t)
	s.awaitKlusterlet(t, "Applied", "KlusterletApplyFailed", "kubeConfigSecrets: name at least two secrets")
}
