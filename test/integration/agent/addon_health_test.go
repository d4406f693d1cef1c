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
	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/addon"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/addoncredential"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/addonhealth"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

const available = addonv1alpha1.ConditionAvailable

// renew writes the lease of an add-on with a renewal that is this long ago.
func renew(t *testing.T, client dynamic.Interface, namespace, name string, ago time.Duration) {
	t.Helper()
	apply(t, client, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": map[string]any{
			"namespace": namespace,
			"name":      name,
		},
		"spec": map[string]any{
			"renewTime":            time.Now().Add(-ago).UTC().Format(metav1.RFC3339Micro),
			"leaseDurationSeconds": int64(60),
		}}})
}

func TestAddonHealthFollowsItsLease(t *testing.T) {
	t.Parallel()
	h := newAddonHub(t)
	s, _ := joined(t, h, "addon-health")
	h.enable(t, "addon-health", "web")
	h.awaitAddon(t, "addon-health", "web", available, metav1.ConditionUnknown, "ManagedClusterAddOnLeaseNotFound", "The status of web add-on is unknown.")
	renew(t, s.client, addonSpace, "other", 0)
	renew(t, s.client, addonSpace, "web", 301*time.Second)
	h.awaitAddon(t, "addon-health", "web", available, metav1.ConditionFalse, "ManagedClusterAddOnLeaseUpdateStopped", "web add-on is not available.")
	renew(t, s.client, addonSpace, "web", 0)
	h.awaitAddon(t, "addon-health", "web", available, metav1.ConditionTrue, "ManagedClusterAddOnLeaseUpdated", "web add-on is available.")

	// Renewals change nothing on the hub, and a wrong clock does not count as a failure.
	version := h.addon(t, "addon-health", "web").ResourceVersion
	renew(t, s.client, addonSpace, "web", 10*time.Minute)
	renew(t, s.client, addonSpace, "web", -10*time.Minute)
	never(t, time.Second, func() bool { return h.addon(t, "addon-health", "web").ResourceVersion != version }, "a renewal was written down on the hub")

	require.NoError(t, s.client.Resource(leases).Namespace(addonSpace).Delete(t.Context(), "web", metav1.DeleteOptions{}))
	h.awaitAddon(t, "addon-health", "web", available, metav1.ConditionUnknown, "ManagedClusterAddOnLeaseNotFound", "")

	// Its own controller reports its health.
	h.setAddon(t, "addon-health", "web", func(a *addonv1alpha1.ManagedClusterAddOn) {
		a.Status.HealthCheck.Mode = addonv1alpha1.HealthCheckModeCustomized
		apimeta.SetStatusCondition(&a.Status.Conditions, metav1.Condition{
			Type:    available,
			Status:  metav1.ConditionTrue,
			Reason:  "Mine",
			Message: "by its controller",
		})
	})
	renew(t, s.client, addonSpace, "web", 301*time.Second)
	never(t, time.Second, func() bool {
		return apimeta.FindStatusCondition(h.addon(t, "addon-health", "web").Status.Conditions, available).Reason != "Mine"
	}, "what its own controller says was overwritten")

	// Another namespace is used as soon as the hub names it.
	h.setAddon(t, "addon-health", "web", func(a *addonv1alpha1.ManagedClusterAddOn) {
		a.Status.HealthCheck.Mode, a.Status.Namespace = addonv1alpha1.HealthCheckModeLease, "default"
	})
	renew(t, s.client, "default", "web", 0)
	h.awaitAddon(t, "addon-health", "web", available, metav1.ConditionTrue, "ManagedClusterAddOnLeaseUpdated", "")
}

// asked records the requests for leases that a client sends.
type asked struct {
	http.RoundTripper
	mu      sync.Mutex
	queries []string
}

func (a *asked) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/leases") {
		a.mu.Lock()
		a.queries = append(a.queries, r.URL.Query().Get("fieldSelector"))
		a.mu.Unlock()
	}
	return a.RoundTripper.RoundTrip(r)
}

// serveAddons runs the loops for a cluster whose agent runs on another one.
func serveAddons(t *testing.T, h *hub, cluster string, spoke, management dynamic.Interface) {
	t.Helper()
	log := logr.Discard()
	clusters := watch.New(watch.Options[*clusterv1.ManagedCluster]{
		Client: h.client, Resource: clusters, FieldSelector: "metadata.name=" + cluster,
		Keep: func(u *unstructured.Unstructured) (*clusterv1.ManagedCluster, bool) {
			c, err := typed.FromUnstructured[clusterv1.ManagedCluster](u)
			return c, err == nil
		},
	})
	all := addon.NewAddOns(h.client, cluster, log)
	places := []*addoncredential.Place{{Client: spoke}, {Client: management}}
	for _, p := range places {
		p.Secrets = addoncredential.NewSecrets(p.Client, operatorv1.NamespaceAgent, "", log)
	}
	credentials, err := addoncredential.New(addoncredential.Config{
		Hub: h.client, Cluster: cluster, Endpoint: h.endpoint("hub"), AddOns: all, Spoke: places[0], Management: places[1],
		Namespace: operatorv1.NamespaceAgent, Clock: clock.RealClock{},
	})
	require.NoError(t, err)
	judge := addonhealth.New(addonhealth.Config{
		Hub: h.client, Cluster: cluster, Clusters: clusters, AddOns: all, Spoke: spoke, Management: management, Clock: clock.RealClock{},
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{clusters.Run, all.Run, places[0].Secrets.Run, places[1].Secrets.Run, credentials.Run, judge.Run} {
		running.Go(func() { _ = run(ctx) })
	}
	t.Cleanup(func() { cancel(); running.Wait() })
}

// bare creates a ManagedCluster that no agent serves.
func (h *hub) bare(t *testing.T, name string) {
	t.Helper()
	h.Claim(t, name)
	for _, u := range []map[string]any{
		{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}},
		{
			"apiVersion": clusters.Group + "/v1",
			"kind":       "ManagedCluster",
			"metadata":   map[string]any{"name": name},
			"spec":       map[string]any{},
		},
	} {
		apply(t, h.client, &unstructured.Unstructured{Object: u})
	}
}

func TestHostedAddonLivesOnTheManagementCluster(t *testing.T) {
	t.Parallel()
	h := newAddonHub(t)
	s := newSpoke(t)
	m := newSpoke(t)
	h.bare(t, "addon-hosted")
	for _, c := range []*spoke{s, m} {
		c.namespace(t, operatorv1.NamespaceAgent)
		c.namespace(t, addonSpace)
	}
	seen := &asked{}
	through := rest.CopyConfig(m.Config)
	through.Wrap(func(rt http.RoundTripper) http.RoundTripper { seen.RoundTripper = rt; return seen })
	client, err := dynamic.NewForConfig(through)
	require.NoError(t, err)
	serveAddons(t, h, "addon-hosted", s.client, client)

	apply(t, h.client, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterAddOn", "spec": map[string]any{},
		"metadata": map[string]any{
			"namespace":   "addon-hosted",
			"name":        "web",
			"annotations": map[string]any{addonv1alpha1.AnnotationHostingClusterName: "m"},
		}}})
	h.awaitAddon(t, "addon-hosted", "web", available, metav1.ConditionUnknown, "ManagedClusterAddOnLeaseNotFound", "which must be m.")
	renew(t, s.client, addonSpace, "web", 0)
	renew(t, m.client, addonSpace, "web", 301*time.Second)
	h.awaitAddon(t, "addon-hosted", "web", available, metav1.ConditionFalse, "ManagedClusterAddOnLeaseUpdateStopped", "")
	seen.mu.Lock()
	require.NotEmpty(t, seen.queries)
	for _, q := range seen.queries {
		require.Equal(t, "metadata.name=web", q, "other leases are never asked for")
	}
	seen.mu.Unlock()

	h.setAddon(t, "addon-hosted", "web", func(a *addonv1alpha1.ManagedClusterAddOn) {
		a.Status.Registrations = []addonv1alpha1.RegistrationConfig{kubeClient()}
	})
	first := h.grant(t, "addon-hosted", "web")
	m.awaitSecret(t, addonSpace, "web-hub-kubeconfig")
	require.Nil(t, s.secretIn(t.Context(), addonSpace, "web-hub-kubeconfig"))

	// It moves to the managed cluster.
	apply(t, h.client, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterAddOn", "spec": map[string]any{},
		"metadata": map[string]any{"namespace": "addon-hosted", "name": "web"}}})
	m.awaitNoSecret(t, addonSpace, "web-hub-kubeconfig")
	h.grant(t, "addon-hosted", "web", first)
	s.awaitSecret(t, addonSpace, "web-hub-kubeconfig")
	h.awaitAddon(t, "addon-hosted", "web", available, metav1.ConditionTrue, "ManagedClusterAddOnLeaseUpdated", "")
	require.Empty(t, s.pending(t, "web"), "requests under way are kept beside the agent")
}

func TestAddonOfALostClusterIsLeftToTheHub(t *testing.T) {
	t.Parallel()
	h := newAddonHub(t)
	h.bare(t, "addon-lost")
	h.condition(t, "addon-lost", clusterv1.ConditionAvailable, metav1.ConditionUnknown, clusterv1.ReasonManagedClusterLeaseUpdateStopped)
	h.enable(t, "addon-lost", "web")
	h.setAddon(t, "addon-lost", "web", func(a *addonv1alpha1.ManagedClusterAddOn) {
		apimeta.SetStatusCondition(&a.Status.Conditions, metav1.Condition{
			Type: available, Status: metav1.ConditionUnknown, Reason: clusterv1.ReasonManagedClusterLeaseUpdateStopped, Message: "lost"})
	})
	s := newSpoke(t)
	s.namespace(t, addonSpace)
	renew(t, s.client, addonSpace, "web", 0)
	// The hub answers about the cluster itself only after everything else.
	held := make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	through := rest.CopyConfig(h.Config)
	through.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &holder{next, func(r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/managedclusters") {
				<-held
			}
		}}
	})
	late := *h
	var err error
	late.client, err = dynamic.NewForConfig(through)
	require.NoError(t, err)
	serveAddons(t, &late, "addon-lost", s.client, s.client)
	t.Cleanup(release)
	overwritten := func() bool {
		return apimeta.FindStatusCondition(h.addon(t, "addon-lost", "web").Status.Conditions, available).Reason != clusterv1.ReasonManagedClusterLeaseUpdateStopped
	}
	never(t, time.Second, overwritten, "what the hub says was overwritten before the agent knew that the cluster is lost")
	release()
	never(t, time.Second, overwritten, "what the hub says of a lost cluster was overwritten")
	h.condition(t, "addon-lost", clusterv1.ConditionAvailable, metav1.ConditionTrue, clusterv1.ReasonManagedClusterAvailable)
	h.awaitAddon(t, "addon-lost", "web", available, metav1.ConditionTrue, "ManagedClusterAddOnLeaseUpdated", "")
}
