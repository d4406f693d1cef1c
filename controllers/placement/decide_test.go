// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

// result selects clusters, in groups of the names given as "name: clusters".
func result(groups ...string) schedule.Result {
	r := schedule.Result{
		Generation: 3,
		Satisfied: metav1.Condition{
			Type:               clusterv1beta1.ConditionSatisfied,
			Status:             metav1.ConditionTrue,
			Reason:             clusterv1beta1.ReasonAllDecisionsScheduled,
			Message:            "All cluster decisions scheduled",
			ObservedGeneration: 3,
		},
		Misconfigured: metav1.Condition{
			Type:               clusterv1beta1.ConditionMisconfigured,
			Status:             metav1.ConditionFalse,
			Reason:             clusterv1beta1.ReasonSucceedconfigured,
			Message:            "Placement configurations check pass",
			ObservedGeneration: 3,
		},
	}
	for _, text := range groups {
		name, members, _ := strings.Cut(text, ":")
		g := schedule.Group{Name: name}
		for _, c := range strings.Fields(members) {
			g.Clusters = append(g.Clusters, clusterv1beta1.ClusterDecision{ClusterName: c})
			r.Selected++
		}
		r.Groups = append(r.Groups, g)
	}
	return r
}

func somePlacement() *clusterv1beta1.Placement {
	p := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "p", UID: "u", Generation: 3}}
	p.SetGroupVersionKind(clusterv1beta1.GroupVersion.WithKind("Placement"))
	return p
}

// writesOf returns the writes of a plan as "what name".
func writesOf(p reconcile.Plan) []string {
	var out []string
	for _, w := range p.Writes {
		what := "delete"
		switch w := w.(type) {
		case reconcile.Create:
			what = "create"
		case reconcile.Patch:
			what = strings.TrimSpace("patch " + w.Subresource)
		}
		out = append(out, what+" "+reconcile.TargetOf(w).Name)
	}
	return out
}

// carried is the state after a plan was executed.
func carried(s State, p reconcile.Plan) State {
	after := p.Object.(*clusterv1beta1.Placement)
	next := State{Placement: after, Result: s.Result, Now: s.Now.Add(time.Hour)}
	byName := map[string]*clusterv1beta1.PlacementDecision{}
	for _, d := range s.Decisions {
		byName[d.Name] = d.DeepCopy()
	}
	for _, w := range p.Writes {
		switch w := w.(type) {
		case reconcile.Create:
			d := w.Object.(*clusterv1beta1.PlacementDecision).DeepCopy()
			d.UID, d.ResourceVersion = "d", "1"
			byName[d.Name] = d
		case reconcile.Patch:
			if w.Subresource == "status" {
				byName[w.Name].Status.Decisions = w.Body["status"].(map[string]any)["decisions"].([]clusterv1beta1.ClusterDecision)
			}
		case reconcile.Remove:
			delete(byName, w.Name)
		}
	}
	for _, d := range byName {
		next.Decisions = append(next.Decisions, d)
	}
	return next
}

func TestAResultIsWritten(t *testing.T) {
	s := State{Placement: somePlacement(), Result: result("canary: c1", ": c2 c3"), Now: now}
	plan := Decide(s)
	require.Equal(t,
		[]string{"create p-decision-1", "patch status p-decision-1", "create p-decision-2", "patch status p-decision-2"},
		writesOf(plan))
	require.Equal(t, reconcile.Chains, plan.Order, "there is no cluster yet that could be missing meanwhile")
	for _, w := range plan.Writes {
		require.Equal(t, "apps", reconcile.TargetOf(w).Namespace)
		require.Equal(t, "placementdecisions", reconcile.TargetOf(w).Resource.Resource)
	}
	d := plan.Writes[0].(reconcile.Create).Object.(*clusterv1beta1.PlacementDecision)
	require.Equal(t, "apps", d.Namespace)
	require.Len(t, d.OwnerReferences, 1)
	owner := d.OwnerReferences[0]
	require.Equal(t, "cluster.open-cluster-management.io/v1beta1 Placement p u true true",
		fmt.Sprintf("%s %s %s %s %t %t", owner.APIVersion, owner.Kind, owner.Name, owner.UID, *owner.Controller, *owner.BlockOwnerDeletion))

	status := plan.Object.(*clusterv1beta1.Placement).Status
	require.EqualValues(t, 3, status.NumberOfSelectedClusters)
	require.Equal(t, []clusterv1beta1.DecisionGroupStatus{
		{DecisionGroupIndex: 0, DecisionGroupName: "canary", Decisions: []string{"p-decision-1"}, ClusterCount: 1},
		{DecisionGroupIndex: 1, Decisions: []string{"p-decision-2"}, ClusterCount: 2},
	}, status.DecisionGroups)
	require.Equal(
		t, []string{clusterv1beta1.ConditionMisconfigured, clusterv1beta1.ConditionSatisfied},
		[]string{status.Conditions[0].Type, status.Conditions[1].Type},
	)
	for _, c := range status.Conditions {
		require.EqualValues(t, 3, c.ObservedGeneration)
		require.Equal(t, now.Truncate(time.Second), c.LastTransitionTime.Time)
	}

	more := carried(s, plan)
	more.Result = result("canary: c2", ": c1 c3")
	require.Equal(t, reconcile.Strict, Decide(more).Order, "clusters that stay are missing at no moment")

	again := Decide(carried(s, plan))
	require.Empty(t, again.Writes, "nothing is written twice")
	require.Equal(t, status, again.Object.(*clusterv1beta1.Placement).Status, "nor is the status, an hour later")
	require.Empty(t, again.Events)
}

func TestNothingSelectedIsOneEmptyDecision(t *testing.T) {
	s := State{Placement: somePlacement(), Result: result(":"), Now: now}
	plan := Decide(s)
	require.Equal(t, []string{"create p-decision-1"}, writesOf(plan))
	require.Equal(t,
		[]clusterv1beta1.DecisionGroupStatus{{Decisions: []string{"p-decision-1"}}},
		plan.Object.(*clusterv1beta1.Placement).Status.DecisionGroups)
	s = carried(s, plan)
	s.Result = result(": c1")
	s = carried(s, Decide(s))
	s.Result = result(":")
	emptied := Decide(s)
	require.Equal(t, []string{"patch status p-decision-1"}, writesOf(emptied))
	require.Equal(t,
		map[string]any{"status": map[string]any{"decisions": []clusterv1beta1.ClusterDecision{}}},
		emptied.Writes[0].(reconcile.Patch).Body, "an empty list, not null")
}

func TestANameThatMarksNothingGetsAStatusOnly(t *testing.T) {
	r := result()
	r.Misconfigured.Status, r.Misconfigured.Reason = metav1.ConditionTrue, clusterv1beta1.ReasonMisconfigured
	plan := Decide(State{Placement: somePlacement(), Result: r, Now: now})
	require.Empty(t, plan.Writes)
	require.Len(t, plan.Object.(*clusterv1beta1.Placement).Status.Conditions, 2)
}

func TestTimeBringsAPlacementBack(t *testing.T) {
	r := result(": c1")
	require.Zero(t, Decide(State{Placement: somePlacement(), Result: r, Now: now}).RequeueAfter)
	r.LookAgain = now.Add(time.Minute)
	require.Equal(t, time.Minute, Decide(State{Placement: somePlacement(), Result: r, Now: now}).RequeueAfter)
	r.LookAgain = now.Add(-time.Minute)
	require.Positive(t,
		Decide(State{Placement: somePlacement(), Result: r, Now: now}).RequeueAfter,
		"a deadline that has passed is checked now, not never")
}

func TestScoresThatChangeDecisionsLeaveTheirTime(t *testing.T) {
	r := result(": c1")
	require.Nil(t, Decide(State{Placement: somePlacement(), Result: r, Now: now}).Object.(*clusterv1beta1.Placement).Status.LastScoreUpdateTime)
	r.ScoreUpdate = true
	require.Equal(
		t, now.Truncate(time.Second),
		Decide(State{Placement: somePlacement(), Result: r, Now: now}).Object.(*clusterv1beta1.Placement).Status.LastScoreUpdateTime.Time,
	)
}

// A placement that has become Misconfigured keeps its decisions as they are, and so does
// one whose change is held back: nothing is written for it.
func TestDecisionsThatAreKeptAreNotWritten(t *testing.T) {
	s := State{Placement: somePlacement(), Result: result(": c3 c1 c2"), Now: now}
	s.Placement.Spec.SortBy = clusterv1beta1.SortByScore
	s = carried(s, Decide(s))
	for what, change := range map[string]func(*State){
		"misconfigured":          func(s *State) { s.Result.Kept = true },
		"by another order too":   func(s *State) { s.Result.Kept, s.Placement.Spec.SortBy = true, "Nonsense" },
		"and by that of names":   func(s *State) { s.Result.Kept, s.Placement.Spec.SortBy = true, clusterv1beta1.SortByClusterName },
		"held back":              func(s *State) { s.Result.Delayed = true },
		"not kept, in its order": func(*State) {},
	} {
		t.Run(what, func(t *testing.T) {
			kept := s
			kept.Placement = s.Placement.DeepCopy()
			change(&kept)
			require.Empty(t, writesOf(Decide(kept)))
		})
	}
	s.Placement.Spec.SortBy = clusterv1beta1.SortByClusterName
	require.Equal(t, []string{"patch status p-decision-1"}, writesOf(Decide(s)), "else the order of names is written")
	s.Result = result(": c3 c2")
	s.Result.Kept = true
	plan := Decide(s)
	require.Equal(t, []string{"patch status p-decision-1"}, writesOf(plan), "a cluster that is gone is removed")
	list := plan.Writes[0].(reconcile.Patch).Body["status"].(map[string]any)["decisions"].([]clusterv1beta1.ClusterDecision)
	require.Equal(t,
		[]string{"c3", "c2"}, []string{list[0].ClusterName, list[1].ClusterName}, "and the others stay in their order")
}

// eventsOf returns the Events of a plan as "type reason action related: message".
func eventsOf(p reconcile.Plan) []string {
	var out []string
	for _, e := range p.Events {
		out = append(out, fmt.Sprintf("%s %s %s %s: %s", e.Type, e.Reason, e.Action, e.Related.GetName(), e.Message))
	}
	return out
}

func TestEventsTellOfDecisions(t *testing.T) {
	s := State{Placement: somePlacement(), Result: result(": c1 c2"), Now: now}
	first := Decide(s)
	require.Equal(
		t,
		[]string{
			"Normal DecisionCreate DecisionCreated p-decision-1: Decision p-decision-1 is created with placement p in namespace apps",
		},
		eventsOf(first),
	)
	s = carried(s, first)
	s.Result = result("a: c1", "b: c3")
	s.Scores = func() []schedule.Scored {
		return []schedule.Scored{{Cluster: "c1", Score: 200}, {Cluster: "c3", Score: -5}}
	}
	second := Decide(s)
	require.Equal(t, []string{
		"Normal DecisionCreate DecisionCreated p-decision-2: Decision p-decision-2 is created with placement p in namespace apps",
		"Normal DecisionUpdate DecisionUpdated p-decision-1: Decision p-decision-1 is updated with placement p in namespace apps",
		"Normal ScoreUpdate ScoreUpdated p-decision-1: c1:200 c3:-5 ",
	}, eventsOf(second))
	s = carried(s, second)
	s.Result, s.Scores = result("a: c1 c3"), nil
	s.Result.Warnings = []string{"AddOnPlacementScores c1/x expired"}
	require.Equal(t, []string{
		"Warning DecisionUpdate DecisionUpdated p-decision-1: Decision p-decision-1 is updated with placement p in namespace apps: AddOnPlacementScores c1/x expired",
		"Normal DecisionDelete DecisionDeleted p-decision-2: Decision p-decision-2 is deleted with placement p in namespace apps",
	}, eventsOf(Decide(s)))
	for _, e := range second.Events {
		require.Equal(t, "placement-controller", e.Reporter)
		require.Equal(t, reconcile.Writes, e.After, "the next pass finds the decisions written")
	}
	// A changed label alone gets no Event.
	s = carried(State{Placement: somePlacement(), Result: result("a: c1"), Now: now}, Decide(State{Placement: somePlacement(), Result: result("a: c1"), Now: now}))
	s.Result = result("b: c1")
	relabelled := Decide(s)
	require.Equal(t, []string{"patch p-decision-1"}, writesOf(relabelled))
	require.Empty(t, relabelled.Events)
}

func TestEventsAreBounded(t *testing.T) {
	var groups []string
	for i := range 40 {
		groups = append(groups, fmt.Sprintf(": c%d", i))
	}
	r := result(groups...)
	list := eventsOf(Decide(State{Placement: somePlacement(), Result: r, Now: now}))
	require.Len(t, list, maxEvents+1)
	require.Contains(t, list[maxEvents], "35 more decisions are created with placement p in namespace apps")
	var many []schedule.Scored
	for i := range 500 {
		many = append(many, schedule.Scored{Cluster: fmt.Sprintf("cluster-%d", i), Score: 100})
	}
	text := scores(many)
	require.LessOrEqual(t, len(text), maxScores+len("......"))
	require.True(t, strings.HasSuffix(text, "......"), text)
}
