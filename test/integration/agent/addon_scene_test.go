// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

var addons = schema.GroupVersionResource{Group: "addon.open-cluster-management.io", Version: "v1alpha1", Resource: "managedclusteraddons"}

// addonSpace is the default namespace of the add-ons in the tests.
const addonSpace = "open-cluster-management-agent-addon"

const customSigner = "signers.example.com/agent"

var knowsAddons sync.Map

// newAddonHub returns the shared hub with the kinds of add-ons; the test plays its add-on
// manager and the administrator who approves.
func newAddonHub(t *testing.T) *hub {
	t.Helper()
	h := newHub(t)
	h.learnAddons(t)
	return h
}

func (h *hub) learnAddons(t *testing.T) {
	t.Helper()
	once, _ := knowsAddons.LoadOrStore(h.Kubeconfig, new(sync.Once))
	once.(*sync.Once).Do(func() {
		u, err := crd.Get("managedclusteraddons.addon.open-cluster-management.io")
		require.NoError(t, err)
		apply(t, h.client, u)
		await(t, func() bool {
			_, err := h.client.Resource(addons).List(t.Context(), metav1.ListOptions{})
			return err == nil
		})
	})
}

// joined returns a cluster that has joined the hub, and its agent.
func joined(t *testing.T, h *hub, name string, change ...func(*config.Options)) (*spoke, *agent) {
	t.Helper()
	s := newSpoke(t)
	t.Cleanup(func() {
		if t.Failed() {
			h.logAddons(context.Background(), t, name)
		}
	})
	o := config.Options{ClusterName: name, BootstrapKubeconfig: h.bootstrap(t)}
	for _, f := range change {
		f(&o)
	}
	s.install(t, o)
	a := s.start(t)
	h.join(t, name)
	return s, a
}

// logAddons logs what the hub knows of a cluster's add-ons and of its certificate requests.
func (h *hub) logAddons(ctx context.Context, t *testing.T, cluster string) {
	t.Helper()
	if list, err := h.client.Resource(addons).Namespace(cluster).List(ctx, metav1.ListOptions{}); err == nil {
		for _, u := range list.Items {
			t.Logf("add-on %s: %v", u.GetName(), u.Object["status"])
		}
	}
	list, err := h.client.Resource(requests).List(ctx, metav1.ListOptions{LabelSelector: clusterv1.LabelClusterName + "=" + cluster})
	for _, u := range itemsOf(list, err) {
		certificate, _, _ := unstructured.NestedString(u.Object, "status", "certificate")
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		t.Logf("request %s of %s: issued %t, %v", u.GetName(), u.GetCreationTimestamp(), certificate != "", conditions)
	}
}

func kubeClient() addonv1alpha1.RegistrationConfig {
	return addonv1alpha1.RegistrationConfig{SignerName: addonv1alpha1.KubeAPIServerSigner}
}

// enable creates an add-on with these registrations, as its manager on the hub does.
func (h *hub) enable(t *testing.T, cluster, name string, registrations ...addonv1alpha1.RegistrationConfig) {
	t.Helper()
	apply(t, h.client, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterAddOn",
		"metadata": map[string]any{"namespace": cluster, "name": name}, "spec": map[string]any{}}})
	h.setAddon(t, cluster, name, func(a *addonv1alpha1.ManagedClusterAddOn) { a.Status.Registrations = registrations })
}

// setAddon changes the status of an add-on.
func (h *hub) setAddon(t *testing.T, cluster, name string, f func(*addonv1alpha1.ManagedClusterAddOn)) {
	t.Helper()
	await(t, func() bool {
		a, err := typed.Get[addonv1alpha1.ManagedClusterAddOn](t.Context(), h.client, addons, cluster, name)
		require.NoError(t, err)
		f(a)
		_, err = h.client.Resource(addons).Namespace(cluster).UpdateStatus(t.Context(), object(t, a), metav1.UpdateOptions{})
		return settled(t, err)
	})
}

func (h *hub) subject(t *testing.T, cluster, name string, subject addonv1alpha1.Subject) {
	t.Helper()
	h.setAddon(t, cluster, name, func(a *addonv1alpha1.ManagedClusterAddOn) { a.Status.Registrations[0].Subject = subject })
}

func (h *hub) addon(t *testing.T, cluster, name string) *addonv1alpha1.ManagedClusterAddOn {
	t.Helper()
	a, err := read(t.Context(), func() (*addonv1alpha1.ManagedClusterAddOn, error) {
		return typed.Get[addonv1alpha1.ManagedClusterAddOn](t.Context(), h.client, addons, cluster, name)
	})
	require.NoError(t, err)
	return a
}

func (h *hub) disable(t *testing.T, cluster, name string) {
	t.Helper()
	require.NoError(t, h.client.Resource(addons).Namespace(cluster).Delete(t.Context(), name, metav1.DeleteOptions{}))
}

// awaitAddon waits until a condition of an add-on has this status and reason, and a
// message that contains the text.
func (h *hub) awaitAddon(t *testing.T, cluster, name, kind string, status metav1.ConditionStatus, reason, message string) {
	t.Helper()
	var last *metav1.Condition
	await(t, func() bool {
		last = apimeta.FindStatusCondition(h.addon(t, cluster, name).Status.Conditions, kind)
		return last != nil && last.Status == status && last.Reason == reason && strings.Contains(last.Message, message)
	}, "%s of %s is not %s %s %q but %+v", kind, name, status, reason, message, func() any { return last })
}

// addonRequests returns the certificate requests of an add-on.
func (h *hub) addonRequests(t *testing.T, cluster, name string) []unstructured.Unstructured {
	t.Helper()
	list, err := read(t.Context(), func() (*unstructured.UnstructuredList, error) {
		return h.client.Resource(requests).List(t.Context(), metav1.ListOptions{
			LabelSelector: "open-cluster-management.io/cluster-name=" + cluster + ",open-cluster-management.io/addon-name=" + name})
	})
	require.NoError(t, err)
	return list.Items
}

// awaitAddonRequest waits for a request of an add-on for this signer that is not among
// known.
func (h *hub) awaitAddonRequest(t *testing.T, cluster, name, signer string, known ...string) *unstructured.Unstructured {
	t.Helper()
	var found *unstructured.Unstructured
	await(t, func() bool {
		for _, u := range h.addonRequests(t, cluster, name) {
			by, _, _ := unstructured.NestedString(u.Object, "spec", "signerName")
			if by == signer && !strings.Contains(strings.Join(known, " "), u.GetName()) {
				found = &u
				return true
			}
		}
		return false
	}, "no request of add-on %s for %s", name, signer)
	return found
}

// grant approves the request of an add-on and returns its name.
func (h *hub) grant(t *testing.T, cluster, name string, known ...string) string {
	t.Helper()
	u := h.awaitAddonRequest(t, cluster, name, addonv1alpha1.KubeAPIServerSigner, known...)
	h.approve(t, u.GetName())
	return u.GetName()
}

// issue signs a request with a signer of the test.
func (h *hub) issue(t *testing.T, u *unstructured.Unstructured, change ...func(*x509.Certificate)) {
	t.Helper()
	csr := parsed(t, u)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}}
	cert := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: csr.Subject, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour)}
	for _, f := range change {
		f(cert)
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, ca, csr.PublicKey, key)
	require.NoError(t, err)
	h.approve(t, u.GetName())
	h.certify(t, u.GetName(), der)
}

// certify puts a certificate into a request, as a signer does.
func (h *hub) certify(t *testing.T, request string, der []byte) {
	t.Helper()
	encoded := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	await(t, func() bool {
		live, err := h.client.Resource(requests).Get(t.Context(), request, metav1.GetOptions{})
		require.NoError(t, err)
		require.NoError(t, unstructured.SetNestedField(live.Object, encoded, "status", "certificate"))
		_, err = h.client.Resource(requests).UpdateStatus(t.Context(), live, metav1.UpdateOptions{})
		return settled(t, err)
	})
}

// secretIn reads a secret; nil when it does not exist.
func (s *spoke) secretIn(ctx context.Context, namespace, name string) map[string][]byte {
	u, err := read(ctx, func() (*unstructured.Unstructured, error) {
		return s.client.Resource(secrets).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	})
	if err != nil {
		return nil
	}
	out := map[string][]byte{}
	encoded, _, _ := unstructured.NestedStringMap(u.Object, "data")
	for key, value := range encoded {
		if raw, err := base64.StdEncoding.DecodeString(value); err == nil {
			out[key] = raw
		}
	}
	return out
}

func (s *spoke) awaitSecret(t *testing.T, namespace, name string) map[string][]byte {
	t.Helper()
	var out map[string][]byte
	await(t, func() bool {
		out = s.secretIn(t.Context(), namespace, name)
		return out != nil
	}, "secret %s/%s does not come", namespace, name)
	return out
}

func (s *spoke) awaitNoSecret(t *testing.T, namespace, name string) {
	t.Helper()
	await(t, func() bool { return s.secretIn(t.Context(), namespace, name) == nil }, "secret %s/%s stays", namespace, name)
}

// pending returns the secrets of pending requests of an add-on.
func (s *spoke) pending(t *testing.T, addOn string) []unstructured.Unstructured {
	t.Helper()
	list, err := read(t.Context(), func() (*unstructured.UnstructuredList, error) {
		return s.client.Resource(secrets).List(t.Context(), metav1.ListOptions{
			LabelSelector: addonv1alpha1.LabelCredentialRole + "=pending," + addonv1alpha1.LabelAddOnName + "=" + addOn})
	})
	require.NoError(t, err)
	return list.Items
}

func (s *spoke) namespace(t *testing.T, name string) {
	t.Helper()
	apply(t, s.client, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}})
}
