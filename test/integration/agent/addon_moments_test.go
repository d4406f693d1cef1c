// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/addon"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/addoncredential"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// holder calls a function, which may block, before each request of a client is sent.
type holder struct {
	next   http.RoundTripper
	before func(*http.Request)
}

// RoundTrip sends the request once the function returns.
func (h *holder) RoundTrip(r *http.Request) (*http.Response, error) {
	h.before(r)
	return h.next.RoundTrip(r)
}

// asksFor reports whether a request creates a certificate request; looksFor returns the
// name of the one it reads, empty for none.
func asksFor(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/certificatesigningrequests")
}

func looksFor(r *http.Request) string {
	name, ok := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	if !ok || r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/certificatesigningrequests") {
		return ""
	}
	return name
}

// moment runs only the loop for add-ons' credentials, for a cluster that is its own hub,
// with the agent's rights there.
func (h *hub) moment(t *testing.T, cluster string, clk clock.PassiveClock, before func(*http.Request)) *addon.AddOns {
	t.Helper()
	h.Claim(t, cluster)
	apply(t, h.client, object(t, &clusterv1.ManagedCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "ManagedCluster"},
		ObjectMeta: metav1.ObjectMeta{Name: cluster}}))
	h.accept(t, cluster)
	namespace := cluster + "-agent"
	for _, name := range []string{namespace, cluster + "-one", cluster + "-two"} {
		apply(t, h.client, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}})
	}
	c := rest.CopyConfig(h.Config)
	c.Impersonate = rest.ImpersonationConfig{UserName: clusterv1.UserPrefix + cluster + ":a",
		Groups: []string{clusterv1.UserPrefix + cluster, clusterv1.GroupManagedClusters, "system:authenticated"}}
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return &holder{next, before} })
	client, err := dynamic.NewForConfig(c)
	require.NoError(t, err)
	place := &addoncredential.Place{Client: h.client, Secrets: addoncredential.NewSecrets(h.client, namespace, "", logr.Discard())}
	addOns := addon.NewAddOns(client, cluster, logr.Discard())
	loop, err := addoncredential.New(addoncredential.Config{
		Hub: client, Cluster: cluster, Endpoint: h.endpoint("hub"), AddOns: addOns, Spoke: place, Management: place, Namespace: namespace, Clock: clk,
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{addOns.Run, place.Secrets.Run, loop.Run} {
		running.Go(func() { _ = run(ctx) })
	}
	t.Cleanup(func() { cancel(); running.Wait() })
	return addOns
}

// TestAddonThatChangesWhileItsRequestIsSentIsServed changes a registration when key and
// name of the request are stored and the request is in flight. The hub receives it
// anyway; what counts is that the agent sends one for the new registration.
func TestAddonThatChangesWhileItsRequestIsSentIsServed(t *testing.T) {
	t.Parallel()
	h := newAddonHub(t)
	for cluster, tc := range map[string]struct {
		change func(*addonv1alpha1.ManagedClusterAddOn)
		secret string
	}{
		"moment-namespace": {
			func(a *addonv1alpha1.ManagedClusterAddOn) { a.Status.Namespace = "moment-namespace-two" },
			"moment-namespace-two/web-hub-kubeconfig",
		},
		"moment-subject": {func(a *addonv1alpha1.ManagedClusterAddOn) {
			a.Status.Registrations[0].Subject = addonv1alpha1.Subject{User: "somebody"}
		}, "moment-subject-one/web-hub-kubeconfig"},
		"moment-signer": {
			func(a *addonv1alpha1.ManagedClusterAddOn) { a.Status.Registrations[0].SignerName = customSigner },
			"moment-signer-one/web-signers.example.com-agent-client-cert",
		},
	} {
		t.Run(cluster, func(t *testing.T) {
			onItsWay, changed := make(chan struct{}), make(chan struct{})
			var once sync.Once
			addOns := h.moment(t, cluster, clock.RealClock{}, func(r *http.Request) {
				if asksFor(r) {
					once.Do(func() {
						close(onItsWay)
						select {
						case <-changed:
						case <-r.Context().Done():
						}
					})
				}
			})
			h.enable(t, cluster, "web")
			h.setAddon(t, cluster, "web", func(a *addonv1alpha1.ManagedClusterAddOn) {
				a.Status.Namespace, a.Status.Registrations = cluster+"-one", []addonv1alpha1.RegistrationConfig{kubeClient()}
			})
			<-onItsWay
			h.setAddon(t, cluster, "web", tc.change)
			now := h.addon(t, cluster, "web").Status
			await(t, func() bool {
				seen, _ := addOns.Get(reconcile.Key{Namespace: cluster, Name: "web"})
				return seen != nil && seen.Status.Namespace == now.Namespace && cmp.Equal(seen.Status.Registrations, now.Registrations)
			}, "the agent does not see the change")
			close(changed)

			var found []unstructured.Unstructured
			await(t, func() bool {
				found = h.addonRequests(t, cluster, "web")
				return len(found) == 2
			}, "the new registration is not asked for")
			namespace, name, _ := strings.Cut(tc.secret, "/")
			for i := range found {
				if signer, _, _ := unstructured.NestedString(found[i].Object, "spec", "signerName"); signer == customSigner {
					h.issue(t, &found[i])
					continue
				}
				h.approve(t, found[i].GetName())
			}
			await(t, func() bool {
				_, err := h.client.Resource(secrets).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
				return err == nil
			}, "secret %s does not come", tc.secret)
			h.awaitAddon(t, cluster, "web", rotated, metav1.ConditionTrue, "ClientCertificateUpdated", "")
		})
	}
}

// TestSlowHubIsAskedForAnAddonsCertificateAllTheSame has a hub answer the read of a
// started request later than a created one may be unknown: if the agent started over
// because of that, it would never send it.
func TestSlowHubIsAskedForAnAddonsCertificateAllTheSame(t *testing.T) {
	t.Parallel()
	h := newAddonHub(t)
	slow := clocktesting.NewFakePassiveClock(time.Now())
	var seen sync.Map
	h.moment(t, "moment-slow", slow, func(r *http.Request) {
		name := looksFor(r)
		if _, again := seen.LoadOrStore(name, true); name != "" && !again {
			slow.SetTime(slow.Now().Add(11 * time.Second))
		}
	})
	h.enable(t, "moment-slow", "web", kubeClient())
	h.awaitAddonRequest(t, "moment-slow", "web", addonv1alpha1.KubeAPIServerSigner)
	require.Len(t, h.addonRequests(t, "moment-slow", "web"), 1)
}
