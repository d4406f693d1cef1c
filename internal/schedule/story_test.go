// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// settled decides the placement until its decisions are carried out, and returns its
// groups.
func settled(s *schedule.Scheduler) []string {
	r := s.Decide(key, now)
	for i := range r.Groups {
		d := decisionOf(key, i+1)
		for _, c := range r.Groups[i].Clusters {
			d.Status.Decisions = append(d.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: c.ClusterName, Score: c.Score})
		}
		s.SetDecision(d)
	}
	for i := len(r.Groups); i < 10; i++ {
		s.DeleteDecision(schedule.Key{Namespace: key.Namespace, Name: decisionOf(key, i+1).Name})
	}
	return groupsOf(r)
}

func TestTaintsLeaveTheOthersIn(t *testing.T) {
	s := fleet(0)
	s.SetCluster(clusterOf("c1", tainted(clusterv1.Taint{Key: "key1", Value: "value1", Effect: noSelect})))
	s.SetCluster(clusterOf("c2", tainted(clusterv1.Taint{Key: "key2", Value: "value2", Effect: noSelect})))
	s.SetCluster(clusterOf("c3"))
	s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{
		NumberOfClusters: number(3),
		Tolerations:      []clusterv1beta1.Toleration{{Key: "key1", Operator: exists}},
	}))
	r := s.Decide(key, now)
	require.Equal(t, []string{"c1", "c3"}, names(r))
	require.Equal(t, 1, r.Unscheduled)
	s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{
		Tolerations: []clusterv1beta1.Toleration{{
			Key:      "key1",
			Operator: exists,
		}, {
			Key:      "key2",
			Operator: equal,
			Value:    "value2",
		}},
	}))
	require.Equal(t, []string{"c1", "c2", "c3"}, names(s.Decide(key, now)))

	s.SetCluster(clusterOf("c4", tainted(clusterv1.Taint{Key: "key1", Effect: prefer})))
	s.SetCluster(clusterOf("c2", tainted(clusterv1.Taint{Key: "key1", Effect: ifNew})))
	s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{Tolerations: []clusterv1beta1.Toleration{
		{Key: "key1", Operator: exists, Effect: prefer},
	}}))
	require.Equal(t, []string{": c3 c4"}, settled(s), "an effect that does not agree tolerates nothing")
	s.SetCluster(clusterOf("c3", tainted(clusterv1.Taint{Key: "key1", Effect: ifNew})))
	require.Equal(t, []string{": c3 c4"}, settled(s), "who is selected stays with NoSelectIfNew")
}

// Groups of two with a named one, while clusters come and go.
func TestGroupsFollowTheirClusters(t *testing.T) {
	s := fleet(0)
	canary := labelled("canary", "true")
	for _, name := range []string{"c1", "c2"} {
		s.SetCluster(clusterOf(name, canary))
	}
	for _, name := range []string{"c3", "c4", "c5"} {
		s.SetCluster(clusterOf(name))
	}
	s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{DecisionStrategy: grouped(2, groupBy("canary", "canary", "true"))}))
	require.Equal(t, []string{"canary: c1 c2", ": c3 c4", ": c5"}, settled(s))
	s.DeleteCluster("c1")
	s.DeleteCluster("c3")
	require.Equal(t, []string{"canary: c2", ": c4 c5"}, settled(s))
	s.SetCluster(clusterOf("c6", canary))
	require.Equal(t, []string{"canary: c2 c6", ": c4 c5"}, settled(s))
	s.SetCluster(clusterOf("c7"))
	require.Equal(t, []string{"canary: c2 c6", ": c4 c5", ": c7"}, settled(s))
	for _, name := range []string{"c2", "c4", "c5", "c6", "c7"} {
		s.DeleteCluster(name)
	}
	require.Equal(t, []string{":"}, settled(s))
}

// machines are c0 to c2 with CPU 10, 7, 9 and memory 50, 90, 80.
func machines() *schedule.Scheduler {
	s := fleet(0)
	for name, of := range map[string][2]string{"c0": {"10", "50"}, "c1": {"7", "90"}, "c2": {"9", "80"}} {
		s.SetCluster(clusterOf(name, amounts(clusterv1.ResourceCPU, of[0]), amounts(clusterv1.ResourceMemory, of[1])))
	}
	return s
}

func TestRanksFollowResourcesAndDecisions(t *testing.T) {
	two := func(p clusterv1beta1.PrioritizerPolicy) *clusterv1beta1.Placement {
		return placementOf(clusterv1beta1.PlacementSpec{NumberOfClusters: number(2), PrioritizerPolicy: p})
	}
	better := clusterOf("c3", amounts(clusterv1.ResourceCPU, "10"), amounts(clusterv1.ResourceMemory, "100"))
	both := []clusterv1beta1.PrioritizerConfig{builtIn("ResourceAllocatableCPU", 1), builtIn("ResourceAllocatableMemory", 1)}
	s := machines()
	s.SetPlacement(two(clusterv1beta1.PrioritizerPolicy{}))
	require.Equal(t, []string{": c0 c1"}, groupsOf(s.Decide(key, now)), "by name, where nothing else counts")
	s.SetPlacement(two(policy(exact, both...)))
	require.Equal(t, []string{": c0 c2"}, settled(s))
	s.SetCluster(better)
	require.Equal(t, []string{": c2 c3"}, groupsOf(s.Decide(key, now)))
	s.DeleteCluster("c3")
	require.Equal(t, []string{": c0 c2"}, groupsOf(s.Decide(key, now)))

	s.SetPlacement(two(policy(additive, append(both, builtIn("Steady", 3))...)))
	s.SetCluster(better)
	s.SetDecision(foreign(1, "c1"))
	require.Equal(t, []string{": c0 c2"}, settled(s), "Steady holds them")

	s = machines()
	s.SetDecision(foreign(1, "c0"))
	s.SetPlacement(two(policy(exact, builtIn("Balance", 2), builtIn("ResourceAllocatableCPU", 1))))
	require.Equal(t, []string{": c1 c2"}, settled(s), "c0 is used elsewhere")
}

func TestRanksFollowScores(t *testing.T) {
	s := machines()
	s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{
		NumberOfClusters:  number(2),
		ScoreRateLimit:    "0s",
		PrioritizerPolicy: policy(exact, addOn("usage", "score", 1)),
	}))
	require.Equal(t, []string{": c0 c1"}, settled(s), "without scores by name")
	for name, value := range map[string]int32{"c0": 80, "c1": 90, "c2": 100} {
		s.SetScore(scoreOf(name, "usage", value, nil))
	}
	require.Equal(t, []string{": c1 c2"}, settled(s))
	s.SetScore(scoreOf("c0", "usage", 100, nil))
	require.Equal(t, []string{": c0 c2"}, settled(s))
}
