// SPDX-License-Identifier: Apache-2.0

//go:build perf

package placement

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/audit"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/memory"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/budget"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/scene"
)

const (
	// path of the budgets.
	path = "../placement.yaml"
	// window is how long the hub is observed at rest, which starts after a time quiet
	// without requests.
	window, quiet = 15 * time.Second, 2 * time.Second
	// many is the number of placements.
	many = 1000
	// tolerant lets placements select clusters that are not accepted.
	tolerant = `"tolerations":[{"key":"cluster.open-cluster-management.io/unreachable","operator":"Exists"}]`
)

var (
	clusters   = clusterv1.GroupVersion.WithResource("managedclusters")
	placements = clusterv1beta1.GroupVersion.WithResource("placements")
	sets       = clusterv1beta2.GroupVersion.WithResource("managedclustersets")
	bindings   = clusterv1beta2.GroupVersion.WithResource("managedclustersetbindings")
)

// run is a hub with a fleet.
type run struct {
	*scene.Scene
	t *testing.T
}

// grow creates clusters, with the status that agents report.
func (s *run) grow(from, to int) {
	s.t.Helper()
	s.Each(from, to, func(ctx context.Context, i int) error {
		name := fmt.Sprintf("c-%05d", i)
		mc, err := scene.Object(
			`{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster","metadata":{"name":%q,"labels":{"region":"r%d","vendor":"v%d"}}}`,
			name, i%12, i%3,
		)
		if err != nil {
			return err
		}
		if _, err := s.Dyn.Resource(clusters).Create(ctx, mc, metav1.CreateOptions{}); err != nil {
			return err
		}
		body := fmt.Appendf(nil, `{"status":{"version":{"kubernetes":"v1.36.3"},
			"capacity":{"cpu":"%[1]d","memory":"%[1]dGi","pods":"330"},"allocatable":{"cpu":"%[1]d","memory":"%[1]dGi","pods":"330"},
			"clusterClaims":[{"name":"id.k8s.io","value":"%[2]s-id"},{"name":"region","value":"r%[3]d"}]}}`, 8+i%64, name, i%12)
		_, err = s.Dyn.Resource(clusters).Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{}, "status")
		return err
	})
}

// rest waits until the sets report their number of clusters, which they do at most once
// in ten seconds, and the hub has nothing more to send.
func (s *run) rest(clusters int) {
	s.t.Helper()
	want := fmt.Sprintf("%d ManagedClusters selected", clusters)
	for _, name := range []string{clusterv1beta2.DefaultClusterSet, clusterv1beta2.GlobalClusterSet} {
		require.Eventually(s.t, func() bool {
			set, err := s.Dyn.Resource(sets).Get(s.t.Context(), name, metav1.GetOptions{})
			require.NoError(s.t, err)
			conditions, _, err := unstructured.NestedSlice(set.Object, "status", "conditions")
			require.NoError(s.t, err)
			return slices.ContainsFunc(conditions, func(c any) bool {
				condition, _ := c.(map[string]any)
				return condition["message"] == want
			})
		}, scene.Patience, time.Second, "set %s", name)
	}
	s.Settle(quiet)
}

// decided creates placements and returns how long it takes until each reports that all
// its decisions are written.
func (s *run) decided(names []string, spec string) time.Duration {
	s.t.Helper()
	api := s.Dyn.Resource(placements).Namespace("default")
	have := map[string]bool{}
	return s.Until(api, "", func() {
		s.Each(0, len(names), func(ctx context.Context, i int) error {
			return s.Create(
				ctx, placements,
				`{"apiVersion":"cluster.open-cluster-management.io/v1beta1","kind":"Placement","metadata":{"namespace":"default","name":%q},"spec":%s}`,
				names[i], spec,
			)
		})
	}, func(u *unstructured.Unstructured) bool {
		p, err := typed.FromUnstructured[clusterv1beta1.Placement](u)
		require.NoError(s.t, err)
		for _, c := range p.Status.Conditions {
			if c.Reason == clusterv1beta1.ReasonAllDecisionsScheduled && slices.Contains(names, p.Name) {
				have[p.Name] = true
			}
		}
		return len(have) >= len(names)
	})
}

func TestPlacementsAreDecidedWithinTheirBudgets(t *testing.T) {
	b := budget.Open(t, path)
	s := &run{Scene: scene.New(t, audit.OnlyResources, audit.NotWatches, audit.NotLeases), t: t}
	puts := budget.LeasePuts(t, s.Config)
	binding, err := scene.Object(
		`{"apiVersion":"cluster.open-cluster-management.io/v1beta2","kind":"ManagedClusterSetBinding","metadata":{"name":"default"},"spec":{"clusterSet":"default"}}`,
	)
	require.NoError(t, err)
	_, err = s.Dyn.Resource(bindings).Namespace("default").Create(t.Context(), binding, metav1.CreateOptions{})
	require.NoError(t, err)
	s.grow(0, 1000)
	s.rest(1000)
	t.Logf("1,000 clusters: %s", s.Memory())
	names := make([]string, many)
	for i := range names {
		names[i] = fmt.Sprintf("p-%04d", i)
	}
	b.Time("thousand", []time.Duration{s.decided(names, `{"numberOfClusters":10,`+tolerant+`}`)}, puts)
	s.Settle(quiet)
	t.Logf("1,000 placements: %s", s.Memory())

	s.grow(1000, 4000)
	s.rest(4000)
	t.Logf("4,000 clusters: %s", s.Memory())
	from := s.Mark()
	b.Time("large", []time.Duration{s.decided([]string{"all"}, `{`+tolerant+`}`)}, puts)
	s.Settle(quiet)
	b.Count("largeWrites", s.Sum("written", s.Asked(from)))
	from = s.Mark()
	<-time.After(window)
	b.Count("requestsAtRest", s.Sum("at rest", s.Asked(from)))
	b.Memory("memory", s.Memory())
	s.backUp(b, "backup", puts)
	if !testing.Short() {
		s.grow(4000, 10000)
		s.rest(10000)
		<-time.After(window)
		b.Memory("memoryLarge", s.Memory())
		s.backUp(b, "backupLarge", puts)
	}
	b.Complete()
}

// backUp saves the hub to a file.
func (s *run) backUp(b *budget.File, name string, puts time.Duration) {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "hub.jsonl")
	took, most := s.Plugin("hub", "backup", file)
	info, err := os.Stat(file)
	require.NoError(s.t, err)
	s.t.Logf("%s: a file of %s", name, memory.MiB(info.Size()))
	b.Time(name, []time.Duration{took}, puts)
	b.Memory(name+"Memory", most)
}
