// SPDX-License-Identifier: Apache-2.0

//go:build perf

package registration

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/fakefleet"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/audit"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/scene"
)

const (
	// path of the budgets.
	path = "../registration.yaml"
	// seed of all fleets.
	seed = 1
	// patienceEach is added to the patience for each cluster waited for.
	patienceEach = time.Second / 4
)

var (
	clusters = clusterv1.GroupVersion.WithResource("managedclusters")
	leases   = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
)

// run is a hub with a fleet.
type run struct {
	*scene.Scene
	t *testing.T
	// away is true while the API server is paused on purpose.
	away atomic.Bool
}

// newRun starts a hub whose audit log has every write, and every request for leases.
func newRun(t *testing.T) *run {
	t.Helper()
	return &run{Scene: scene.New(t, audit.OnlyResources, audit.Leases, audit.NotReads), t: t}
}

// fleet creates simulated agents. They use a bootstrap token or, when attached, the
// administrator's connection.
func (s *run) fleet() *fakefleet.Fleet {
	s.t.Helper()
	bootstrap := s.As(s.t, hub.Namespace, hub.BootstrapServiceAccount)
	bootstrap.CAData = s.Playground.CA
	f, err := fakefleet.New(fakefleet.Options{Bootstrap: bootstrap, Pool: s.Config, Seed: seed, Trouble: func(cluster string, err error) {
		if !s.away.Load() {
			s.t.Logf("agent of %s: %v", cluster, err)
		}
	}})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { require.NoError(s.t, f.Close()) })
	return f
}

func names(prefix string, n int) []string {
	out := make([]string, 0, n)
	for i := range n {
		out = append(out, fmt.Sprintf("%s-%04d", prefix, i))
	}
	return out
}

// each runs f for every name, several at a time.
func (s *run) each(names []string, f func(ctx context.Context, name string) error) {
	s.t.Helper()
	s.Each(0, len(names), func(ctx context.Context, i int) error { return f(ctx, names[i]) })
}

// create creates ManagedClusters as an agent's bootstrap identity does.
func (s *run) create(names []string) {
	s.t.Helper()
	bootstrap, err := dynamic.NewForConfig(s.As(s.t, hub.Namespace, hub.BootstrapServiceAccount))
	require.NoError(s.t, err)
	s.each(names, func(ctx context.Context, name string) error {
		u, err := typed.ToUnstructured(&clusterv1.ManagedCluster{
			TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "ManagedCluster"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       clusterv1.ManagedClusterSpec{ManagedClusterClientConfigs: []clusterv1.ClientConfig{{URL: "https://" + name + ".example:6443"}}},
		})
		if err != nil {
			return err
		}
		_, err = bootstrap.Resource(clusters).Create(ctx, u, metav1.CreateOptions{})
		return err
	})
}

// expect watches a kind until every name has been seen as wanted.
func (s *run) expect(resource schema.GroupVersionResource, o metav1.ListOptions, names []string, wanted func(object map[string]any) string) func() {
	s.t.Helper()
	open := map[string]bool{}
	for _, name := range names {
		open[name] = true
	}
	list, err := s.Dyn.Resource(resource).List(s.t.Context(), metav1.ListOptions{Limit: 1})
	require.NoError(s.t, err)
	o.ResourceVersion = list.GetResourceVersion()
	w, err := s.Dyn.Resource(resource).Watch(s.t.Context(), o)
	require.NoError(s.t, err)
	done := make(chan struct{})
	go func() {
		defer w.Stop()
		for event := range w.ResultChan() {
			if u, ok := event.Object.(interface{ UnstructuredContent() map[string]any }); ok {
				delete(open, wanted(u.UnstructuredContent()))
			}
			if len(open) == 0 {
				close(done)
				return
			}
		}
	}()
	return func() {
		s.t.Helper()
		select {
		case <-done:
		case <-time.After(scene.Patience + time.Duration(len(names))*patienceEach):
			require.FailNow(s.t, "timed out", "%d of %d %s are not as wanted", len(open), len(names), resource.Resource)
		}
	}
}

// acceptedName returns the name of a ManagedCluster that the hub has accepted.
func acceptedName(o map[string]any) string { return with(o, clusterv1.ConditionHubAccepted) }

func with(o map[string]any, condition string) string {
	raw, err := json.Marshal(o)
	if err != nil {
		return ""
	}
	mc := &clusterv1.ManagedCluster{}
	if json.Unmarshal(raw, mc) != nil || !apimeta.IsStatusConditionTrue(mc.Status.Conditions, condition) {
		return ""
	}
	return mc.Name
}

// leaseOf returns the name of the cluster of a lease.
func leaseOf(o map[string]any) string {
	meta, _ := o["metadata"].(map[string]any)
	if meta["name"] != clusterv1.LeaseName {
		return ""
	}
	name, _ := meta["namespace"].(string)
	return name
}
