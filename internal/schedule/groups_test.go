// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

func grouped(size any, of ...clusterv1beta1.DecisionGroup) clusterv1beta1.DecisionStrategy {
	s := clusterv1beta1.GroupStrategy{DecisionGroups: of}
	if size != nil {
		n := intstr.Parse(fmt.Sprint(size))
		if text, is := size.(string); is {
			n = intstr.FromString(text)
		}
		s.ClustersPerDecisionGroup = &n
	}
	return clusterv1beta1.DecisionStrategy{GroupStrategy: s}
}

func groupBy(name, label, value string) clusterv1beta1.DecisionGroup {
	g := clusterv1beta1.DecisionGroup{GroupName: name}
	if label != "" {
		g.GroupClusterSelector.LabelSelector.MatchLabels = map[string]string{label: value}
	}
	return g
}

// groupsOf returns the groups as text: name and clusters.
func groupsOf(r schedule.Result) []string {
	var out []string
	for _, g := range r.Groups {
		text := g.Name + ":"
		for _, c := range g.Clusters {
			text += " " + c.ClusterName
		}
		out = append(out, text)
	}
	return out
}

func TestGroups(t *testing.T) {
	claimed := groupBy("west", "cloud", "Amazon")
	claimed.GroupClusterSelector.ClaimSelector.MatchExpressions = []metav1.LabelSelectorRequirement{
		{Key: "region", Operator: metav1.LabelSelectorOpIn, Values: []string{"west"}},
	}
	for name, tc := range map[string]struct {
		strategy clusterv1beta1.DecisionStrategy
		want     []string
	}{
		"none":                  {grouped(nil), []string{": c1 c2 c3"}},
		"all of them":           {grouped("100%"), []string{": c1 c2 c3"}},
		"a typed client's zero": {grouped(0), []string{": c1 c2 c3"}},
		"a negative size":       {grouped(-1), []string{": c1 c2 c3"}},
		"more than there are":   {grouped(7), []string{": c1 c2 c3"}},
		"one each": {
			grouped(1, groupBy("canary", "cloud", "Amazon")),
			[]string{"canary: c1", "canary: c3", ": c2"},
		},
		"a quarter, rounded up": {grouped("25%"), []string{": c1", ": c2", ": c3"}},
		"a third and more":      {grouped("34%"), []string{": c1 c2", ": c3"}},
		"two groups take all": {
			grouped(nil, groupBy("amazon", "cloud", "Amazon"), groupBy("azure", "cloud", "Azure")),
			[]string{"amazon: c1 c3", "azure: c2"},
		},
		"the first group takes all": {
			grouped(nil, groupBy("all", "", ""), groupBy("azure", "cloud", "Azure")),
			[]string{"all: c1 c2 c3"},
		},
		"a group that nobody fits": {grouped(nil, groupBy("canary", "cloud", "none")), []string{": c1 c2 c3"}},
		"label and claim":          {grouped(nil, claimed), []string{"west: c3", ": c1 c2"}},
		"chunks of a group and a rest": {
			grouped(1, groupBy("azure", "cloud", "Azure")),
			[]string{"azure: c2", ": c1", ": c3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := threeClouds()
			s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{DecisionStrategy: tc.strategy}))
			require.Equal(t, tc.want, groupsOf(s.Decide(key, now)))
		})
	}
	s := fleet(0)
	s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{DecisionStrategy: grouped(1, groupBy("canary", "", ""))}))
	require.Equal(t, []string{":"}, groupsOf(s.Decide(key, now)), "nobody selected: one empty group")
}

func TestSortByScore(t *testing.T) {
	s := threeClouds()
	s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{
		SortBy: clusterv1beta1.SortByScore, DecisionStrategy: grouped(2), PrioritizerPolicy: policy(exact, addOn("test", "score", -1)),
	}))
	r := s.Decide(key, now)
	require.Equal(t, []string{": c3 c2", ": c1"}, groupsOf(r))
	require.Equal(t, int64(-90), *r.Groups[1].Clusters[0].Score)
}

// A placement with an invalid spec keeps its selected clusters while they are in a bound
// set.
func TestMisconfiguredPlacementsKeepTheirDecisions(t *testing.T) {
	s := fleet(3)
	s.SetDecision(decisionOf(key, 1, "c3", "gone"))
	second := decisionOf(key, 2, "c1")
	second.Labels[clusterv1beta1.LabelDecisionGroupName], second.Labels[clusterv1beta1.LabelDecisionGroupIndex] = "canary", "1"
	s.SetDecision(second)
	broken := clusterv1beta1.PlacementSpec{NumberOfClusters: number(-3), Tolerations: []clusterv1beta1.Toleration{
		{Operator: exists, Value: "x"},
	}}
	s.SetPlacement(placementOf(broken))
	r := s.Decide(key, now)
	require.True(t, r.Kept)
	require.Equal(t, []string{": c3", "canary: c1"}, groupsOf(r))
	require.Equal(t, "Misconfigured", r.Misconfigured.Reason)
	require.Equal(t, ":numberOfClusters is -3 (spec.numberOfClusters: use 0 or more, or leave it out for all clusters that fit); "+
		"TaintToleration:If the operator is Exists, the value should be empty. "+
		"(spec.tolerations[0].value: leave out the value, or use operator Equal)", r.Misconfigured.Message)
	require.Equal(t, "The placement is misconfigured: the last 2 cluster decisions are kept", r.Satisfied.Message)
	require.Equal(t, "NotAllDecisionsScheduled", r.Satisfied.Reason)
	require.Equal(t, int64(1), r.Misconfigured.ObservedGeneration)

	s.SetCluster(clusterOf("c3", inSet("other")))
	require.Equal(t, []string{"canary: c1"}, groupsOf(s.Decide(key, now)), "who leaves the set goes")
	s.DeleteDecision(schedule.Key{Namespace: "ns", Name: "p-decision-2"})
	r = s.Decide(key, now)
	require.Equal(t, []string{":"}, groupsOf(r))
	require.Equal(t, "NoManagedClusterMatched", r.Satisfied.Reason)
	s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{}))
	r = s.Decide(key, now)
	require.Equal(t, "Succeedconfigured", r.Misconfigured.Reason)
	require.Equal(t, "Placement configurations check pass", r.Misconfigured.Message)
	require.Equal(t, []string{"c1", "c2"}, names(r))
}

func TestPlacementsThatAreLeftAlone(t *testing.T) {
	s := fleet(1)
	require.Equal(t, schedule.SkipUnknown, s.Decide(key, now).Skip)
	p := placementOf(clusterv1beta1.PlacementSpec{})
	p.Annotations = map[string]string{clusterv1beta1.AnnotationSchedulingDisable: "true"}
	s.SetPlacement(p)
	require.Equal(t, schedule.SkipDisabled, s.Decide(key, now).Skip)
	p = p.DeepCopy()
	p.Annotations[clusterv1beta1.AnnotationSchedulingDisable] = "True"
	s.SetPlacement(p)
	require.Equal(t, schedule.SkipNone, s.Decide(key, now).Skip)
	p = p.DeepCopy()
	p.DeletionTimestamp = &metav1.Time{Time: now}
	s.SetPlacement(p)
	require.Equal(t, schedule.SkipDeleting, s.Decide(key, now).Skip)
}

// Scores alone change the decisions once per scoreRateLimit; any other change applies at
// once.
func TestScoreRateLimit(t *testing.T) {
	s := fleet(3)
	p := placementOf(clusterv1beta1.PlacementSpec{NumberOfClusters: number(1), ScoreRateLimit: "90s", PrioritizerPolicy: policy(exact, addOn("test", "score", 1))})
	p.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionSatisfied, ObservedGeneration: 1}}
	s.SetPlacement(p)
	s.SetDecision(decisionOf(key, 1, "c1"))
	s.SetScore(scoreOf("c2", "test", 50, nil))
	r := s.Decide(key, now)
	require.Equal(t, []string{"c2"}, names(r), "the first change is free")
	require.True(t, r.ScoreUpdate)

	p = p.DeepCopy()
	p.Status.LastScoreUpdateTime = &metav1.Time{Time: now}
	s.SetPlacement(p)
	s.SetDecision(decisionOf(key, 1, "c2"))
	r = s.Decide(key, now)
	require.False(t, r.ScoreUpdate, "nothing changes")
	s.SetScore(scoreOf("c3", "test", 60, nil))
	r = s.Decide(key, now.Add(time.Minute))
	require.True(t, r.Delayed)
	require.Equal(t, []string{"c2"}, names(r))
	require.Equal(t, now.Add(90*time.Second), r.LookAgain)
	require.Equal(t, "rank 2 of 3, and 1 are wanted; scores alone would change that, and scoreRateLimit holds it back until 2026-11-22T12:01:30Z",
		s.Explain(key, now.Add(time.Minute)).Clusters[1].Reason)
	require.Equal(t, []string{"c3"}, names(s.Decide(key, now.Add(90*time.Second))))

	s.SetCluster(clusterOf("c2", inSet("other")))
	require.Equal(t, []string{"c3"}, names(s.Decide(key, now)), "who is gone is replaced at once")
	s.SetCluster(clusterOf("c2"))
	changed := p.DeepCopy()
	changed.Generation = 2
	s.SetPlacement(changed)
	require.Equal(t, []string{"c3"}, names(s.Decide(key, now)), "and so is a changed spec followed")
}

// Decisions that others changed were never decided: scoreRateLimit does not protect them,
// and restoring them is not a score update.
func TestScoreRateLimitProtectsOnlyWhatWasDecided(t *testing.T) {
	s := fleet(3)
	p := placementOf(clusterv1beta1.PlacementSpec{NumberOfClusters: number(1), ScoreRateLimit: "1h", PrioritizerPolicy: policy(exact, addOn("test", "score", 1))})
	p.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionSatisfied, ObservedGeneration: 1}}
	p.Status.LastScoreUpdateTime = &metav1.Time{Time: now}
	s.SetPlacement(p)
	s.SetScore(scoreOf("c2", "test", 50, nil))
	s.SetDecision(decisionOf(key, 1, "c3"))
	r := s.Decide(key, now)
	require.True(t, r.Delayed)
	require.Equal(t, []string{"c3"}, names(r))
	r = s.DecideAnew(key, now)
	require.False(t, r.Delayed)
	require.False(t, r.ScoreUpdate)
	require.Equal(t, []string{"c2"}, names(r))
}

func TestStepsAreMeasuredOnceEach(t *testing.T) {
	s := fleet(3)
	ticks := now
	got := map[schedule.Step]int{}
	s.Measure(schedule.Stopwatch{
		Now: func() time.Time { ticks = ticks.Add(time.Second); return ticks },
		Took: func(step schedule.Step, took time.Duration) {
			got[step]++
			require.Positive(t, took)
		},
	})
	spec := clusterv1beta1.PlacementSpec{NumberOfClusters: number(1), PrioritizerPolicy: policy("", addOn("a", "x", 1), addOn("b", "y", 1))}
	spec.Predicates = []clusterv1beta1.ClusterPredicate{
		{
			RequiredClusterSelector: clusterv1beta1.ClusterSelector{
				CELSelector: clusterv1beta1.ClusterCELSelector{CELExpressions: []string{"true", "true"}},
			},
		},
	}
	s.SetPlacement(placementOf(spec))
	s.Decide(key, now)
	require.Equal(t, map[schedule.Step]int{
		{Kind: "filter", Name: "Predicate"}: 1, {Kind: "filter", Name: "TaintToleration"}: 1, {Kind: "cel"}: 3,
		{Kind: "prioritizer", Name: "Balance"}: 1, {Kind: "prioritizer", Name: "Steady"}: 1, {Kind: "prioritizer", Name: "AddOn"}: 2,
	}, got)
}
