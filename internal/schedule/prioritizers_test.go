// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

const (
	exact    = clusterv1beta1.PrioritizerPolicyModeExact
	additive = clusterv1beta1.PrioritizerPolicyModeAdditive
)

func builtIn(name string, weight int32) clusterv1beta1.PrioritizerConfig {
	return clusterv1beta1.PrioritizerConfig{ScoreCoordinate: &clusterv1beta1.ScoreCoordinate{Type: "BuiltIn", BuiltIn: name}, Weight: &weight}
}

func addOn(resource, score string, weight int32) clusterv1beta1.PrioritizerConfig {
	return clusterv1beta1.PrioritizerConfig{Weight: &weight, ScoreCoordinate: &clusterv1beta1.ScoreCoordinate{
		Type: "AddOn", AddOn: &clusterv1beta1.AddOnScore{ResourceName: resource, ScoreName: score},
	}}
}

func policy(mode clusterv1beta1.PrioritizerPolicyMode, of ...clusterv1beta1.PrioritizerConfig) clusterv1beta1.PrioritizerPolicy {
	return clusterv1beta1.PrioritizerPolicy{Mode: mode, Configurations: of}
}

func amounts(name clusterv1.ResourceName, amount string) func(*clusterv1.ManagedCluster) {
	return func(c *clusterv1.ManagedCluster) {
		if c.Status.Allocatable == nil {
			c.Status.Allocatable, c.Status.Capacity = clusterv1.ResourceList{}, clusterv1.ResourceList{}
		}
		c.Status.Allocatable[name], c.Status.Capacity[name] = resource.MustParse(amount), resource.MustParse("1000")
	}
}

func scoreOf(cluster, name string, value int32, until *metav1.Time) *clusterv1alpha1.AddOnPlacementScore {
	return &clusterv1alpha1.AddOnPlacementScore{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name},
		Status: clusterv1alpha1.AddOnPlacementScoreStatus{
			ValidUntil: until,
			Scores:     []clusterv1alpha1.AddOnPlacementScoreItem{{Name: "score", Value: value}},
		},
	}
}

// scoresBy returns the scores of one prioritizer by cluster.
func scoresBy(t *testing.T, s *schedule.Scheduler, name string) []int64 {
	t.Helper()
	report := s.Explain(key, now)
	for _, p := range report.Prioritizers {
		if p.Name == name {
			var out []int64
			for _, c := range report.Clusters {
				require.Contains(t, c.Scores, name)
				out = append(out, c.Scores[name])
			}
			return out
		}
	}
	require.Fail(t, "there is no prioritizer of that name", name)
	return nil
}

// foreign returns a decision of another placement.
func foreign(n int, clusters ...string) *clusterv1beta1.PlacementDecision {
	return decisionOf(schedule.Key{Namespace: "elsewhere", Name: fmt.Sprint("other", n)}, 1, clusters...)
}

func TestScoresOfPrioritizers(t *testing.T) {
	with := func(of ...func(*schedule.Scheduler)) []func(*schedule.Scheduler) { return of }
	decision := func(d *clusterv1beta1.PlacementDecision) func(*schedule.Scheduler) {
		return func(s *schedule.Scheduler) { s.SetDecision(d) }
	}
	score := func(o *clusterv1alpha1.AddOnPlacementScore) func(*schedule.Scheduler) {
		return func(s *schedule.Scheduler) { s.SetScore(o) }
	}
	all := func(name clusterv1.ResourceName, of ...string) []func(*schedule.Scheduler) {
		var out []func(*schedule.Scheduler)
		for i, amount := range of {
			out = append(out, func(s *schedule.Scheduler) { s.SetCluster(clusterOf(fmt.Sprint("c", i+1), amounts(name, amount))) })
		}
		return out
	}
	past, future := &metav1.Time{Time: now.Add(-time.Second)}, &metav1.Time{Time: now.Add(time.Hour)}
	unlabelled := foreign(1, "c1")
	unlabelled.Labels = nil
	for name, tc := range map[string]struct {
		config clusterv1beta1.PrioritizerConfig
		given  []func(*schedule.Scheduler)
		want   []int64
	}{
		"Balance, no decisions": {builtIn("Balance", 1), nil, []int64{100, 100, 100}},
		"Balance, own decisions only": {
			builtIn("Balance", 1),
			with(decision(decisionOf(key, 1, "c1"))),
			[]int64{100, 100, 100},
		},
		"Balance, a foreign decision": {
			builtIn("Balance", 1),
			with(decision(foreign(1, "c1"))),
			[]int64{-100, 100, 100},
		},
		"Balance, a decision without label": {
			builtIn("Balance", 1),
			with(decision(unlabelled)),
			[]int64{-100, 100, 100},
		},
		"Balance, two foreign decisions": {
			builtIn("Balance", 1),
			with(decision(foreign(1, "c1", "c2")), decision(foreign(2, "c1", "c3"))),
			[]int64{-100, 0, 0},
		},
		"Balance, thirds": {
			builtIn("Balance", 1),
			with(decision(foreign(1, "c1", "c2")), decision(foreign(2, "c1", "c2")), decision(foreign(3, "c1", "c3"))),
			[]int64{-100, -32, 32},
		},
		"Balance, the most are own": {
			builtIn("Balance", 1),
			with(decision(foreign(1, "c1", "c2")), decision(decisionOf(key, 1, "c1", "c1"))),
			[]int64{-100, -100, 100},
		},
		"Balance, the fullest is no candidate": {
			builtIn("Balance", 1),
			with(decision(foreign(1, "away", "c1")), decision(foreign(2, "away"))),
			[]int64{0, 100, 100},
		},
		"Steady, nothing selected": {builtIn("Steady", 1), nil, []int64{0, 0, 0}},
		"Steady, one selected": {
			builtIn("Steady", 1),
			with(decision(decisionOf(key, 1, "c1"))),
			[]int64{100, 0, 0},
		},
		"Steady, two decisions": {
			builtIn("Steady", 1),
			with(decision(decisionOf(key, 1, "c1")), decision(decisionOf(key, 2, "c3"))),
			[]int64{100, 0, 100},
		},
		"memory": {
			builtIn("ResourceAllocatableMemory", 1),
			all(clusterv1.ResourceMemory, "20", "60", "100"),
			[]int64{-100, 0, 100},
		},
		"CPU": {
			builtIn("ResourceAllocatableCPU", 1),
			all(clusterv1.ResourceCPU, "10", "6", "2"),
			[]int64{100, 0, -100},
		},
		"memory, all equal": {
			builtIn("ResourceAllocatableMemory", 1),
			all(clusterv1.ResourceMemory, "60", "60", "60"),
			[]int64{100, 100, 100},
		},
		"CPU, all zero": {
			builtIn("ResourceAllocatableCPU", 1),
			all(clusterv1.ResourceCPU, "0", "0", "0"),
			[]int64{100, 100, 100},
		},
		"memory, no data": {builtIn("ResourceAllocatableMemory", 1), nil, []int64{0, 0, 0}},
		"CPU, no data of one": {
			builtIn("ResourceAllocatableCPU", 1),
			all(clusterv1.ResourceCPU, "10", "2"),
			[]int64{100, -100, 0},
		},
		"CPU is truncated towards zero": {
			builtIn("ResourceAllocatableCPU", 1),
			all(clusterv1.ResourceCPU, "0", "3", "7"),
			[]int64{-100, -14, 100},
		},
		"add-on, no scores": {addOn("test", "score", 1), nil, []int64{0, 0, 0}},
		"add-on, one score": {
			addOn("test", "score", 1),
			with(score(scoreOf("c1", "test", 30, nil))),
			[]int64{30, 0, 0},
		},
		"add-on, one expired": {
			addOn("test", "score", 1),
			with(score(scoreOf("c1", "test", 30, past)), score(scoreOf("c2", "test", 40, nil)), score(scoreOf("c3", "test", 50, future))),
			[]int64{0, 40, 50},
		},
		"add-on, all": {
			addOn("test", "score", 1),
			with(score(scoreOf("c1", "test", 30, nil)), score(scoreOf("c2", "test", 40, nil)), score(scoreOf("c3", "test", 50, nil))),
			[]int64{30, 40, 50},
		},
		"add-on, another name": {
			addOn("test", "other", 1),
			with(score(scoreOf("c1", "test", 30, nil))),
			[]int64{0, 0, 0},
		},
		"add-on, what no API server lets in is bounded": {
			addOn("test", "score", 1),
			with(score(scoreOf("c1", "test", 1<<30, nil)), score(scoreOf("c2", "test", -1<<30, nil))),
			[]int64{100, -100, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := fleet(3)
			for _, one := range tc.given {
				one(s)
			}
			s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{PrioritizerPolicy: policy(exact, tc.config)}))
			at := tc.config.ScoreCoordinate
			name := at.BuiltIn
			if at.AddOn != nil {
				name = "AddOn/" + at.AddOn.ResourceName + "/" + at.AddOn.ScoreName
			}
			require.Equal(t, tc.want, scoresBy(t, s, name))
		})
	}
}

func TestExpiredScoresAreToldOfAndWake(t *testing.T) {
	s := fleet(3)
	s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{NumberOfClusters: number(1), PrioritizerPolicy: policy(exact, addOn("test", "score", 1))}))
	s.SetScore(scoreOf("c2", "test", 40, &metav1.Time{Time: now.Add(time.Minute)}))
	r := s.Decide(key, now)
	require.Equal(t, []string{"c2"}, names(r))
	require.Equal(t, now.Add(time.Minute), r.LookAgain)
	r = s.Decide(key, now.Add(time.Minute))
	require.Equal(t, []string{"c1"}, names(r))
	require.Equal(t, []string{"AddOnPlacementScores c2/test expired"}, r.Warnings)
	require.Equal(t, "AllDecisionsScheduled", r.Satisfied.Reason, "a warning is no failure")
	s.Take()
	s.SetScore(scoreOf("c2", "test", 40, &metav1.Time{Time: now.Add(time.Hour)}))
	require.Equal(t, []schedule.Key{key}, s.Take(), "a score that had expired is good again")
	require.Equal(t, []string{"c2"}, names(s.Decide(key, now.Add(time.Minute))))
	s.SetScore(scoreOf("c2", "test", 40, &metav1.Time{Time: now.Add(2 * time.Hour)}))
	require.Empty(t, s.Take(), "one that is only refreshed before its end wakes nobody")
	s.SetScore(scoreOf("c2", "other", 40, nil))
	require.Empty(t, s.Take(), "nor does one that nobody reads")
	s.DeleteScore(schedule.Key{Namespace: "c2", Name: "test"})
	require.Equal(t, []schedule.Key{key}, s.Take())
}

func TestSelectionByScore(t *testing.T) {
	memory := []string{"100", "50", "0"}
	for name, tc := range map[string]struct {
		clusters  int
		wanted    int32
		policy    clusterv1beta1.PrioritizerPolicy
		decisions []*clusterv1beta1.PlacementDecision
		selected  []string
		missing   int
		totals    []int64
	}{
		"one cluster": {
			clusters: 1,
			wanted:   1,
			policy:   policy(additive),
			selected: []string{"c1"},
			totals:   []int64{100},
		},
		"one cluster, no mode":    {clusters: 1, wanted: 1, selected: []string{"c1"}, totals: []int64{100}},
		"three wanted, one there": {clusters: 1, wanted: 3, selected: []string{"c1"}, missing: 2, totals: []int64{100}},
		"those that are selected stay": {
			clusters:  3,
			wanted:    2,
			decisions: own("c1", "c2"),
			selected:  []string{"c1", "c2"},
			totals:    []int64{200, 200, 100},
		},
		"Additive adds to Balance and Steady": {
			clusters:  3,
			wanted:    2,
			policy:    policy(additive, builtIn("Balance", 3), builtIn("ResourceAllocatableMemory", 1), addOn("test", "score", 1)),
			decisions: own("c2"),
			selected:  []string{"c1", "c2"},
			totals:    []int64{430, 440, 250},
		},
		"Exact is nothing else": {
			clusters:  3,
			wanted:    2,
			policy:    policy(exact, builtIn("Balance", 3), builtIn("ResourceAllocatableMemory", 1)),
			decisions: own("c3"),
			selected:  []string{"c1", "c2"},
			totals:    []int64{400, 300, 200},
		},
		"four wanted, two there": {
			clusters:  2,
			wanted:    4,
			decisions: own("c1"),
			selected:  []string{"c1", "c2"},
			missing:   2,
			totals:    []int64{200, 100},
		},
		"foreign decisions move it": {
			clusters:  3,
			wanted:    1,
			decisions: []*clusterv1beta1.PlacementDecision{foreign(1, "c1", "c2")},
			selected:  []string{"c3"},
			totals:    []int64{-100, -100, 100},
		},
		"Steady keeps it": {
			clusters:  3,
			wanted:    1,
			decisions: append(own("c3"), foreign(1, "c2", "c3"), foreign(2, "c1", "c2")),
			selected:  []string{"c3"},
			totals:    []int64{0, -100, 100},
		},
		"the last entry of a name counts": {
			clusters: 3,
			wanted:   1,
			policy:   policy(exact, builtIn("ResourceAllocatableMemory", 5), builtIn("ResourceAllocatableMemory", -1)),
			selected: []string{"c3"},
			totals:   []int64{-100, 0, 100},
		},
		"equal add-on entries add up": {
			clusters: 3,
			wanted:   1,
			policy:   policy(exact, addOn("test", "score", 2), addOn("test", "score", 1)),
			selected: []string{"c3"},
			totals:   []int64{90, 120, 150},
		},
		"weight 0 is left out": {
			clusters:  3,
			wanted:    1,
			policy:    policy(additive, builtIn("Steady", 0), builtIn("Spread", 0)),
			decisions: own("c3"),
			selected:  []string{"c1"},
			totals:    []int64{100, 100, 100},
		},
		"none wanted": {clusters: 3, wanted: 0, selected: []string{}, totals: []int64{100, 100, 100}},
	} {
		t.Run(name, func(t *testing.T) {
			s := fleet(0)
			for i := range tc.clusters {
				s.SetCluster(clusterOf(fmt.Sprint("c", i+1), amounts(clusterv1.ResourceMemory, memory[i])))
				s.SetScore(scoreOf(fmt.Sprint("c", i+1), "test", int32(30+10*i), nil))
			}
			for _, d := range tc.decisions {
				s.SetDecision(d)
			}
			s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{NumberOfClusters: &tc.wanted, PrioritizerPolicy: tc.policy}))
			r := s.Decide(key, now)
			require.Equal(t, tc.selected, names(r))
			require.Equal(t, tc.missing, r.Unscheduled)
			var totals []int64
			for _, one := range s.Scores(key, now) {
				totals = append(totals, one.Score)
			}
			require.Equal(t, tc.totals, totals)
			switch {
			case tc.missing > 0:
				require.Equal(t, fmt.Sprintf("%d cluster decisions unscheduled", tc.missing), r.Satisfied.Message)
			case tc.wanted == 0:
				require.Equal(t, "No ManagedCluster is wanted: spec.numberOfClusters is 0, and 3 would fit", r.Satisfied.Message)
			default:
				require.Equal(t, "All cluster decisions scheduled", r.Satisfied.Message)
			}
		})
	}
}

func own(clusters ...string) []*clusterv1beta1.PlacementDecision {
	return []*clusterv1beta1.PlacementDecision{decisionOf(key, 1, clusters...)}
}

// If every cluster is selected, no score is computed unless a caller asks for it.
func TestScoresAreComputedWhereTheyMatter(t *testing.T) {
	s := fleet(3)
	s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{}))
	s.Decide(key, now)
	require.Zero(t, s.Counters().Scored)
	require.Len(t, s.Scores(key, now), 3)
	require.Equal(t, uint64(6), s.Counters().Scored)
}
