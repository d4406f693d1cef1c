// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

func decisionOf(of schedule.Key, n int, clusters ...string) *clusterv1beta1.PlacementDecision {
	d := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: of.Namespace, Name: fmt.Sprintf("%s-decision-%d", of.Name, n),
		Labels: map[string]string{
			clusterv1beta1.LabelPlacement:          of.Name,
			clusterv1beta1.LabelDecisionGroupName:  "",
			clusterv1beta1.LabelDecisionGroupIndex: "0",
		},
	}}
	for _, name := range clusters {
		d.Status.Decisions = append(d.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: name})
	}
	return d
}

const (
	noSelect  = clusterv1.TaintEffectNoSelect
	prefer    = clusterv1.TaintEffectPreferNoSelect
	ifNew     = clusterv1.TaintEffectNoSelectIfNew
	exists    = clusterv1beta1.TolerationOpExists
	equal     = clusterv1beta1.TolerationOpEqual
	untouched = "AllDecisionsScheduled"
)

func tainted(taints ...clusterv1.Taint) func(*clusterv1.ManagedCluster) {
	return func(c *clusterv1.ManagedCluster) { c.Spec.Taints = taints }
}

func TestTaintsAndTolerations(t *testing.T) {
	type toleration = clusterv1beta1.Toleration
	taint := func(effect clusterv1.TaintEffect) []clusterv1.Taint {
		return []clusterv1.Taint{{Key: "key1", Value: "value1", Effect: effect}}
	}
	tolerate := func(of ...toleration) []toleration { return of }
	for name, tc := range map[string]struct {
		taints      []clusterv1.Taint
		tolerations []toleration
		selected    bool // before
		in          bool
	}{
		"NoSelect, no toleration": {taints: taint(noSelect)},
		"NoSelect, key and value": {
			taints:      taint(noSelect),
			tolerations: tolerate(toleration{Key: "key1", Operator: equal, Value: "value1"}),
			in:          true,
		},
		"NoSelect, no operator is Equal": {
			taints:      taint(noSelect),
			tolerations: tolerate(toleration{Key: "key1", Value: "value1"}),
			in:          true,
		},
		"NoSelect, no value": {
			taints:      taint(noSelect),
			tolerations: tolerate(toleration{Key: "key1", Operator: equal}),
		},
		"NoSelect, another key": {
			taints:      taint(noSelect),
			tolerations: tolerate(toleration{Key: "key2", Operator: equal, Value: "value1"}),
		},
		"NoSelect, another value": {
			taints:      taint(noSelect),
			tolerations: tolerate(toleration{Key: "key1", Operator: equal, Value: "value2"}),
		},
		"NoSelect, key exists": {
			taints:      taint(noSelect),
			tolerations: tolerate(toleration{Key: "key1", Operator: exists}),
			in:          true,
		},
		"NoSelect, any exists": {
			taints:      taint(noSelect),
			tolerations: tolerate(toleration{Operator: exists}),
			in:          true,
		},
		"NoSelect, another key exists": {
			taints:      taint(noSelect),
			tolerations: tolerate(toleration{Key: "key2", Operator: exists}),
		},
		"NoSelect, an unknown operator": {
			taints:      taint(noSelect),
			tolerations: tolerate(toleration{Key: "key1", Operator: "Odd", Value: "value1"}),
		},
		"NoSelect, selected before": {taints: taint(noSelect), selected: true},
		"empty values are equal": {
			taints:      []clusterv1.Taint{{Key: "key1", Effect: noSelect}},
			tolerations: tolerate(toleration{Key: "key1"}),
			in:          true,
		},
		"NoSelectIfNew, new":      {taints: taint(ifNew)},
		"NoSelectIfNew, selected": {taints: taint(ifNew), selected: true, in: true},
		"NoSelectIfNew, tolerated, new": {
			taints:      taint(ifNew),
			tolerations: tolerate(toleration{Key: "key1", Value: "value1"}),
			in:          true,
		},
		"NoSelectIfNew, tolerated, selected": {
			taints:      taint(ifNew),
			tolerations: tolerate(toleration{Key: "key1", Value: "value1"}),
			selected:    true,
			in:          true,
		},
		"NoSelectIfNew, not tolerated, new": {
			taints:      taint(ifNew),
			tolerations: tolerate(toleration{Key: "key1", Value: "value2"}),
		},
		"NoSelectIfNew, not tolerated, selected": {
			taints:      taint(ifNew),
			tolerations: tolerate(toleration{Key: "key1", Value: "value2"}),
			selected:    true,
			in:          true,
		},
		"NoSelectIfNew, another effect, selected": {
			taints:      taint(ifNew),
			tolerations: tolerate(toleration{Key: "key1", Value: "value1", Effect: noSelect}),
			selected:    true,
			in:          true,
		},
		"NoSelectIfNew, same effect": {
			taints:      taint(ifNew),
			tolerations: tolerate(toleration{Key: "key1", Value: "value1", Effect: ifNew}),
			in:          true,
		},
		"PreferNoSelect, no toleration": {taints: taint(prefer), in: true},
		"PreferNoSelect, tolerated": {
			taints:      taint(prefer),
			tolerations: tolerate(toleration{Key: "key1", Value: "value1"}),
			in:          true,
		},
		"PreferNoSelect, not tolerated": {
			taints:      taint(prefer),
			tolerations: tolerate(toleration{Key: "key2"}),
			in:          true,
		},
		"same effect": {
			taints:      taint(noSelect),
			tolerations: tolerate(toleration{Key: "key1", Value: "value1", Effect: noSelect}),
			in:          true,
		},
		"another effect": {
			taints:      taint(noSelect),
			tolerations: tolerate(toleration{Key: "key1", Value: "value1", Effect: prefer}),
		},
		"two taints, two tolerations": {
			taints:      append(taint(noSelect), clusterv1.Taint{Key: "key2", Effect: ifNew}),
			tolerations: tolerate(toleration{Key: "key1", Value: "value1"}, toleration{Key: "key2"}),
			in:          true,
		},
		"two taints, one toleration": {
			taints:      append(taint(noSelect), clusterv1.Taint{Key: "key2", Effect: noSelect}),
			tolerations: tolerate(toleration{Key: "key1", Value: "value1"}),
		},
		"seconds of a taint without time are over": {
			taints:      taint(noSelect),
			tolerations: tolerate(toleration{Operator: exists, TolerationSeconds: seconds(60)}),
		},
		"no seconds after some that are over": {
			taints:      taint(noSelect),
			tolerations: tolerate(toleration{Operator: exists, TolerationSeconds: seconds(60)}, toleration{Operator: exists}),
			in:          true,
		},
		"negative seconds": {
			taints:      aged(taint(noSelect), 0),
			tolerations: tolerate(toleration{Operator: exists, TolerationSeconds: seconds(-5)}),
		},
		"more seconds than a duration holds": {
			taints:      aged(taint(noSelect), 9),
			tolerations: tolerate(toleration{Operator: exists, TolerationSeconds: seconds(1 << 62)}),
			in:          true,
		},
		"seconds count for NoSelectIfNew too": {
			taints:      aged(taint(ifNew), 11),
			tolerations: tolerate(toleration{Operator: exists, TolerationSeconds: seconds(10)}),
		},
		"an effect that nobody knows keeps out": {taints: taint("Odd")},
		"seconds that a selected NoSelectIfNew outlives": {
			taints:      aged(taint(ifNew), 11),
			tolerations: tolerate(toleration{Operator: exists, TolerationSeconds: seconds(10)}),
			selected:    true,
			in:          true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := fleet(0)
			s.SetCluster(clusterOf("c1", tainted(tc.taints...)))
			s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{Tolerations: tc.tolerations}))
			if tc.selected {
				s.SetDecision(decisionOf(key, 1, "c1"))
			}
			r := s.Decide(key, now)
			require.Equal(t, "False", string(r.Misconfigured.Status), r.Misconfigured.Message)
			report := s.Explain(key, now).Clusters[0]
			if tc.in {
				require.Equal(t, []string{"c1"}, names(r))
				require.Equal(t, untouched, r.Satisfied.Reason)
				require.Equal(t, "selected: rank 1 of 1, 1 are wanted", report.Reason)
				return
			}
			require.Empty(t, names(r))
			require.Equal(t, "NoManagedClusterMatched", r.Satisfied.Reason)
			require.Contains(t, r.Satisfied.Message, "1 match the predicates, kept out by key")
			require.Contains(t, report.Reason, "taint key")
		})
	}
}

func aged(taints []clusterv1.Taint, seconds int) []clusterv1.Taint {
	taints[0].TimeAdded = &metav1.Time{Time: now.Add(-time.Duration(seconds) * time.Second)}
	return taints
}

func seconds(n int64) *int64 { return &n }

// A toleration of ten seconds holds while the taint is younger, and the placement is
// decided again when the first toleration ends.
func TestTolerationsEnd(t *testing.T) {
	s := fleet(0)
	for i, age := range []int{8, 9, 10} {
		s.SetCluster(clusterOf(fmt.Sprintf("c%d", i+1), tainted(aged([]clusterv1.Taint{{
			Key:    "k",
			Effect: noSelect,
		}}, age)...)))
	}
	s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{
		Tolerations: []clusterv1beta1.Toleration{{Key: "k", Operator: exists, TolerationSeconds: seconds(10)}},
	}))
	r := s.Decide(key, now)
	require.Equal(t, []string{"c1", "c2"}, names(r))
	require.Equal(t, now.Add(time.Second), r.LookAgain)
	reports := s.Explain(key, now).Clusters
	require.Equal(t, "selected: rank 1 of 2, 2 are wanted", reports[0].Reason)
	require.Equal(t, now.Add(2*time.Second), reports[0].Taints[0].Until.Time)
	require.Equal(t, "taint k:NoSelect is tolerated by tolerations[0] until 2026-11-22T12:00:02Z", reports[0].Taints[0].Reason)
	require.Equal(t, "taint k:NoSelect was tolerated until 2026-11-22T12:00:00Z", reports[2].Reason)

	r = s.Decide(key, now.Add(time.Second))
	require.Equal(t, []string{"c1"}, names(r))
	require.Equal(t, now.Add(2*time.Second), r.LookAgain)
	r = s.Decide(key, now.Add(2*time.Second))
	require.Empty(t, names(r))
	require.True(t, r.LookAgain.IsZero())
}

// PreferNoSelect without toleration ranks after all others, whatever the score.
func TestPreferNoSelectIsLast(t *testing.T) {
	s := fleet(3)
	s.SetCluster(clusterOf("c1", tainted(clusterv1.Taint{Key: "k", Effect: prefer})))
	s.SetDecision(decisionOf(key, 1, "c1")) // Steady is for it
	s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{NumberOfClusters: number(2)}))
	require.Equal(t, []string{"c2", "c3"}, names(s.Decide(key, now)))
	require.Equal(
		t,
		"rank 3 of 3, and 2 are wanted; taint k:PreferNoSelect is not tolerated: the cluster is taken after all others",
		s.Explain(key, now).Clusters[0].Reason,
	)
	s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{NumberOfClusters: number(3)}))
	require.Equal(t, []string{"c1", "c2", "c3"}, names(s.Decide(key, now)), "it is better than none")
	s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{NumberOfClusters: number(1), Tolerations: []clusterv1beta1.Toleration{
		{Key: "k", Operator: exists},
	}}))
	require.Equal(t, []string{"c1"}, names(s.Decide(key, now)), "tolerated, it counts as any other")
}

// Two taints on three clusters: reasons name the taints, with how many clusters each
// keeps out.
func TestTheReasonNamesTaints(t *testing.T) {
	s := fleet(0)
	s.SetCluster(clusterOf("c1", tainted(clusterv1.Taint{Key: "away", Effect: noSelect})))
	s.SetCluster(clusterOf("c2", tainted(clusterv1.Taint{Key: "away", Effect: noSelect}, clusterv1.Taint{Key: "soft", Effect: prefer})))
	s.SetCluster(clusterOf("c3", tainted(clusterv1.Taint{Key: "gpu", Effect: ifNew})))
	s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{}))
	require.Equal(t, "Every matching ManagedCluster has a taint that is not tolerated: 3 match the predicates, kept out by away (2), gpu (1)",
		s.Decide(key, now).Satisfied.Message)
}
