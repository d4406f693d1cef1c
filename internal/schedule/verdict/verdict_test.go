// SPDX-License-Identifier: Apache-2.0

package verdict_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule/verdict"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
)

// objects are decision objects given as "number index name: clusters".
func objects(texts ...string) []*clusterv1beta1.PlacementDecision {
	var out []*clusterv1beta1.PlacementDecision
	for _, text := range texts {
		head, members, _ := strings.Cut(text, ":")
		words := append(strings.Fields(head), "")
		d := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
			Name: "p-decision-" + words[0],
			Labels: map[string]string{
				clusterv1beta1.LabelDecisionGroupIndex: words[1], clusterv1beta1.LabelDecisionGroupName: words[2]},
		}}
		for _, name := range strings.Fields(members) {
			d.Status.Decisions = append(d.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: name})
		}
		out = append(out, d)
	}
	return out
}

// report returns a report that selects clusters in groups given as "name: clusters".
func report(texts ...string) *schedule.Report {
	r := &schedule.Report{}
	for _, text := range texts {
		name, members, _ := strings.Cut(text, ":")
		g := schedule.Group{Name: name}
		for _, c := range strings.Fields(members) {
			g.Clusters = append(g.Clusters, clusterv1beta1.ClusterDecision{ClusterName: c})
		}
		r.Result.Groups = append(r.Result.Groups, g)
	}
	return r
}

func TestDecisionsAreComparedByClustersGroupsAndOrder(t *testing.T) {
	none := []string{}
	for what, tc := range map[string]struct {
		live    []*clusterv1beta1.PlacementDecision
		wanted  *schedule.Report
		byScore bool
		want    verdict.Live
	}{
		"the same": {objects("2 1 :c3", "1 0 canary: c1 c2"), report("canary: c2 c1", ": c3"), false,
			verdict.Live{
				Clusters: []string{"c1", "c2", "c3"},
				Groups:   []verdict.Group{{"canary", []string{"c1", "c2"}}, {"", []string{"c3"}}},
				Same:     true,
				Added:    none,
				Removed:  none,
			}},
		"nothing at all": {
			nil,
			report(":"),
			false,
			verdict.Live{Clusters: none, Groups: []verdict.Group{}, Same: true, Added: none, Removed: none},
		},
		"one more and one less": {
			objects("1 0 : c1 c2"),
			report(": c2 c3"),
			false,
			verdict.Live{
				Clusters: []string{"c1", "c2"},
				Groups:   []verdict.Group{{"", []string{"c1", "c2"}}},
				Added:    []string{"c3"},
				Removed:  []string{"c1"},
			},
		},
		"in another group": {objects("1 0 : c1 c2", "2 1 : c3"), report(": c1", ": c2 c3"), false,
			verdict.Live{
				Clusters: []string{"c1", "c2", "c3"},
				Groups:   []verdict.Group{{"", []string{"c1", "c2"}}, {"", []string{"c3"}}},
				Added:    none,
				Removed:  none,
				Moved:    []string{"c2"},
			}},
		"in a group of another name": {
			objects("1 0 old: c1"),
			report("new: c1"),
			false,
			verdict.Live{
				Clusters: []string{"c1"},
				Groups:   []verdict.Group{{"old", []string{"c1"}}},
				Added:    none,
				Removed:  none,
				Moved:    []string{"c1"},
			},
		},
		"in two objects": {objects("1 0 : c1", "2 1 : c1 c2"), report(": c1", ": c2"), false,
			verdict.Live{
				Clusters: []string{"c1", "c2"},
				Groups:   []verdict.Group{{"", []string{"c1"}}, {"", []string{"c1", "c2"}}},
				Added:    none,
				Removed:  none,
				Moved:    []string{"c1"},
			}},
		"in an order that does not count": {
			objects("2 0 : c1", "10 0 : c2"),
			report(": c2 c1"),
			false,
			verdict.Live{
				Clusters: []string{"c1", "c2"},
				Groups:   []verdict.Group{{"", []string{"c1", "c2"}}},
				Same:     true,
				Added:    none,
				Removed:  none,
			},
		},
		"in another order of scores": {
			objects("10 0 : c1", "2 0 : c2"),
			report(": c1 c2"),
			true,
			verdict.Live{
				Clusters:  []string{"c1", "c2"},
				Groups:    []verdict.Group{{"", []string{"c2", "c1"}}},
				Added:     none,
				Removed:   none,
				Reordered: true,
			},
		},
		"in the order of scores": {
			objects("10 0 : c1", "2 0 : c2"),
			report(": c2 c1"),
			true,
			verdict.Live{
				Clusters: []string{"c1", "c2"},
				Groups:   []verdict.Group{{"", []string{"c2", "c1"}}},
				Same:     true,
				Added:    none,
				Removed:  none,
			},
		},
	} {
		t.Run(what, func(t *testing.T) {
			p := &clusterv1beta1.Placement{}
			if tc.byScore {
				p.Spec.SortBy = clusterv1beta1.SortByScore
			}
			require.Equal(t, tc.want, verdict.Of(p, tc.wanted, tc.live).Live)
		})
	}
}

// The fields of the API's debug endpoint: remaining clusters by name after the
// predicates, in the order of rank after the taints, scores by prioritizer, sums in
// descending order.
func TestTheFieldsOfTheDebugEndpoint(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := schedule.New()
	s.SetClusterSet(&clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "s"}})
	s.SetBinding(&clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"},
		Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: "s"},
	})
	for _, name := range []string{"c1", "c2", "c3", "c4", "c5"} {
		c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{
			Name:   name,
			Labels: map[string]string{clusterv1.LabelClusterSet: "s", "in": "yes"},
		}}
		switch name {
		case "c4":
			c.Labels["in"] = "no"
		case "c5":
			c.Spec.Taints = []clusterv1.Taint{{Key: "k", Effect: clusterv1.TaintEffectNoSelect}}
		}
		s.SetCluster(c)
	}
	for _, d := range objects("1 0 : c1 c2") {
		d.Namespace, d.Name = "elsewhere", "other"
		s.SetDecision(d)
	}
	one := int32(1)
	p := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns",
		Name:      "p",
		Labels:    map[string]string{"a": "b"},
	}}
	p.Spec.NumberOfClusters = &one
	p.Spec.Predicates = make([]clusterv1beta1.ClusterPredicate, 1)
	p.Spec.Predicates[0].RequiredClusterSelector.LabelSelector.MatchLabels = map[string]string{"in": "yes"}
	s.SetPlacement(p)
	r := s.Explain(schedule.Key{Namespace: "ns", Name: "p"}, at)
	e := verdict.Of(p, &r, nil)
	require.Equal(t, verdict.Metadata{Name: "p", Namespace: "ns", Labels: map[string]string{
		"a": "b",
	}}, e.Placement.Metadata)
	require.Equal(
		t,
		[]verdict.Filtered{
			{Name: "Predicate", FilteredClusters: []string{"c1", "c2", "c3", "c5"}},
			{Name: "Predicate,TaintToleration", FilteredClusters: []string{"c3", "c1", "c2"}},
		},
		e.FilteredPipelineResults,
	)
	require.Equal(t, []verdict.Prioritized{
		{Name: "Balance", Weight: 1, Scores: map[string]int64{"c1": -100, "c2": -100, "c3": 100}},
		{Name: "Steady", Weight: 1, Scores: map[string]int64{"c1": 0, "c2": 0, "c3": 0}},
	}, e.PrioritizeResults)
	require.Equal(t, []verdict.Aggregated{{
		ClusterName: "c3",
		Score:       100,
	}, {
		ClusterName: "c1",
		Score:       -100,
	}, {
		ClusterName: "c2",
		Score:       -100,
	}}, e.AggregatedScores)
	require.Equal(t, []string{"c3"}, e.Selected)

	s.DeleteBinding(schedule.Key{Namespace: "ns", Name: "s"})
	r = s.Explain(schedule.Key{Namespace: "ns", Name: "p"}, at)
	e = verdict.Of(p, &r, nil)
	require.Empty(t, e.FilteredPipelineResults, "without a binding there is nothing to filter")
	require.Empty(t, e.AggregatedScores)
}
