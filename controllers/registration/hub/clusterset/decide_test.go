// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

var now = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func TestOwnSetsAreMadeAndPutRight(t *testing.T) {
	for _, name := range []string{"default", "global"} {
		plan := Decide(State{Name: name, Own: true, Now: now})
		require.Len(t, reconcile.Of[reconcile.Create](plan.Writes), 1)
		made := reconcile.Of[reconcile.Create](plan.Writes)[0].Object.(*clusterv1beta2.ManagedClusterSet)
		require.Equal(t, name, made.Name)

		changed := made.DeepCopy()
		changed.Labels = map[string]string{"mine": "stays"}
		changed.Spec.ClusterSelector.SelectorType = clusterv1beta2.SelectorTypeLabelSelector
		changed.Spec.ClusterSelector.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		got := Decide(State{Set: changed, Name: name, Own: true, Now: now}).Object.(*clusterv1beta2.ManagedClusterSet)
		require.Equal(t, made.Spec.ClusterSelector, got.Spec.ClusterSelector)
		require.Empty(t, got.Status.Conditions, "members of the wrong selector are not reported")
		require.True(
			t, reconcile.Of[reconcile.Create](plan.Writes)[0].Lenient,
			"a set that a user creates in the meantime is not taken over",
		)
		require.Equal(t, "stays", got.Labels["mine"])

		changed.Annotations = map[string]string{clusterv1beta2.AnnotationAutoUpdate: "false"}
		got = Decide(State{Set: changed, Name: name, Own: true, Now: now}).Object.(*clusterv1beta2.ManagedClusterSet)
		require.Equal(t, changed.Spec, got.Spec)
	}
	require.Empty(
		t, reconcile.Of[reconcile.Create](Decide(State{Name: "default", Now: now}).Writes), "not without the gate",
	)
}

func TestTheOldNameOfASelectorTypeIsReplaced(t *testing.T) {
	set := ownSet("team")
	set.Spec.ClusterSelector.SelectorType = clusterv1beta2.SelectorTypeLegacyClusterSetLabel
	got := Decide(State{Set: set, Name: "team", Members: 1, Now: now}).Object.(*clusterv1beta2.ManagedClusterSet)
	require.Equal(t, clusterv1beta2.SelectorTypeExclusiveClusterSetLabel, got.Spec.ClusterSelector.SelectorType)
	require.Equal(t, set.Status, got.Status, "the status comes with the next pass")
}

func TestASetTellsWhetherItIsEmpty(t *testing.T) {
	set := ownSet("default")
	for name, tc := range map[string]struct {
		state   State
		status  metav1.ConditionStatus
		reason  string
		message string
	}{
		"no member":     {State{}, "True", "NoClusterMatched", "No ManagedCluster selected"},
		"members":       {State{Members: 3}, "False", "ClustersSelected", "3 ManagedClusters selected"},
		"not selecting": {State{Invalid: errors.New("bad operator")}, "True", "NoClusterMatched", "bad operator"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.state.Set, tc.state.Name, tc.state.Now = set, "default", now
			c := apimeta.FindStatusCondition(
				Decide(tc.state).Object.(*clusterv1beta2.ManagedClusterSet).Status.Conditions, "ClusterSetEmpty",
			)
			require.Equal(t, tc.status, c.Status)
			require.Equal(t, tc.reason, c.Reason)
			require.Contains(t, c.Message, tc.message)
		})
	}
}

func TestANewGenerationIsObserved(t *testing.T) {
	set := ownSet("default")
	set.Generation = 4
	first := Decide(State{Set: set, Name: "default", Members: 1, Now: now}).Object.(*clusterv1beta2.ManagedClusterSet)
	require.EqualValues(t, 4, first.Status.Conditions[0].ObservedGeneration)
	first.Generation = 5
	again := Decide(State{
		Set:     first,
		Name:    "default",
		Members: 1,
		Written: now,
		Now:     now,
	}).Object.(*clusterv1beta2.ManagedClusterSet)
	require.EqualValues(t, 5, again.Status.Conditions[0].ObservedGeneration)
	require.Equal(t, first.Status.Conditions[0].LastTransitionTime, again.Status.Conditions[0].LastTransitionTime)
}

func TestASelectorThatIsNotUsedIsTold(t *testing.T) {
	set := ownSet("mine")
	set.Spec.ClusterSelector.LabelSelector = &metav1.LabelSelector{}
	message := func(set *clusterv1beta2.ManagedClusterSet) string {
		return Decide(State{
			Set:  set,
			Name: "mine",
			Now:  now,
		}).Object.(*clusterv1beta2.ManagedClusterSet).Status.Conditions[0].Message
	}
	require.Contains(t, message(set), "labelSelector is not used")
	set.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{
		SelectorType: clusterv1beta2.SelectorTypeLabelSelector,
	}
	require.Contains(t, message(set), "{} selects every cluster")
}

func TestCountsAreNotWrittenAtEveryChange(t *testing.T) {
	set := ownSet("default")
	first := Decide(State{Set: set, Name: "default", Members: 1, Now: now}).Object.(*clusterv1beta2.ManagedClusterSet)
	plan := Decide(State{Set: first, Name: "default", Members: 2, Written: now, Now: now.Add(4 * time.Second)})
	require.Equal(t, 6*time.Second, plan.RequeueAfter)
	require.Equal(t, first.Status, plan.Object.(*clusterv1beta2.ManagedClusterSet).Status)
	plan = Decide(State{Set: first, Name: "default", Members: 2, Written: now, Now: now.Add(10 * time.Second)})
	require.Contains(t, plan.Object.(*clusterv1beta2.ManagedClusterSet).Status.Conditions[0].Message, "2 ")
	plan = Decide(State{Set: first, Name: "default", Written: now, Now: now.Add(time.Second)})
	require.Equal(
		t, metav1.ConditionTrue, plan.Object.(*clusterv1beta2.ManagedClusterSet).Status.Conditions[0].Status,
		"an empty set is reported at once",
	)
	plan = Decide(State{Set: first, Name: "default", Members: 1, Now: now})
	require.Equal(t, first, plan.Object)
}

func TestASetThatGoesOrIsAnothersIsLeftAlone(t *testing.T) {
	set := ownSet("mine")
	set.DeletionTimestamp = &metav1.Time{Time: now}
	require.Nil(t, Decide(State{Set: set, Name: "mine", Now: now}).Object)
	require.Empty(t, reconcile.Of[reconcile.Create](Decide(State{Name: "mine", Now: now}).Writes))
}
