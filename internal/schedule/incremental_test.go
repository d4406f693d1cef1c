// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// TestAChangeWakesWhoReadsIt changes the parts of a cluster one by one, with a placement
// for each.
func TestAChangeWakesWhoReadsIt(t *testing.T) {
	var none clusterv1beta1.ClusterPredicate
	s := fleet(2)
	for name, spec := range map[string]clusterv1beta1.PlacementSpec{
		"plain":    {},
		"label":    {Predicates: all(byLabel("region", "1"))},
		"claim":    {Predicates: all(byClaim(none, "region", "1"))},
		"cpu":      {PrioritizerPolicy: policy(additive, builtIn("ResourceAllocatableCPU", 1))},
		"group":    {DecisionStrategy: grouped(nil, groupBy("first", "region", "1"))},
		"spread":   {SpreadPolicy: spreadPolicy(spreadBy("region", "Claim", 1, hard))},
		"celLabel": {Predicates: all(byCEL(none, `managedCluster.metadata.labels["region"] == "1"`))},
		"celHealth": {
			Predicates: all(byCEL(none, `managedCluster.status.conditions.exists(c, c.type == "Available" && c.status == "True")`)),
		},
		"celName":     {Predicates: all(byCEL(none, `managedCluster.metadata.name == "c1"`))},
		"celAnything": {Predicates: all(byCEL(none, `managedCluster.exists(k, k == "spec")`))},
		"elsewhere":   {ClusterSets: []string{"other"}, Predicates: all(byLabel("region", "1"))},
	} {
		p := placementOf(spec)
		p.Name = name
		s.SetPlacement(p)
	}
	decide := func() (woken []string) {
		for _, k := range s.Take() {
			woken = append(woken, k.Name)
			s.Decide(k, now)
		}
		return woken
	}
	decide()
	current := clusterOf("c1")
	for _, step := range []struct {
		name   string
		change func(*clusterv1.ManagedCluster)
		woken  []string
		// evaluations of predicates that follow
		evaluations uint64
	}{
		{"nothing", func(*clusterv1.ManagedCluster) {}, []string{"celAnything"}, 1},
		{"a heartbeat", func(c *clusterv1.ManagedCluster) {
			c.ResourceVersion = "2"
			c.Status.Conditions = []metav1.Condition{{Type: "Available", Status: "True"}}
		}, []string{"celAnything", "celHealth"}, 2},
		{"a label that is read", labelled("region", "1"), []string{"celAnything", "celLabel", "group", "label"}, 3},
		{"a label that nobody reads", labelled("unread", "1"), []string{"celAnything"}, 1},
		{"a claim", claiming("region", "1"), []string{"celAnything", "claim", "spread"}, 2},
		{"another claim", claiming("unread", "1"), []string{"celAnything"}, 1},
		{"CPU", amounts(clusterv1.ResourceCPU, "4"), []string{"celAnything", "cpu"}, 1},
		{"memory", func(c *clusterv1.ManagedCluster) {
			c.Status.Allocatable["memory"], c.Status.Capacity["memory"] = resource.MustParse("1"), resource.MustParse("1")
		}, []string{"celAnything"}, 1},
		{
			"acceptance",
			func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = true },
			[]string{"celAnything"},
			1,
		},
		{
			"a taint",
			tainted(clusterv1.Taint{Key: "k", Effect: noSelect}),
			[]string{
				"celAnything",
				"celHealth",
				"celLabel",
				"celName",
				"claim",
				"cpu",
				"group",
				"label",
				"plain",
				"spread",
			},
			1,
		},
		{
			"leaving the set",
			inSet("none"),
			[]string{
				"celAnything",
				"celHealth",
				"celLabel",
				"celName",
				"claim",
				"cpu",
				"group",
				"label",
				"plain",
				"spread",
			},
			0,
		},
		{"a change elsewhere", labelled("region", "2"), nil, 0},
		{
			"coming back",
			inSet("prod"),
			[]string{
				"celAnything",
				"celHealth",
				"celLabel",
				"celName",
				"claim",
				"cpu",
				"group",
				"label",
				"plain",
				"spread",
			},
			6,
		},
	} {
		current = current.DeepCopy()
		step.change(current)
		before := s.Counters().Evaluations
		s.SetCluster(current)
		require.Equal(t, step.woken, decide(), step.name)
		require.Equal(t, step.evaluations, s.Counters().Evaluations-before, step.name)
	}
}

// TestAHeartbeatCostsNothing is the common case: no placement reads conditions.
func TestAHeartbeatCostsNothing(t *testing.T) {
	s := crowd(100)
	s.Take()
	before := s.Counters()
	c := clusterOf("cluster00001", labelled("region", "1"), amounts(clusterv1.ResourceCPU, "1"), amounts(clusterv1.ResourceMemory, "1"))
	for i := range 10 {
		c = c.DeepCopy()
		c.ResourceVersion = fmt.Sprint(i)
		c.Status.Conditions = []metav1.Condition{{Type: "Available", Message: fmt.Sprint(i)}}
		s.SetCluster(c)
	}
	require.Empty(t, s.Take())
	require.Equal(t, before, s.Counters())
}

// TestAChangeCostsWhatItTouches counts evaluations: one for each placement that
// reads the label, however many clusters there are.
func TestAChangeCostsWhatItTouches(t *testing.T) {
	s := crowd(100)
	before := s.Counters().Evaluations
	s.SetCluster(clusterOf("cluster00001", labelled("region", "2")))
	woken := s.Take()
	require.Len(t, woken, 100)
	for _, k := range woken {
		s.Decide(k, now)
	}
	require.Equal(t, uint64(100), s.Counters().Evaluations-before)
}

// Balance counts the decisions of other placements when a placement is decided, and does
// not make one placement wake the next.
func TestDecisionsOfOthersWakeNobody(t *testing.T) {
	s := fleet(3)
	s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{NumberOfClusters: number(1)}))
	require.Equal(t, []string{"c1"}, names(s.Decide(key, now)))
	s.Take()
	s.SetDecision(foreign(1, "c1"))
	require.Empty(t, s.Take())
	require.Equal(t, []string{"c2"}, names(s.Decide(key, now)), "they count when it is decided next")
	s.SetDecision(decisionOf(key, 1, "c2"))
	require.Equal(t, []schedule.Key{key}, s.Take())
	again := decisionOf(key, 1, "c2")
	again.ResourceVersion = "2"
	s.SetDecision(again)
	require.Empty(t, s.Take(), "a decision that says the same wakes nobody")
}
