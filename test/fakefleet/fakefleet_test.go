// SPDX-License-Identifier: Apache-2.0

package fakefleet_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	hubconfig "github.com/kubectl-ocm/kubectl-ocm/config/hub"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/fakefleet"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

const (
	patience = 2 * time.Minute
	tick     = 50 * time.Millisecond
	// size is the number of agents.
	size = 20
)

var (
	clusters    = clusterv1.GroupVersion.WithResource("managedclusters")
	leases      = coordinationv1.SchemeGroupVersion.WithResource("leases")
	works       = workv1.GroupVersion.WithResource(workv1.ResourceManifestWorks)
	addOns      = addonv1alpha1.GroupVersion.WithResource("managedclusteraddons")
	definitions = addonv1alpha1.GroupVersion.WithResource("clustermanagementaddons")
	templates   = addonv1alpha1.GroupVersion.WithResource("addontemplates")
)

// scene is a hub that accepts every cluster.
type scene struct {
	*harness.Cluster
	t      *testing.T
	dyn    dynamic.Interface
	fleet  *fakefleet.Fleet
	person *fakefleet.Person
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, Cluster: harness.WithNode(t, "hub", map[string]string{"ocm-hub": harness.Program(t, "controllers/ocm-hub")})}
	s.dyn = s.Dynamic(t)
	connected, err := fleet.Connect(s.Config, "hub")
	require.NoError(t, err)
	_, err = hub.Init(t.Context(), hub.InitOptions{Common: fleet.Common{Wait: true}, Hub: connected, Version: "v0.0.0-test"})
	require.NoError(t, err)
	bootstrap := s.As(t, hubconfig.Namespace, hubconfig.BootstrapServiceAccount)
	bootstrap.CAData = s.Playground.CA
	s.fleet, err = fakefleet.New(fakefleet.Options{Bootstrap: bootstrap, Pool: s.Config, Seed: 1, Works: true, AddOns: true, Latency: 2 * time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.fleet.Close()) })
	s.person, err = fakefleet.NewPerson(s.Config)
	require.NoError(t, err)
	return s
}

// names returns the clusters whose agents join.
func (s *scene) names() []string {
	out := make([]string, size)
	for i := range out {
		out[i] = fmt.Sprintf("c-%d", i)
	}
	return out
}

func (s *scene) cluster(name string) *clusterv1.ManagedCluster {
	s.t.Helper()
	mc, err := typed.Get[clusterv1.ManagedCluster](s.t.Context(), s.dyn, clusters, "", name)
	require.NoError(s.t, err)
	return mc
}

func (s *scene) renewed(name string) time.Time {
	s.t.Helper()
	lease, err := typed.Get[coordinationv1.Lease](s.t.Context(), s.dyn, leases, name, clusterv1.LeaseName)
	require.NoError(s.t, err)
	return lease.Spec.RenewTime.Time
}

// shorten makes the agent of a cluster renew every second.
func (s *scene) shorten(name string) {
	s.t.Helper()
	_, err := s.dyn.Resource(clusters).Patch(s.t.Context(), name, types.MergePatchType, []byte(`{"spec":{"leaseDurationSeconds":1}}`), metav1.PatchOptions{})
	require.NoError(s.t, err)
}

func available(mc *clusterv1.ManagedCluster) bool {
	return apimeta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ConditionAvailable)
}

func TestSimulatedAgentsOfARealHub(t *testing.T) {
	s := newScene(t)
	t.Run("agents join as ocm-agent does", s.joins)
	t.Run("works are reported, and cleaned up", s.works)
	t.Run("add-ons get their certificates and are reported", s.addOns)
	t.Run("agents come and go", s.churns)
	t.Run("a cluster without an agent becomes unknown", s.leaves)
	t.Run("an agent without a certificate keeps a cluster that is accepted", s.attaches)
}

func (s *scene) joins(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	letting := make(chan error, 1)
	go func() { letting <- s.person.AcceptAll(ctx, 2) }()
	names := s.names()
	require.NoError(t, s.fleet.Prepare(names[0]))
	joined := make(chan error, len(names))
	for _, name := range names {
		go func() { joined <- s.fleet.Join(ctx, name) }()
	}
	for range names {
		require.NoError(t, <-joined)
	}
	cancel()
	require.NoError(t, <-letting)

	mc := s.cluster("c-1")
	require.True(t, available(mc))
	require.NotEmpty(t, mc.Status.Capacity)
	require.ErrorContains(t, s.fleet.Join(t.Context(), "c-1"), "joining cluster c-1")
	require.Equal(t, len(names), s.fleet.Size())
	counts := s.fleet.Counts()
	n := int64(len(names))
	require.Equal(t, n, counts[fakefleet.Request{Method: "POST", Resource: "managedclusters", Code: 201}])
	require.Equal(t, n, counts[fakefleet.Request{Method: "PATCH", Resource: "managedclusters/status", Code: 200}])
	require.Equal(t, n, s.person.Counts()[fakefleet.Request{Method: "PUT", Resource: "certificatesigningrequests/approval", Code: 200}])

	s.shorten("c-0")
	first := s.renewed("c-0")
	read := s.fleet.Counts()[fakefleet.Request{Method: "GET", Resource: "leases", Code: 200}]
	require.Eventually(t, func() bool { return s.renewed("c-0").After(first) }, patience, tick)
	require.Equal(t, read, s.fleet.Counts()[fakefleet.Request{Method: "GET", Resource: "leases", Code: 200}], "a renewal reads the lease")
}

// create creates an object from its JSON form.
func (s *scene) create(resource schema.GroupVersionResource, text string, args ...any) {
	s.t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(s.t, u.UnmarshalJSON(fmt.Appendf(nil, text, args...)))
	_, err := s.dyn.Resource(resource).Namespace(u.GetNamespace()).Create(s.t.Context(), u, metav1.CreateOptions{})
	require.NoError(s.t, err)
}

func (s *scene) works(t *testing.T) {
	for _, name := range s.names() {
		s.create(works, `{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork","metadata":{"namespace":%q,"name":"web"},
			"spec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"web"}}]}}}`, name)
	}
	reported := func(name string, generation int64) func() bool {
		return func() bool {
			w, err := typed.Get[workv1.ManifestWork](t.Context(), s.dyn, works, name, "web")
			require.NoError(t, err)
			c := apimeta.FindStatusCondition(w.Status.Conditions, workv1.ConditionAvailable)
			return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == generation &&
				w.Status.ResourceStatus.Manifests[0].ResourceMeta.Resource == "configmaps" && slices.Contains(w.Finalizers, workv1.FinalizerManifestWork)
		}
	}
	for _, name := range s.names() {
		require.Eventually(t, reported(name, 1), patience, tick, name)
	}
	counts := s.fleet.Counts()
	require.Equal(t, int64(size), counts[fakefleet.Request{Method: "PATCH", Resource: "manifestworks", Code: 200}], "finalizers")
	require.Equal(t, int64(size), counts[fakefleet.Request{Method: "PATCH", Resource: "manifestworks/status", Code: 200}], "one status a work")
	require.Zero(t, counts[fakefleet.Request{Method: "PATCH", Resource: "manifestworks/status", Code: 409}], "acting on old events")

	changed := []byte(`{"spec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"other"}}]}}}`)
	_, err := s.dyn.Resource(works).Namespace("c-1").Patch(t.Context(), "web", types.MergePatchType, changed, metav1.PatchOptions{})
	require.NoError(t, err)
	require.Eventually(t, reported("c-1", 2), patience, tick)
	require.NoError(t, s.dyn.Resource(works).Namespace("c-2").Delete(t.Context(), "web", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool {
		_, err := s.dyn.Resource(works).Namespace("c-2").Get(t.Context(), "web", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, patience, tick, "the finalizer stays")
}

func (s *scene) addOns(t *testing.T) {
	s.create(templates, `{"apiVersion":"addon.open-cluster-management.io/v1alpha1","kind":"AddOnTemplate","metadata":{"name":"hello"},
		"spec":{"addonName":"hello","registration":[{"type":"KubeClient"}],"agentSpec":{"workload":{"manifests":[
		{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"hello"}}]}}}}`)
	s.create(definitions, `{"apiVersion":"addon.open-cluster-management.io/v1alpha1","kind":"ClusterManagementAddOn","metadata":{"name":"hello",
		"annotations":{"addon.open-cluster-management.io/lifecycle":"addon-manager"}},"spec":{"addOnMeta":{},"supportedConfigs":[
		{"group":"addon.open-cluster-management.io","resource":"addontemplates","defaultConfig":{"name":"hello"}}],"installStrategy":{"type":"Manual"}}}`)
	for _, name := range []string{"c-1", "c-2"} {
		s.create(addOns, `{"apiVersion":"addon.open-cluster-management.io/v1alpha1","kind":"ManagedClusterAddOn",
			"metadata":{"namespace":%q,"name":"hello"},"spec":{}}`, name)
	}
	for _, name := range []string{"c-1", "c-2"} {
		require.Eventually(t, func() bool {
			a, err := typed.Get[addonv1alpha1.ManagedClusterAddOn](t.Context(), s.dyn, addOns, name, "hello")
			require.NoError(t, err)
			for _, kind := range []string{
				addonv1alpha1.ConditionAvailable, addonv1alpha1.ConditionClusterCertificateRotated, addonv1alpha1.ConditionManifestApplied,
			} {
				if !apimeta.IsStatusConditionTrue(a.Status.Conditions, kind) {
					return false
				}
			}
			return true
		}, patience, tick, name)
	}
	require.Equal(t, int64(2), s.fleet.Counts()[fakefleet.Request{Method: "POST", Resource: "certificatesigningrequests", Code: 201}]-size,
		"one certificate an add-on")
}

func (s *scene) churns(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reads := fakefleet.Request{Method: "GET", Resource: "leases", Code: 200}
	before := s.fleet.Counts()[reads]
	type outcome struct {
		n   int
		err error
	}
	ended := make(chan outcome, 1)
	go func() {
		n, err := s.fleet.Churn(ctx, fakefleet.Churn{Every: 50 * time.Millisecond, Away: 10 * time.Millisecond})
		ended <- outcome{n, err}
	}()
	const some = 5
	require.Eventually(t, func() bool { return s.fleet.Counts()[reads] >= before+some }, patience, tick, "nobody comes back")
	cancel()
	got := <-ended
	require.NoError(t, got.err)
	require.GreaterOrEqual(t, got.n, some)
	require.Equal(t, size, s.fleet.Size())
	require.ErrorContains(t, s.fleet.Return(t.Context(), "c-1"), "has not left")
}

func (s *scene) leaves(t *testing.T) {
	s.fleet.Leave("c-0")
	require.Eventually(t, func() bool { return !available(s.cluster("c-0")) }, patience, tick, "a cluster without an agent stays available")
	require.NoError(t, s.fleet.Return(t.Context(), "c-0"))
	require.True(t, available(s.cluster("c-0")))
}

func (s *scene) attaches(t *testing.T) {
	u, err := typed.ToUnstructured(&clusterv1.ManagedCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "ManagedCluster"},
		ObjectMeta: metav1.ObjectMeta{Name: "d-0"}, Spec: clusterv1.ManagedClusterSpec{LeaseDurationSeconds: 1},
	})
	require.NoError(t, err)
	_, err = s.dyn.Resource(clusters).Create(t.Context(), u, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, s.person.Accept(t.Context(), "d-0"))
	require.Eventually(t, func() bool {
		return apimeta.IsStatusConditionTrue(s.cluster("d-0").Status.Conditions, clusterv1.ConditionHubAccepted)
	}, patience, tick)
	require.Eventually(t, func() bool {
		_, err := s.dyn.Resource(leases).Namespace("d-0").Get(t.Context(), clusterv1.LeaseName, metav1.GetOptions{})
		return err == nil
	}, patience, tick, "the hub makes no lease")
	require.NoError(t, s.fleet.Attach(t.Context(), "d-0"))
	require.True(t, available(s.cluster("d-0")))
	first := s.renewed("d-0")
	require.Eventually(t, func() bool { return s.renewed("d-0").After(first) }, patience, tick)
	require.ErrorContains(t, s.fleet.Attach(t.Context(), "d-0"), "d-0")
}

func TestAFleetWithoutAnAuthorityIsRefused(t *testing.T) {
	_, err := fakefleet.New(fakefleet.Options{Bootstrap: &rest.Config{Host: "https://127.0.0.1:1"}})
	require.ErrorContains(t, err, "no authority in CAData")
}
