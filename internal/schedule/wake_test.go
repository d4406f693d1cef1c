// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// offices is a fleet of the sets a (by label of the set), v (by a label) and g
// (everything), and the namespaces n1, bound to all of them, and n2, bound to a
// only. In both are a placement of any set and one of each.
func offices() *schedule.Scheduler {
	s := schedule.New()
	s.SetClusterSet(setOf("a"))
	s.SetClusterSet(selecting("v", &metav1.LabelSelector{MatchLabels: map[string]string{"vendor": "v"}}))
	s.SetClusterSet(selecting("g", &metav1.LabelSelector{}))
	s.SetCluster(clusterOf("c1", inSet("a")))
	for namespace, bound := range map[string][]string{"n1": {"a", "v", "g"}, "n2": {"a"}} {
		for _, set := range bound {
			s.SetBinding(bindingOf(namespace, set))
		}
		for name, sets := range map[string][]string{"any": nil, "of-a": {"a"}, "of-v": {"v"}, "of-g": {"g"}} {
			p := placementOf(clusterv1beta1.PlacementSpec{ClusterSets: sets})
			p.Namespace, p.Name = namespace, name
			s.SetPlacement(p)
		}
	}
	woken(s)
	return s
}

// woken decides the placements that a change wakes, and returns their names.
func woken(s *schedule.Scheduler) []string {
	out := []string{}
	for _, k := range s.Take() {
		s.Decide(k, now)
		out = append(out, k.String())
	}
	return out
}

func TestSetsAndBindingsWakeThePlacementsThatUseThem(t *testing.T) {
	badSet := selecting("v", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "k", Operator: "Odd"},
	}})
	other := selecting("v", &metav1.LabelSelector{MatchLabels: map[string]string{"vendor": "other"}})
	for what, tc := range map[string]struct {
		change func(*schedule.Scheduler)
		want   []string
	}{
		"a set that goes": {func(s *schedule.Scheduler) { s.DeleteClusterSet("g") }, []string{"n1/any", "n1/of-g"}},
		"the last set of a namespace goes": {
			func(s *schedule.Scheduler) { s.DeleteClusterSet("a") },
			[]string{"n1/any", "n1/of-a", "n2/any", "n2/of-a", "n2/of-g", "n2/of-v"},
		},
		"a set by label that goes": {
			func(s *schedule.Scheduler) { s.DeleteClusterSet("v") },
			[]string{"n1/any", "n1/of-v"},
		},
		"a set that nobody knows goes": {func(s *schedule.Scheduler) { s.DeleteClusterSet("unknown") }, []string{}},
		"a set that selects others": {
			func(s *schedule.Scheduler) { s.SetClusterSet(other) },
			[]string{"n1/any", "n1/of-v"},
		},
		"a set whose selector cannot be read": {
			func(s *schedule.Scheduler) { s.SetClusterSet(badSet) },
			[]string{"n1/any", "n1/of-v"},
		},
		"a set that is bound nowhere": {func(s *schedule.Scheduler) { s.SetClusterSet(setOf("new")) }, []string{}},
		"a binding that goes": {
			func(s *schedule.Scheduler) { s.DeleteBinding(schedule.Key{Namespace: "n1", Name: "v"}) },
			[]string{"n1/any", "n1/of-v"},
		},
		"a binding that comes": {
			func(s *schedule.Scheduler) { s.SetBinding(bindingOf("n2", "v")) },
			[]string{"n2/any", "n2/of-v"},
		},
		"a binding in a namespace with nothing": {
			func(s *schedule.Scheduler) { s.SetBinding(bindingOf("n3", "v")) },
			[]string{},
		},
		"a binding that nobody knows goes": {
			func(s *schedule.Scheduler) { s.DeleteBinding(schedule.Key{Namespace: "n2", Name: "z"}) },
			[]string{},
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := offices()
			tc.change(s)
			require.Equal(t, tc.want, woken(s))
		})
	}
}

func TestClustersWakeThePlacementsOfTheirSets(t *testing.T) {
	everywhere := []string{"n1/any", "n1/of-a", "n1/of-g", "n1/of-v", "n2/any", "n2/of-a"}
	inA := []string{"n1/any", "n1/of-a", "n1/of-g", "n2/any", "n2/of-a"}
	for what, tc := range map[string]struct {
		change func(*schedule.Scheduler)
		want   []string
	}{
		"one that comes, in three sets": {
			func(s *schedule.Scheduler) { s.SetCluster(clusterOf("c2", inSet("a"), labelled("vendor", "v"))) },
			everywhere,
		},
		"one that comes, in one set": {
			func(s *schedule.Scheduler) { s.SetCluster(clusterOf("c2", inSet("none"))) },
			[]string{"n1/any", "n1/of-g"},
		},
		"one that joins a set by label": {
			func(s *schedule.Scheduler) { s.SetCluster(clusterOf("c1", inSet("a"), labelled("vendor", "v"))) },
			[]string{"n1/any", "n1/of-v"},
		},
		"one that moves from set to set": {
			func(s *schedule.Scheduler) { s.SetCluster(clusterOf("c1", inSet("b"), labelled("vendor", "v"))) },
			[]string{"n1/any", "n1/of-a", "n1/of-v", "n2/any", "n2/of-a"},
		},
		"one that goes": {func(s *schedule.Scheduler) { s.DeleteCluster("c1") }, inA},
		"one that begins to go": {
			func(s *schedule.Scheduler) { s.SetCluster(clusterOf("c1", inSet("a"), deleting)) },
			inA,
		},
		"one that nobody knows goes": {func(s *schedule.Scheduler) { s.DeleteCluster("c9") }, []string{}},
		"a label that no placement looks at": {
			func(s *schedule.Scheduler) { s.SetCluster(clusterOf("c1", inSet("a"), labelled("unread", "x"))) },
			[]string{},
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := offices()
			tc.change(s)
			require.Equal(t, tc.want, woken(s))
		})
	}
}

func deleting(c *clusterv1.ManagedCluster) { c.DeletionTimestamp = &metav1.Time{Time: now} }

// A score wakes the placements that name its resource and can select its cluster.
func TestScoresWakeThePlacementsThatReadThem(t *testing.T) {
	s := offices()
	s.SetBinding(bindingOf("n3", "v"))
	for _, namespace := range []string{"n1", "n2", "n3"} {
		for name, resource := range map[string]string{"reads": "usage", "reads-other": "other"} {
			p := placementOf(clusterv1beta1.PlacementSpec{PrioritizerPolicy: policy(exact, addOn(resource, "score", 1))})
			p.Namespace, p.Name = namespace, name
			s.SetPlacement(p)
		}
	}
	woken(s)
	s.SetScore(scoreOf("c1", "usage", 5, nil))
	require.Equal(t, []string{"n1/reads", "n2/reads"}, woken(s), "n3 is bound to a set without the cluster")
	s.SetScore(scoreOf("nobody", "usage", 5, nil))
	require.Empty(t, woken(s), "there is no such cluster")
	s.DeleteScore(schedule.Key{Namespace: "c1", Name: "usage"})
	require.Equal(t, []string{"n1/reads", "n2/reads"}, woken(s))
}
