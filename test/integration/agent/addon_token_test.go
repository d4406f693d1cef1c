// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

const refreshed = addonv1alpha1.ConditionTokenRefreshed

var accounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}

// byDriver makes the agent register add-ons with this driver.
func byDriver(driver string) *operatorv1.RegistrationConfiguration {
	return &operatorv1.RegistrationConfiguration{AddOnKubeClientRegistrationDriver: &operatorv1.AddOnRegistrationDriver{
		AuthType: driver, Token: &operatorv1.TokenConfig{ExpirationSeconds: 3600}}}
}

// account creates the ServiceAccount of an add-on, with the right of the agent to its
// tokens, as the hub does, and returns its UID.
func (h *hub) account(t *testing.T, cluster, addOn string) types.UID {
	t.Helper()
	name := addOn + "-agent"
	apply(t, h.client, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"namespace": cluster, "name": name}}})
	h.role(t, cluster+"-"+addOn+"-token-role", rule("", "serviceaccounts/token", name, "create"))
	h.bind(t, addOn+"-token-role", cluster+"-"+addOn+"-token-role", cluster, rbacv1.Subject{Kind: "Group", Name: clusterv1.UserPrefix + cluster})
	u, err := h.client.Resource(accounts).Namespace(cluster).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return u.GetUID()
}

// ready reports the ServiceAccount of an add-on as ready.
func (h *hub) ready(t *testing.T, cluster, addOn, message string) {
	t.Helper()
	h.setAddon(t, cluster, addOn, func(a *addonv1alpha1.ManagedClusterAddOn) {
		apimeta.SetStatusCondition(&a.Status.Conditions, metav1.Condition{
			Type: "TokenInfrastructureReady", Status: metav1.ConditionTrue, Reason: "TokenInfrastructureReady", Message: message})
	})
}

func (h *hub) readyFor(t *testing.T, cluster, addOn string, uid types.UID) {
	t.Helper()
	h.ready(t, cluster, addOn, "ServiceAccount "+cluster+"/"+addOn+"-agent (UID: "+string(uid)+") is ready")
}

func TestAddonTokenFollowsItsServiceAccount(t *testing.T) {
	t.Parallel()
	h := newAddonHub(t)
	s, _ := joined(t, h, "addon-token", func(o *config.Options) { o.Spec.RegistrationConfiguration = byDriver("token") })
	h.enable(t, "addon-token", "web", addonv1alpha1.RegistrationConfig{
		SignerName: addonv1alpha1.KubeAPIServerSigner, Subject: addonv1alpha1.Subject{User: "somebody", Groups: []string{"some"}}})
	await(t, func() bool {
		a := h.addon(t, "addon-token", "web")
		return a.Status.KubeClientDriver == addonv1alpha1.DriverTypeToken && a.Status.Registrations[0].Subject.User == "system:serviceaccount:addon-token:web-agent"
	})
	require.Empty(t, h.addon(t, "addon-token", "web").Status.Registrations[0].Subject.Groups)
	h.awaitAddon(t, "addon-token", "web", refreshed, metav1.ConditionUnknown, "CredentialPending", "waiting for the hub to create the ServiceAccount")

	uid := h.account(t, "addon-token", "web")
	h.ready(t, "addon-token", "web", "ServiceAccount addon-token/other-agent (UID: "+string(uid)+") is ready")
	h.awaitAddon(t, "addon-token", "web", refreshed, metav1.ConditionUnknown, "CredentialPending", "is not understood")
	h.readyFor(t, "addon-token", "web", "00000000-0000-0000-0000-000000000000")
	h.awaitAddon(t, "addon-token", "web", refreshed, metav1.ConditionFalse, "TokenCreationFailed", "UID 00000000")
	require.Nil(t, s.secretIn(t.Context(), addonSpace, "web-hub-kubeconfig"))

	h.readyFor(t, "addon-token", "web", uid)
	first := s.awaitSecret(t, addonSpace, "web-hub-kubeconfig")
	require.ElementsMatch(t, []string{"kubeconfig", "cluster-name", "token"}, keys(first))
	require.Contains(t, string(first["kubeconfig"]), "tokenFile: token")
	require.Equal(t, "system:serviceaccount:addon-token:web-agent", whoami(t, first))
	h.awaitAddon(t, "addon-token", "web", refreshed, metav1.ConditionTrue, "AddonTokenRefreshed", "Addon token refreshed, expires at ")

	require.NoError(t, h.client.Resource(accounts).Namespace("addon-token").Delete(t.Context(), "web-agent", metav1.DeleteOptions{}))
	again := h.account(t, "addon-token", "web")
	require.NotEqual(t, uid, again)
	h.readyFor(t, "addon-token", "web", again)
	await(t, func() bool {
		token := string(s.secretIn(t.Context(), addonSpace, "web-hub-kubeconfig")["token"])
		return token != "" && token != string(first["token"])
	})
	require.Equal(t, "system:serviceaccount:addon-token:web-agent", whoami(t, s.secretIn(t.Context(), addonSpace, "web-hub-kubeconfig")))
	require.Empty(t, h.addonRequests(t, "addon-token", "web"))

	h.disable(t, "addon-token", "web")
	s.awaitNoSecret(t, addonSpace, "web-hub-kubeconfig")
}

func TestAddonDriverIsSwitchedBothWays(t *testing.T) {
	t.Parallel()
	h := newAddonHub(t)
	s, _ := joined(t, h, "addon-switch")
	h.enable(t, "addon-switch", "web", kubeClient())
	first := h.grant(t, "addon-switch", "web")
	s.awaitSecret(t, addonSpace, "web-hub-kubeconfig")
	h.awaitAddon(t, "addon-switch", "web", rotated, metav1.ConditionTrue, "ClientCertificateUpdated", "")

	s.drive(t, "token")
	h.readyFor(t, "addon-switch", "web", h.account(t, "addon-switch", "web"))
	h.awaitAddon(t, "addon-switch", "web", refreshed, metav1.ConditionTrue, "AddonTokenRefreshed", "")
	a := h.addon(t, "addon-switch", "web")
	require.Equal(t, addonv1alpha1.DriverTypeToken, a.Status.KubeClientDriver)
	require.Nil(t, apimeta.FindStatusCondition(a.Status.Conditions, rotated))
	kept := s.secretIn(t.Context(), addonSpace, "web-hub-kubeconfig")
	require.ElementsMatch(t, []string{"kubeconfig", "cluster-name", "token"}, keys(kept), "nothing is left of the certificate")

	s.drive(t, "csr")
	h.grant(t, "addon-switch", "web", first)
	h.awaitAddon(t, "addon-switch", "web", rotated, metav1.ConditionTrue, "ClientCertificateUpdated", "")
	a = h.addon(t, "addon-switch", "web")
	require.Equal(t, addonv1alpha1.DriverTypeCSR, a.Status.KubeClientDriver)
	require.Empty(t, a.Status.Registrations[0].Subject.User, "the user of the token is no user of a certificate")
	require.Nil(t, apimeta.FindStatusCondition(a.Status.Conditions, refreshed))
	kept = s.secretIn(t.Context(), addonSpace, "web-hub-kubeconfig")
	require.ElementsMatch(t, []string{"kubeconfig", "cluster-name", "tls.crt", "tls.key"}, keys(kept))
	require.Equal(t, "system:open-cluster-management:cluster:addon-switch:addon:web:agent:web", whoami(t, kept))
}

// drive changes the driver of add-ons in the Klusterlet.
func (s *spoke) drive(t *testing.T, driver string) {
	t.Helper()
	await(t, func() bool {
		k := s.klusterlet(t)
		k.Spec.RegistrationConfiguration = byDriver(driver)
		_, err := s.client.Resource(klusterlets).Update(t.Context(), object(t, k), metav1.UpdateOptions{})
		return settled(t, err)
	})
}
