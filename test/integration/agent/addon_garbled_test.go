// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"crypto/x509"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

func TestAddonCertificateThatCameExpiredIsAskedForAgain(t *testing.T) {
	t.Parallel()
	h := newAddonHub(t)
	s, _ := joined(t, h, "addon-stale")
	h.enable(t, "addon-stale", "web", addonv1alpha1.RegistrationConfig{SignerName: customSigner})
	first := h.awaitAddonRequest(t, "addon-stale", "web", customSigner)
	h.issue(t, first, func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(-time.Minute)
	})
	s.awaitSecret(t, addonSpace, "web-signers.example.com-agent-client-cert")
	h.issue(t, h.awaitAddonRequest(t, "addon-stale", "web", customSigner, first.GetName()))
	h.awaitAddon(t, "addon-stale", "web", rotated, metav1.ConditionTrue, "ClientCertificateUpdated", "")
}

// relabel gives a secret a role other than the agent's.
func (s *spoke) relabel(t *testing.T, namespace, name, role string) {
	t.Helper()
	_, err := s.client.Resource(secrets).Namespace(namespace).Patch(t.Context(), name, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, addonv1alpha1.LabelCredentialRole, role), metav1.PatchOptions{})
	require.NoError(t, err)
}

func TestSecretInTheWayOfAnIssuedCertificateIsTold(t *testing.T) {
	t.Parallel()
	h := newAddonHub(t)
	s, _ := joined(t, h, "addon-way")
	h.enable(t, "addon-way", "web", kubeClient())
	request := h.awaitAddonRequest(t, "addon-way", "web", addonv1alpha1.KubeAPIServerSigner)
	apply(t, s.client, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{
			"namespace": addonSpace,
			"name":      "web-hub-kubeconfig",
		},
		"data": map[string]any{"password": "c2VjcmV0"}}})
	h.approve(t, request.GetName())
	h.awaitAddon(t, "addon-way", "web", rotated, metav1.ConditionFalse, "ClientCertificateUpdateFailed", "web-hub-kubeconfig is not this agent's")
	require.Equal(t, map[string][]byte{"password": []byte("secret")}, s.secretIn(t.Context(), addonSpace, "web-hub-kubeconfig"))
	require.NoError(t, s.client.Resource(secrets).Namespace(addonSpace).Delete(t.Context(), "web-hub-kubeconfig", metav1.DeleteOptions{}))
	h.awaitAddon(t, "addon-way", "web", rotated, metav1.ConditionTrue, "ClientCertificateUpdated", "")
	require.Len(t, h.addonRequests(t, "addon-way", "web"), 1)
}

func TestAddonSecretsWithGarbledLabelsAreMadeAnew(t *testing.T) {
	t.Parallel()
	h := newAddonHub(t)
	s, _ := joined(t, h, "addon-labels")
	h.enable(t, "addon-labels", "web", kubeClient())
	first := h.awaitAddonRequest(t, "addon-labels", "web", addonv1alpha1.KubeAPIServerSigner).GetName()
	s.relabel(t, operatorv1.NamespaceAgent, s.pending(t, "web")[0].GetName(), addonv1alpha1.CredentialIssued)
	second := h.grant(t, "addon-labels", "web", first)
	s.awaitSecret(t, addonSpace, "web-hub-kubeconfig")
	h.awaitAddon(t, "addon-labels", "web", rotated, metav1.ConditionTrue, "ClientCertificateUpdated", "")

	s.relabel(t, addonSpace, "web-hub-kubeconfig", addonv1alpha1.CredentialPending)
	h.grant(t, "addon-labels", "web", first, second)
	h.awaitAddon(t, "addon-labels", "web", rotated, metav1.ConditionTrue, "ClientCertificateUpdated", "")
	require.Len(t, h.addonRequests(t, "addon-labels", "web"), 3)
}

func TestRefusedRegistrationDoesNotPileUpTheOthers(t *testing.T) {
	t.Parallel()
	h := newAddonHub(t)
	s, _ := joined(t, h, "addon-piles")
	h.enable(t, "addon-piles", "web", addonv1alpha1.RegistrationConfig{SignerName: "kubernetes.io/kubelet-serving"}, kubeClient())
	var known []string
	for _, namespace := range []string{"here", "there", "elsewhere"} {
		h.setAddon(t, "addon-piles", "web", func(a *addonv1alpha1.ManagedClusterAddOn) { a.Status.Namespace = namespace })
		known = append(known, h.awaitAddonRequest(t, "addon-piles", "web", addonv1alpha1.KubeAPIServerSigner, known...).GetName())
		await(t, func() bool { return len(s.pending(t, "web")) == 1 })
	}
}
