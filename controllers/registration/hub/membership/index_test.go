// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
)

func clusterWith(name string, labels map[string]string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func exclusive(name string, namespaces ...string) *clusterv1beta2.ManagedClusterSet {
	set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, ns := range namespaces {
		set.Spec.ManagedNamespaces = append(set.Spec.ManagedNamespaces, clusterv1.ManagedNamespaceConfig{Name: ns})
	}
	return set
}

func selecting(name string, s *metav1.LabelSelector, namespaces ...string) *clusterv1beta2.ManagedClusterSet {
	set := exclusive(name, namespaces...)
	set.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{
		SelectorType:  clusterv1beta2.SelectorTypeLabelSelector,
		LabelSelector: s,
	}
	return set
}

func matching(pairs ...string) *metav1.LabelSelector {
	s := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		s.MatchLabels[pairs[i]] = pairs[i+1]
	}
	return s
}

func bindingOf(namespace, name, set string) *clusterv1beta2.ManagedClusterSetBinding {
	b := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	b.Spec.ClusterSet = set
	return b
}

func inSet(name string, more ...string) map[string]string {
	labels := matching(more...).MatchLabels
	labels[clusterv1.LabelClusterSet] = name
	return labels
}

func TestMembersFollowLabelsSelectorsAndSets(t *testing.T) {
	x := newIndex()
	x.Cluster(nil, clusterWith("c1", inSet("blue", "env", "dev")))
	x.Cluster(nil, clusterWith("c2", inSet("blue", "env", "prod")))
	x.Cluster(nil, clusterWith("c3", nil))
	for _, set := range []*clusterv1beta2.ManagedClusterSet{
		exclusive("blue"), exclusive("red"), selecting("dev", matching("env", "dev")),
		selecting("all", &metav1.LabelSelector{}), selecting("none", nil),
		selecting(
			"not-prod",
			&metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: "env", Operator: "NotIn", Values: []string{"prod"}},
				},
			},
		),
		selecting(
			"broken",
			&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Likes"}}},
		),
	} {
		x.Set(nil, set)
	}
	want := func(sets map[string][]string) {
		t.Helper()
		for set, members := range sets {
			require.Equal(t, members, x.Members(set), set)
			n, _ := x.Size(set)
			require.Equal(t, len(members), n)
		}
	}
	want(map[string][]string{
		"blue": {
			"c1",
			"c2",
		}, "red": {}, "dev": {
			"c1",
		}, "all": {
			"c1",
			"c2",
			"c3",
		}, "none": {}, "not-prod": {
			"c1",
			"c3",
		}, "broken": {}, "unknown": {},
	})
	_, invalid := x.Size("broken")
	require.ErrorContains(t, invalid, `spec.clusterSelector.labelSelector.matchExpressions[0].operator`)

	x.Cluster(nil, clusterWith("c1", inSet("red", "env", "prod")))
	want(map[string][]string{"blue": {"c2"}, "red": {"c1"}, "dev": {}, "not-prod": {"c3"}, "all": {"c1", "c2", "c3"}})
	x.Set(nil, selecting("red", matching("env", "prod")))
	want(map[string][]string{"red": {"c1", "c2"}})
	x.Set(nil, exclusive("dev"))
	x.Cluster(nil, clusterWith("c3", inSet("dev")))
	want(map[string][]string{"dev": {"c3"}})
	x.Cluster(clusterWith("c2", nil), nil)
	want(map[string][]string{"blue": {}, "red": {"c1"}, "all": {"c1", "c3"}})
	x.Set(exclusive("all"), nil)
	want(map[string][]string{"all": {}})
	x.Set(nil, selecting("broken", &metav1.LabelSelector{}))
	want(map[string][]string{"broken": {"c1", "c3"}})
	_, invalid = x.Size("broken")
	require.NoError(t, invalid)
}

// TestTheIndexAgreesWithACountFromScratch applies random events and compares the index with
// the result of a scan.
func TestTheIndexAgreesWithACountFromScratch(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable, and no secret
	x := newIndex()
	clusters, sets := map[string]*clusterv1.ManagedCluster{}, map[string]*clusterv1beta2.ManagedClusterSet{}
	selectors := []*metav1.LabelSelector{nil, {}, matching("a", "1"), matching("a", "1", "b", "2"), {
		MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "a", Operator: "DoesNotExist"}, {Key: "b", Operator: "In", Values: []string{"1", "2"}},
		},
	}}
	for range 4000 {
		name, set := fmt.Sprintf("c%d", random.IntN(8)), fmt.Sprintf("s%d", random.IntN(5))
		switch random.IntN(6) {
		case 0:
			if have := clusters[name]; have != nil {
				x.Cluster(have, nil)
				delete(clusters, name)
			}
		case 1:
			if have := sets[set]; have != nil {
				x.Set(have, nil)
				delete(sets, set)
			}
		case 2:
			sets[set] = exclusive(set)
			x.Set(nil, sets[set])
		case 3:
			sets[set] = selecting(set, selectors[random.IntN(len(selectors))])
			x.Set(nil, sets[set])
		default:
			labels := map[string]string{}
			for _, key := range []string{"a", "b"} {
				if v := random.IntN(3); v > 0 {
					labels[key] = fmt.Sprint(v)
				}
			}
			labels[clusterv1.LabelClusterSet] = fmt.Sprintf("s%d", random.IntN(5))
			clusters[name] = clusterWith(name, labels)
			x.Cluster(nil, clusters[name])
		}
		for set, object := range sets {
			require.Equal(t, scan(t, object, clusters), x.Members(set))
		}
	}
	for name, c := range clusters {
		x.Cluster(c, nil)
		delete(clusters, name)
	}
	for _, s := range sets {
		x.Set(s, nil)
	}
	require.Empty(t, x.labelled)
	require.Empty(t, x.asking)
}

func scan(t *testing.T, set *clusterv1beta2.ManagedClusterSet, clusters map[string]*clusterv1.ManagedCluster) []string {
	t.Helper()
	out := []string{}
	for name, c := range clusters {
		if set.Spec.ClusterSelector.SelectorType == "" {
			if c.Labels[clusterv1.LabelClusterSet] == set.Name {
				out = append(out, name)
			}
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(set.Spec.ClusterSelector.LabelSelector)
		require.NoError(t, err)
		if selector.Matches(labelSet(c.Labels)) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// TestAnEventCostsWhatItTouches counts how often a selector is evaluated against a cluster,
// with 4,000 clusters and 100 sets.
func TestAnEventCostsWhatItTouches(t *testing.T) {
	const clusters, sets = 4000, 100
	x := newIndex()
	var told [][2]string
	x.Listen(Listener{Member: func(set, cluster string) { told = append(told, [2]string{set, cluster}) }})
	for i := range sets / 2 {
		x.Set(nil, exclusive(fmt.Sprintf("exclusive-%d", i)))
		x.Set(nil, selecting(fmt.Sprintf("selecting-%d", i), matching(fmt.Sprintf("team-%d", i), "yes")))
	}
	name := func(i int) string { return fmt.Sprintf("c%04d", i) }
	for i := range clusters {
		x.Cluster(
			nil, clusterWith(name(i), inSet(fmt.Sprintf("exclusive-%d", i%50), fmt.Sprintf("team-%d", i%50), "yes")),
		)
	}
	for what, tc := range map[string]struct {
		event     func()
		evaluated int
		told      int
	}{
		"a label that one selector asks for": {
			func() { x.Cluster(nil, clusterWith(name(7), inSet("exclusive-7", "team-7", "no"))) }, 1, 1,
		},
		"a label that no selector asks for": {
			func() { x.Cluster(nil, clusterWith(name(8), inSet("exclusive-8", "team-8", "yes", "other", "x"))) }, 0, 0,
		},
		"a move to another exclusive set": {
			func() { x.Cluster(nil, clusterWith(name(9), inSet("exclusive-10", "team-9", "yes"))) }, 0, 2,
		},
		"an object whose labels are the same": {
			func() { x.Cluster(nil, clusterWith(name(11), inSet("exclusive-11", "team-11", "yes"))) }, 0, 0,
		},
		"a set whose selector is the same": {
			func() { x.Set(nil, selecting("selecting-12", matching("team-12", "yes"), "ns")) }, 0, 0,
		},
		"a new exclusive set": {func() { x.Set(nil, exclusive("new")) }, 0, 0},
		"a new cluster is evaluated against every selector once": {
			func() { x.Cluster(nil, clusterWith("new", inSet("exclusive-1"))) }, sets / 2, 1,
		},
		"a new selector is evaluated against every cluster once": {
			func() { x.Set(nil, selecting("new-selecting", matching("team-20", "yes"))) }, clusters, clusters / 50,
		},
	} {
		// Only the last two change the number of clusters and selectors.
		x.evaluated, told = 0, nil
		tc.event()
		require.InDelta(t, tc.evaluated, x.evaluated, 1, what)
		require.Len(t, told, tc.told, what)
	}
}

func TestBindingsReachClusters(t *testing.T) {
	x := newIndex()
	var told [][2]string
	x.Listen(Listener{Binding: func(ns, set string) { told = append(told, [2]string{ns, set}) }})
	x.Cluster(nil, clusterWith("c1", inSet("blue")))
	x.Cluster(nil, clusterWith("c2", inSet("red")))
	x.Set(nil, exclusive("blue"))
	x.Set(nil, selecting("all", &metav1.LabelSelector{}))
	x.Binding(nil, bindingOf("n1", "blue", "blue"))
	x.Binding(nil, bindingOf("n1", "all", "all"))
	x.Binding(nil, bindingOf("n2", "blue", "blue"))
	x.Binding(nil, bindingOf("n3", "red", "red"))
	x.Binding(nil, bindingOf("n4", "blue", "all"))
	require.Equal(t, []string{"n1", "n2"}, x.Reaching("c1"))
	require.Equal(t, []string{"n1"}, x.Reaching("c2"), "the set red does not exist")
	require.Equal(t, []string{"c1", "c2"}, x.Reached("n1"))
	require.Empty(t, x.Reached("n4"), "the binding's name is not that of its set")
	require.True(t, x.Reaches("n2", "c1"))
	require.False(t, x.Reaches("n2", "c2"))
	require.False(t, x.Reaches("n1", "unknown"))
	require.Empty(t, x.Reaching("unknown"))
	require.Equal(t, []string{"n3"}, x.Bound("red"))

	x.Set(nil, exclusive("red"))
	require.Equal(t, []string{"n1", "n3"}, x.Reaching("c2"))
	going := bindingOf("n1", "all", "all")
	going.DeletionTimestamp = &metav1.Time{}
	x.Binding(nil, going)
	require.Equal(t, []string{"n3"}, x.Reaching("c2"))
	x.Binding(bindingOf("n2", "blue", "blue"), nil)
	require.False(t, x.Reaches("n2", "c1"))
	before := len(told)
	x.Binding(bindingOf("n2", "blue", "blue"), nil)
	require.Len(t, told, before, "an event that changes nothing calls no listener")
	require.Equal(t, 6, before)
}

func TestNamespacesAreThoseOfAllSetsInOrder(t *testing.T) {
	x := newIndex()
	var told []string
	x.Listen(Listener{Namespaces: func(set string) { told = append(told, set) }})
	x.Cluster(nil, clusterWith("c1", inSet("b")))
	x.Set(nil, exclusive("b", "two", "one", "two"))
	x.Set(nil, selecting("a", &metav1.LabelSelector{}, "one"))
	entry := func(set, name string) clusterv1.ClusterSetManagedNamespace {
		return clusterv1.ClusterSetManagedNamespace{
			ClusterSet:             set,
			ManagedNamespaceConfig: clusterv1.ManagedNamespaceConfig{Name: name},
		}
	}
	require.Equal(
		t, []clusterv1.ClusterSetManagedNamespace{entry("a", "one"), entry("b", "one"), entry("b", "two")},
		x.Managed("c1"),
	)
	require.Equal(t, []string{"b", "a"}, told)
	going := exclusive("b", "two", "one")
	going.DeletionTimestamp = &metav1.Time{}
	x.Set(nil, going)
	require.Equal(
		t, []clusterv1.ClusterSetManagedNamespace{entry("a", "one")}, x.Managed("c1"),
		"a set being deleted wants nothing",
	)
	require.Equal(t, []string{"b", "a", "b"}, told)
	require.Equal(t, []string{"c1"}, x.Members("b"), "its members stay until it is gone")
	require.Nil(t, x.Managed("unknown"))
}

func TestSetsTellOfTheirPresence(t *testing.T) {
	x := newIndex()
	var presence, objects []string
	x.Listen(Listener{
		Presence: func(set string) { presence = append(presence, set) },
		Object:   func(set string) { objects = append(objects, set) },
	})
	x.Set(nil, exclusive("s"))
	x.Set(nil, exclusive("s"))
	going := exclusive("s")
	going.DeletionTimestamp = &metav1.Time{}
	x.Set(nil, going)
	x.Set(going, nil)
	x.Set(going, nil)
	require.Equal(t, []string{"s", "s", "s"}, presence)
	require.Equal(t, []string{"s", "s", "s", "s"}, objects)
	x.Cluster(clusterWith("unknown", nil), nil)
}

func BenchmarkOneLabelOfOneCluster(b *testing.B) {
	x := newIndex()
	for i := range 50 {
		x.Set(nil, exclusive(fmt.Sprintf("exclusive-%d", i)))
		x.Set(nil, selecting(fmt.Sprintf("selecting-%d", i), matching(fmt.Sprintf("team-%d", i), "yes")))
	}
	for i := range 4000 {
		x.Cluster(
			nil,
			clusterWith(
				fmt.Sprintf("c%04d", i), inSet(fmt.Sprintf("exclusive-%d", i%50), fmt.Sprintf("team-%d", i%50), "yes"),
			),
		)
	}
	a, c := clusterWith(
		"c0007", inSet("exclusive-7", "team-7", "yes"),
	), clusterWith("c0007", inSet("exclusive-7", "team-7", "no"))
	b.ReportAllocs()
	for b.Loop() {
		x.Cluster(a, c)
		x.Cluster(c, a)
	}
}
