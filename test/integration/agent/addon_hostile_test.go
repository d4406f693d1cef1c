// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

func TestBrokenAddonHarmsOnlyItself(t *testing.T) {
	t.Parallel()
	const cluster = "addon-hostile"
	h := newAddonHub(t)
	s, a := joined(t, h, cluster)
	apply(t, s.client, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{
			"namespace": addonSpace,
			"name":      "taken-hub-kubeconfig",
		},
		"data": map[string]any{"password": "c2VjcmV0"}}})
	own := map[string]map[string][]byte{}
	for _, name := range []string{"hub-kubeconfig-secret", "bootstrap-hub-kubeconfig"} {
		own[name] = s.secret(t.Context(), name)
	}

	client := func(s addonv1alpha1.Subject) []addonv1alpha1.RegistrationConfig {
		return []addonv1alpha1.RegistrationConfig{{SignerName: addonv1alpha1.KubeAPIServerSigner, Subject: s}}
	}
	signed := func(signers ...string) (out []addonv1alpha1.RegistrationConfig) {
		for _, name := range signers {
			out = append(out, addonv1alpha1.RegistrationConfig{SignerName: name})
		}
		return out
	}
	broken := map[string]struct {
		registrations []addonv1alpha1.RegistrationConfig
		namespace     string
		want          string
	}{
		"masters": {client(addonv1alpha1.Subject{Groups: []string{"system:masters"}}), "", `"system:masters"`},
		"neighbour": {
			client(addonv1alpha1.Subject{Groups: []string{"system:open-cluster-management:other"}}),
			"",
			"system:open-cluster-management:other",
		},
		"neighbours": {
			client(addonv1alpha1.Subject{Groups: []string{"open-cluster-management:other"}}),
			"",
			"are those of agents",
		},
		"agent": {
			client(addonv1alpha1.Subject{User: "system:open-cluster-management:" + cluster + ":x"}),
			"",
			"must start with",
		},
		"long":    {client(addonv1alpha1.Subject{User: strings.Repeat("x", 300)}), "", "300 bytes"},
		"kubelet": {signed("kubernetes.io/kube-apiserver-client-kubelet"), "", "not for add-ons"},
		"ends":    {signed("example.com/x."), "", "would not be valid"},
		"twice": {
			signed(addonv1alpha1.KubeAPIServerSigner, addonv1alpha1.KubeAPIServerSigner),
			"",
			"two registrations are kept in secret",
		},
		"bootstrap":             {signed(addonv1alpha1.KubeAPIServerSigner), operatorv1.NamespaceAgent, "the agent's own"},
		"taken":                 {signed(addonv1alpha1.KubeAPIServerSigner), "", "will not be replaced"},
		"nowhere":               {signed(addonv1alpha1.KubeAPIServerSigner), "Not A Namespace", "must be a DNS label"},
		strings.Repeat("n", 70): {signed(addonv1alpha1.KubeAPIServerSigner), "", "at most 63 characters"},
	}
	for name, b := range broken {
		h.enable(t, cluster, name)
		h.setAddon(t, cluster, name, func(a *addonv1alpha1.ManagedClusterAddOn) {
			a.Status.Registrations, a.Status.Namespace = b.registrations, b.namespace
		})
	}
	h.enable(t, cluster, "good", kubeClient())
	h.grant(t, cluster, "good")
	s.awaitSecret(t, addonSpace, "good-hub-kubeconfig")
	for name, b := range broken {
		h.awaitAddon(t, cluster, name, rotated, metav1.ConditionFalse, "ClientCertificateUpdateFailed", b.want)
		if name != "twice" {
			require.Empty(t, h.requestsFor(t, cluster, name), name)
		}
	}
	require.Equal(t, map[string][]byte{"password": []byte("secret")}, s.secretIn(t.Context(), addonSpace, "taken-hub-kubeconfig"))
	for name, before := range own {
		require.Equal(t, before, s.secret(t.Context(), name), name)
	}
	require.True(t, a.running())

	// An add-on keeps its credentials while a new registration is refused.
	h.subject(t, cluster, "good", addonv1alpha1.Subject{Groups: []string{"system:masters"}})
	h.awaitAddon(t, cluster, "good", rotated, metav1.ConditionFalse, "ClientCertificateUpdateFailed", "system:masters")
	require.NotNil(t, s.secretIn(t.Context(), addonSpace, "good-hub-kubeconfig"))
	// A registration that is corrected is served.
	h.subject(t, cluster, "masters", addonv1alpha1.Subject{})
	h.grant(t, cluster, "masters")
	s.awaitSecret(t, addonSpace, "masters-hub-kubeconfig")
}

// requestsFor returns the requests whose names are those of an add-on.
func (h *hub) requestsFor(t *testing.T, cluster, addOn string) (out []string) {
	t.Helper()
	for _, u := range h.requestsOf(t, cluster) {
		if strings.HasPrefix(u.GetName(), "addon-"+cluster+"-"+addOn+"-") {
			out = append(out, u.GetName())
		}
	}
	return out
}

func TestSecretOfOneAddonIsNotThatOfAnother(t *testing.T) {
	t.Parallel()
	h := newAddonHub(t)
	s, _ := joined(t, h, "addon-contest")
	// Both names and signers result in x-s1-s2.com-a-client-cert.
	h.enable(t, "addon-contest", "x-s1", addonv1alpha1.RegistrationConfig{SignerName: "s2.com/a"})
	first := h.awaitAddonRequest(t, "addon-contest", "x-s1", "s2.com/a")
	h.issue(t, first)
	before := s.awaitSecret(t, addonSpace, "x-s1-s2.com-a-client-cert")
	h.enable(t, "addon-contest", "x", addonv1alpha1.RegistrationConfig{SignerName: "s1-s2.com/a"})
	h.awaitAddon(t, "addon-contest", "x", rotated, metav1.ConditionFalse, "ClientCertificateUpdateFailed", "belongs to add-on x-s1")
	require.Equal(t, before, s.secretIn(t.Context(), addonSpace, "x-s1-s2.com-a-client-cert"))
	h.disable(t, "addon-contest", "x-s1")
	h.issue(t, h.awaitAddonRequest(t, "addon-contest", "x", "s1-s2.com/a"))
	h.awaitAddon(t, "addon-contest", "x", rotated, metav1.ConditionTrue, "ClientCertificateUpdated", "")
}

func TestSignerThatChangesTheSubjectIsNotAskedWithoutEnd(t *testing.T) {
	t.Parallel()
	h := newAddonHub(t)
	_, _ = joined(t, h, "addon-signer")
	h.enable(t, "addon-signer", "web", addonv1alpha1.RegistrationConfig{SignerName: customSigner})
	h.issue(t, h.awaitAddonRequest(t, "addon-signer", "web", customSigner), func(c *x509.Certificate) { c.Subject.CommonName = "somebody else" })
	h.awaitAddon(t, "addon-signer", "web", rotated, metav1.ConditionFalse, "ClientCertificateUpdateFailed", "for another subject; attempt 2 follows at")
	require.Len(t, h.addonRequests(t, "addon-signer", "web"), 1)
}

func TestAddonRequestSurvivesARestartWhileTheHubIsAway(t *testing.T) {
	t.Parallel()
	h, s := newAddonHub(t), newSpoke(t)
	gate := h.Gate(t)
	s.install(t, config.Options{ClusterName: "addon-restart", BootstrapKubeconfig: h.bootstrapAt(t, gate.Server)})
	a := s.start(t)
	h.join(t, "addon-restart")
	h.enable(t, "addon-restart", "web", kubeClient())
	request := h.awaitAddonRequest(t, "addon-restart", "web", addonv1alpha1.KubeAPIServerSigner)
	pending := s.pending(t, "web")
	require.Len(t, pending, 1)
	require.Equal(t, operatorv1.NamespaceAgent, pending[0].GetNamespace())
	key := data(t, &pending[0], "data", "tls.key")

	gate.Cut()
	a.kill()
	s.start(t)
	s.awaitKlusterlet(t, "HubConnectionDegraded", away, "")
	gate.Heal()
	h.approve(t, request.GetName())
	kept := s.awaitSecret(t, addonSpace, "web-hub-kubeconfig")
	require.Equal(t, key, kept["tls.key"])
	require.Len(t, h.addonRequests(t, "addon-restart", "web"), 1)
	h.awaitAddon(t, "addon-restart", "web", rotated, metav1.ConditionTrue, "ClientCertificateUpdated", "")
}

func TestAddonFollowsItsAgentToAnotherHub(t *testing.T) {
	t.Parallel()
	h := newAddonHub(t)
	second := prepareHub(t, harness.ControlPlane(t, "second-hub"))
	second.learnAddons(t)
	s, _ := joined(t, h, "addon-moved")
	h.enable(t, "addon-moved", "web", kubeClient())
	h.grant(t, "addon-moved", "web")
	s.awaitSecret(t, addonSpace, "web-hub-kubeconfig")

	s.setBootstrap(t, second.bootstrap(t))
	second.join(t, "addon-moved")
	s.awaitNoSecret(t, addonSpace, "web-hub-kubeconfig")
	second.enable(t, "addon-moved", "web", kubeClient())
	// The agent may still send the request recorded for the first hub to the second one,
	// and it may be removed before it is answered: the agent then sends another one.
	granted := map[string]bool{}
	await(t, func() bool {
		for _, u := range second.addonRequests(t, "addon-moved", "web") {
			if !granted[u.GetName()] {
				second.approve(t, u.GetName())
				granted[u.GetName()] = true
			}
		}
		return s.secretIn(t.Context(), addonSpace, "web-hub-kubeconfig") != nil
	}, "the second hub's credential does not come")
	c, err := kubeconfig.ParseSecret(s.awaitSecret(t, addonSpace, "web-hub-kubeconfig"))
	require.NoError(t, err)
	require.Equal(t, second.Config.Host, c.Server)
}

func TestWithoutItsGateTheAgentLeavesAddonsAlone(t *testing.T) {
	t.Parallel()
	h := newAddonHub(t)
	_, _ = joined(t, h, "addon-gate", func(o *config.Options) {
		o.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{
			FeatureGates: []operatorv1.FeatureGate{{Feature: "AddonManagement", Mode: operatorv1.FeatureGateModeTypeDisable}}}
	})
	h.enable(t, "addon-gate", "web", kubeClient())
	never(t, 2*time.Second, func() bool {
		a := h.addon(t, "addon-gate", "web")
		return a.Status.KubeClientDriver != "" || len(a.Status.Conditions) > 0
	}, "an add-on was served though the gate is off")
	require.Empty(t, h.addonRequests(t, "addon-gate", "web"))
}
