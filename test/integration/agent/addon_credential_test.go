// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"bytes"
	"crypto/x509"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

const rotated = addonv1alpha1.ConditionClusterCertificateRotated

func TestAddonGetsItsCredentialsAndLosesThemWhenItIsGone(t *testing.T) {
	t.Parallel()
	h := newAddonHub(t)
	s, a := joined(t, h, "addon-life")
	h.enable(t, "addon-life", "web", kubeClient(), addonv1alpha1.RegistrationConfig{
		SignerName: customSigner, Subject: addonv1alpha1.Subject{User: "web", Groups: []string{"a", "b"}, OrganizationUnits: []string{"unit"}}})

	client := h.awaitAddonRequest(t, "addon-life", "web", addonv1alpha1.KubeAPIServerSigner)
	custom := h.awaitAddonRequest(t, "addon-life", "web", customSigner)
	checkAddonRequest(t, client)
	require.Equal(t, "system:open-cluster-management:cluster:addon-life:addon:web:agent:web", parsed(t, client).Subject.CommonName)
	require.Equal(t, []string{"system:open-cluster-management:cluster:addon-life:addon:web"}, parsed(t, client).Subject.Organization)
	require.Empty(t, parsed(t, client).Subject.OrganizationalUnit)
	checkAddonRequest(t, custom)
	require.Equal(t, "web", parsed(t, custom).Subject.CommonName)
	require.ElementsMatch(t, []string{"a", "b"}, parsed(t, custom).Subject.Organization)
	require.Equal(t, []string{"unit"}, parsed(t, custom).Subject.OrganizationalUnit)
	h.awaitAddon(t, "addon-life", "web", rotated, metav1.ConditionUnknown, "CredentialPending", "waits for approval")
	require.Equal(t, addonv1alpha1.DriverTypeCSR, h.addon(t, "addon-life", "web").Status.KubeClientDriver)

	h.approve(t, client.GetName())
	h.issue(t, custom)
	kept := s.awaitSecret(t, addonSpace, "web-hub-kubeconfig")
	require.ElementsMatch(t, []string{"kubeconfig", "tls.crt", "tls.key", "cluster-name"}, keys(kept))
	require.Equal(t, "addon-life", string(kept["cluster-name"]))
	require.Equal(t, "system:open-cluster-management:cluster:addon-life:addon:web:agent:web", whoami(t, kept))
	signed := s.awaitSecret(t, addonSpace, "web-signers.example.com-agent-client-cert")
	require.ElementsMatch(t, []string{"tls.crt", "tls.key", "cluster-name"}, keys(signed))
	h.awaitAddon(t, "addon-life", "web", rotated, metav1.ConditionTrue, "ClientCertificateUpdated", "web-hub-kubeconfig")
	await(t, func() bool { return len(s.pending(t, "web")) == 0 })
	require.Len(t, h.addonRequests(t, "addon-life", "web"), 2)

	// An add-on that is being deleted keeps its credentials until it is gone.
	finalize(t, h, "addon-life", "web", "example.com/cleanup")
	h.disable(t, "addon-life", "web")
	never(t, time.Second, func() bool { return s.secretIn(t.Context(), addonSpace, "web-hub-kubeconfig") == nil }, "the credential went before the add-on")
	finalize(t, h, "addon-life", "web")
	s.awaitNoSecret(t, addonSpace, "web-hub-kubeconfig")
	s.awaitNoSecret(t, addonSpace, "web-signers.example.com-agent-client-cert")

	// The same holds when the agent was down in the meantime.
	h.enable(t, "addon-life", "away", kubeClient())
	h.grant(t, "addon-life", "away")
	s.awaitSecret(t, addonSpace, "away-hub-kubeconfig")
	a.kill()
	h.disable(t, "addon-life", "away")
	s.start(t)
	s.awaitNoSecret(t, addonSpace, "away-hub-kubeconfig")
}

// checkAddonRequest compares a request with what an add-on's agent sends.
func checkAddonRequest(t *testing.T, u *unstructured.Unstructured) {
	t.Helper()
	require.Regexp(t, "^addon-addon-life-web-[a-z0-9]{5}$", u.GetName())
	require.Equal(t, map[string]string{"open-cluster-management.io/cluster-name": "addon-life", "open-cluster-management.io/addon-name": "web"}, u.GetLabels())
	usages, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "usages")
	require.Equal(t, []string{"digital signature", "key encipherment", "client auth"}, usages)
	csr := parsed(t, u)
	require.Equal(t, []string{"web.addon.open-cluster-management.io"}, csr.DNSNames)
	require.Equal(t, x509.ECDSA, csr.PublicKeyAlgorithm)
}

func keys(m map[string][]byte) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	return out
}

// whoami returns the user name of the holder of a secret, as the API server sees it.
func whoami(t *testing.T, data map[string][]byte) string {
	t.Helper()
	raw := bytes.Replace(data["kubeconfig"], []byte("tokenFile: token"), []byte("token: "+string(data["token"])), 1)
	with := map[string][]byte{"kubeconfig": raw, "tls.crt": data["tls.crt"], "tls.key": data["tls.key"]}
	c, err := kubeconfig.ParseSecret(with)
	require.NoError(t, err)
	client, err := dynamic.NewForConfig(&rest.Config{Host: c.Server, BearerToken: c.Token, TLSClientConfig: rest.TLSClientConfig{
		CAData: c.CAData, CertData: c.CertData, KeyData: c.KeyData}})
	require.NoError(t, err)
	reviews := schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "selfsubjectreviews"}
	u, err := client.Resource(reviews).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	name, _, _ := unstructured.NestedString(u.Object, "status", "userInfo", "username")
	return name
}

// finalize sets the finalizers of an add-on.
func finalize(t *testing.T, h *hub, cluster, name string, finalizers ...string) {
	t.Helper()
	await(t, func() bool {
		u, err := h.client.Resource(addons).Namespace(cluster).Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		u.SetFinalizers(finalizers)
		_, err = h.client.Resource(addons).Namespace(cluster).Update(t.Context(), u, metav1.UpdateOptions{})
		return settled(t, err)
	})
}

func TestAddonNamespaceMayComeLate(t *testing.T) {
	t.Parallel()
	h := newAddonHub(t)
	s, a := joined(t, h, "addon-late")
	// Namespace and registrations are written together: a namespace that changes later
	// would be another registration, with a request of its own.
	h.enable(t, "addon-late", "late")
	h.setAddon(t, "addon-late", "late", func(a *addonv1alpha1.ManagedClusterAddOn) {
		a.Status.Namespace, a.Status.Registrations = "late-space", []addonv1alpha1.RegistrationConfig{kubeClient()}
	})
	name := h.grant(t, "addon-late", "late")
	h.awaitAddon(t, "addon-late", "late", rotated, metav1.ConditionUnknown, "CredentialPending", "namespace late-space does not exist")
	await(t, func() bool {
		pending := s.pending(t, "late")
		if len(pending) != 1 {
			return false
		}
		kept, _, _ := unstructured.NestedString(pending[0].Object, "data", "tls.crt")
		return kept != ""
	}, "the issued certificate is not kept")

	// The request may be deleted, and the agent may restart: it does not send a second
	// one.
	require.NoError(t, h.client.Resource(requests).Delete(t.Context(), name, metav1.DeleteOptions{}))
	a.kill()
	s.start(t)
	s.namespace(t, "late-space")
	kept := s.awaitSecret(t, "late-space", "late-hub-kubeconfig")
	require.Equal(t, "system:open-cluster-management:cluster:addon-late:addon:late:agent:late", whoami(t, kept))
	h.awaitAddon(t, "addon-late", "late", rotated, metav1.ConditionTrue, "ClientCertificateUpdated", "")
	require.Empty(t, h.addonRequests(t, "addon-late", "late"))
}

func TestChangedAddonRegistrationDropsTheOldSecret(t *testing.T) {
	t.Parallel()
	h := newAddonHub(t)
	s, _ := joined(t, h, "addon-change")
	s.namespace(t, "second-space")
	h.enable(t, "addon-change", "web", kubeClient())
	first := h.grant(t, "addon-change", "web")
	before := s.awaitSecret(t, addonSpace, "web-hub-kubeconfig")

	// Another subject, with the same name of the secret.
	h.subject(t, "addon-change", "web", addonv1alpha1.Subject{User: "somebody", Groups: []string{"some"}})
	s.awaitNoSecret(t, addonSpace, "web-hub-kubeconfig")
	second := h.grant(t, "addon-change", "web", first)
	after := s.awaitSecret(t, addonSpace, "web-hub-kubeconfig")
	require.NotEqual(t, before["tls.key"], after["tls.key"])
	require.Equal(t, "somebody", whoami(t, after))

	// Another namespace.
	h.setAddon(t, "addon-change", "web", func(a *addonv1alpha1.ManagedClusterAddOn) { a.Status.Namespace = "second-space" })
	s.awaitNoSecret(t, addonSpace, "web-hub-kubeconfig")
	third := h.grant(t, "addon-change", "web", first, second)
	s.awaitSecret(t, "second-space", "web-hub-kubeconfig")

	// Another type.
	h.setAddon(t, "addon-change", "web", func(a *addonv1alpha1.ManagedClusterAddOn) { a.Status.Registrations[0].SignerName = customSigner })
	s.awaitNoSecret(t, "second-space", "web-hub-kubeconfig")
	h.issue(t, h.awaitAddonRequest(t, "addon-change", "web", customSigner, first, second, third))
	s.awaitSecret(t, "second-space", "web-signers.example.com-agent-client-cert")

	// None at all.
	h.setAddon(t, "addon-change", "web", func(a *addonv1alpha1.ManagedClusterAddOn) { a.Status.Registrations = nil })
	s.awaitNoSecret(t, "second-space", "web-signers.example.com-agent-client-cert")
	await(t, func() bool {
		return apimeta.FindStatusCondition(h.addon(t, "addon-change", "web").Status.Conditions, rotated) == nil
	})
}

func TestAddonCertificateIsRotated(t *testing.T) {
	t.Parallel()
	h := newBriefHub(t)
	h.learnAddons(t)
	s, _ := joined(t, h, "addon-rotate")
	h.renews(t, "addon-rotate")
	h.enable(t, "addon-rotate", "web", kubeClient())
	first := h.grant(t, "addon-rotate", "web")
	before := s.awaitSecret(t, addonSpace, "web-hub-kubeconfig")
	h.awaitAddon(t, "addon-rotate", "web", rotated, metav1.ConditionTrue, "ClientCertificateUpdated", "")

	renewal := h.awaitAddonRequest(t, "addon-rotate", "web", addonv1alpha1.KubeAPIServerSigner, first)
	checkRenewalTime(t, renewal, before["tls.crt"])
	require.Equal(t, before["tls.crt"], s.secretIn(t.Context(), addonSpace, "web-hub-kubeconfig")["tls.crt"], "a renewal takes nothing away")
	h.approve(t, renewal.GetName())
	await(t, func() bool {
		now := s.secretIn(t.Context(), addonSpace, "web-hub-kubeconfig")
		return !bytes.Equal(now["tls.crt"], before["tls.crt"]) && !bytes.Equal(now["tls.key"], before["tls.key"])
	}, "the renewed certificate does not come")
	cert := certificate(t, s.secretIn(t.Context(), addonSpace, "web-hub-kubeconfig")["tls.crt"])
	h.awaitAddon(t, "addon-rotate", "web", rotated, metav1.ConditionTrue, "ClientCertificateUpdated", cert.NotAfter.UTC().Format(time.RFC3339))
}

// renews approves what the agent of a cluster asks for itself until the test ends, as a hub does. On a
// hub whose certificates are brief, a slow test would outlive the agent's own.
func (h *hub) renews(t *testing.T, cluster string) {
	t.Helper()
	api, ended := h.client.Resource(requests), make(chan struct{})
	approval := []byte(`{"status":{"conditions":[{"type":"Approved","status":"True","reason":"Test","message":"welcome"}]}}`)
	go func() {
		defer close(ended)
		for t.Context().Err() == nil {
			own := clusterv1.LabelClusterName + "=" + cluster + ",!" + addonv1alpha1.LabelAddOnName
			list, err := api.List(t.Context(), metav1.ListOptions{LabelSelector: own})
			for _, u := range itemsOf(list, err) {
				if _, answered, _ := unstructured.NestedSlice(u.Object, "status", "conditions"); !answered { // or the next time
					_, _ = api.Patch(t.Context(), u.GetName(), types.MergePatchType, approval, metav1.PatchOptions{}, "approval")
				}
			}
			select {
			case <-t.Context().Done():
			case <-time.After(time.Second):
			}
		}
	}()
	t.Cleanup(func() { <-ended })
}

func TestFifteenSubjectsOfAnAddonStayBelowTheCap(t *testing.T) {
	t.Parallel()
	h := newAddonHub(t)
	s, _ := joined(t, h, "addon-cap")
	h.enable(t, "addon-cap", "web", kubeClient())
	h.enable(t, "addon-cap", "calm", kubeClient())
	h.awaitAddonRequest(t, "addon-cap", "web", addonv1alpha1.KubeAPIServerSigner)
	for i := range 15 {
		before := len(h.addonRequests(t, "addon-cap", "web"))
		h.subject(t, "addon-cap", "web", addonv1alpha1.Subject{User: "user-" + string(rune('a'+i))})
		if before >= 10 {
			continue
		}
		await(t, func() bool { return len(h.addonRequests(t, "addon-cap", "web")) > before })
	}
	h.awaitAddon(
		t, "addon-cap", "web", rotated, metav1.ConditionFalse, "ClientCertificateUpdateFailed",
		"Stop creating csr since there are too many csr created already on hub",
	)
	require.Len(t, h.addonRequests(t, "addon-cap", "web"), 10)
	await(t, func() bool { return len(s.pending(t, "web")) == 1 }, "not one request is outstanding")
	h.grant(t, "addon-cap", "calm")
	s.awaitSecret(t, addonSpace, "calm-hub-kubeconfig")
}

func TestDeniedAddonRequestIsReportedAndAskedAgain(t *testing.T) {
	t.Parallel()
	h := newAddonHub(t)
	s, a := joined(t, h, "addon-denied")
	h.enable(t, "addon-denied", "web", kubeClient())
	first := h.awaitAddonRequest(t, "addon-denied", "web", addonv1alpha1.KubeAPIServerSigner).GetName()
	h.decide(t, first, "Denied", "not on this cluster")
	h.awaitAddon(t, "addon-denied", "web", rotated, metav1.ConditionFalse, "ClientCertificateUpdateFailed", "not on this cluster; attempt 2 follows at")

	// The waiting time survives a restart.
	a.kill()
	s.start(t)
	second := h.awaitAddonRequest(t, "addon-denied", "web", addonv1alpha1.KubeAPIServerSigner, first)
	require.GreaterOrEqual(t, second.GetCreationTimestamp().Unix()-h.requestTime(t, first), int64(29))
	h.approve(t, second.GetName())
	s.awaitSecret(t, addonSpace, "web-hub-kubeconfig")
	h.awaitAddon(t, "addon-denied", "web", rotated, metav1.ConditionTrue, "ClientCertificateUpdated", "")
}
