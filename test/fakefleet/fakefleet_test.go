// SPDX-License-Identifier: Apache-2.0

package fakefleet_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	hubconfig "github.com/kubectl-ocm/kubectl-ocm/config/hub"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/fakefleet"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

const (
	patience = 2 * time.Minute
	tick     = 50 * time.Millisecond
)

var (
	clusters = clusterv1.GroupVersion.WithResource("managedclusters")
	leases   = coordinationv1.SchemeGroupVersion.WithResource("leases")
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
	s.fleet, err = fakefleet.New(fakefleet.Options{Bootstrap: bootstrap, Pool: s.Config, Seed: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.fleet.Close()) })
	s.person, err = fakefleet.NewPerson(s.Config)
	require.NoError(t, err)
	return s
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
	t.Run("an agent joins as ocm-agent does", s.joins)
	t.Run("an agent without a certificate keeps a cluster that is accepted", s.attaches)
}

func (s *scene) joins(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	letting := make(chan error, 1)
	go func() { letting <- s.person.AcceptAll(ctx, 2) }()
	names := []string{"c-0", "c-1", "c-2"}
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

	s.fleet.Leave("c-0")
	require.Eventually(t, func() bool { return !available(s.cluster("c-0")) }, patience, tick, "a cluster without an agent stays available")
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
