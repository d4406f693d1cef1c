// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

var now = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func cluster(deleting bool, finalizers ...string) *clusterv1.ManagedCluster {
	mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1", Finalizers: finalizers}}
	if deleting {
		mc.DeletionTimestamp = &metav1.Time{Time: now}
	}
	return mc
}

func groups(ofAddOns, ofWorks []Item) []Group {
	return []Group{
		{Resource: addons, Items: ofAddOns, Watched: true},
		{Resource: works, Items: ofWorks, Watched: true},
	}
}

func TestDecide(t *testing.T) {
	const f = clusterv1.FinalizerResourceCleanup
	for name, tc := range map[string]struct {
		state       State
		wantDelete  []string
		wantMessage string
		wantFinal   []string
		wantAgain   time.Duration
	}{
		"a living cluster gets the finalizer": {
			state:     State{Cluster: cluster(false, "x")},
			wantFinal: []string{"x", f},
		},
		"a living cluster with the finalizer is left": {
			state:     State{Cluster: cluster(false, f)},
			wantFinal: []string{f},
		},
		"a cluster deleted without it is not held": {
			state: State{Cluster: cluster(true, "x"), Groups: groups(nil, nil)},
		},
		"but its contents are deleted": {
			state:      State{Cluster: cluster(true, "x"), Groups: groups(nil, []Item{{Name: "w"}})},
			wantDelete: []string{"manifestworks c1/w"},
		},
		"nothing is left: the finalizer is dropped": {
			state:     State{Cluster: cluster(true, f, "x"), Groups: groups(nil, nil)},
			wantFinal: []string{"x"},
		},
		"add-ons go before works": {
			state:       State{Cluster: cluster(true, f), Groups: groups([]Item{{Name: "a"}}, []Item{{Name: "w"}})},
			wantDelete:  []string{"managedclusteraddons c1/a"},
			wantMessage: "1 managedclusteraddons are left, 0 of them wait for their finalizers",
			wantFinal:   []string{f},
		},
		"the lowest priority goes first; what is no number counts as 0": {
			state: State{Cluster: cluster(true, f), Groups: groups(nil, []Item{
				{Name: "last", Priority: "100"},
				{Name: "none"},
				{Name: "odd", Priority: "soon"},
				{Name: "over", Priority: "101"},
				{Name: "under", Priority: "-1"},
				{Name: "later", Priority: "20"},
			})},
			wantDelete: []string{
				"manifestworks c1/none", "manifestworks c1/odd", "manifestworks c1/over", "manifestworks c1/under",
			},
			wantMessage: "6 manifestworks are left", wantFinal: []string{f},
		},
		"the next priority waits for the finalizers of the one before": {
			state: State{Cluster: cluster(true, f), Groups: groups(nil, []Item{{
				Name:     "first",
				Deleting: true,
			}, {
				Name:     "second",
				Priority: "20",
			}})},
			wantMessage: "2 manifestworks are left, 1 of them wait", wantFinal: []string{f},
		},
		"nothing is removed before all is seen": {
			state:       State{Cluster: cluster(true, f), Behind: true, Groups: groups(nil, []Item{{Name: "w"}})},
			wantMessage: "looking up what belongs", wantFinal: []string{f}, wantAgain: catchUp,
		},
		"nor is the finalizer dropped before": {
			state:       State{Cluster: cluster(true, f), Behind: true, Groups: groups(nil, nil)},
			wantMessage: "looking up what belongs",
			wantFinal:   []string{f},
			wantAgain:   catchUp,
		},
		"the caches are checked for a vanished cluster too": {
			state:     State{Owned: true, Behind: true, Groups: groups(nil, nil)},
			wantAgain: catchUp,
		},
		"a vanished cluster's objects go": {
			state:      State{Owned: true, Groups: groups(nil, []Item{{Name: "w"}})},
			wantDelete: []string{"manifestworks c1/w"},
		},
		"objects of a cluster that has not come yet stay": {state: State{Groups: groups(nil, []Item{{Name: "w"}})}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.state.Name, tc.state.Now, tc.state.Clean = "c1", now, true
			plan := Decide(tc.state)
			var got []string
			for _, d := range reconcile.Of[reconcile.Remove](plan.Writes) {
				got = append(got, d.String())
			}
			require.Equal(t, tc.wantDelete, got)
			require.Equal(t, tc.wantAgain, plan.RequeueAfter)
			mc, ok := plan.Object.(*clusterv1.ManagedCluster)
			require.Equal(t, tc.wantFinal != nil, ok)
			if !ok {
				return
			}
			require.Equal(t, tc.wantFinal, mc.Finalizers)
			c := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionDeleting)
			if tc.wantMessage == "" {
				require.Nil(t, c)
				return
			}
			require.Equal(t, clusterv1.ReasonResourceRemaining, c.Reason)
			require.Contains(t, c.Message, tc.wantMessage)
		})
	}
}

func TestWithoutTheGateClustersAreNotHeld(t *testing.T) {
	require.Nil(t, Decide(State{Cluster: cluster(false)}).Object)
	require.Nil(
		t, reconcile.Of[reconcile.Remove](Decide(State{Owned: true, Groups: groups(nil, []Item{{Name: "w"}})}).Writes),
	)
	plan := Decide(State{Cluster: cluster(true, clusterv1.FinalizerResourceCleanup, "x")})
	require.Equal(t, []string{"x"}, plan.Object.(*clusterv1.ManagedCluster).Finalizers)
}

func TestWhatCannotBeListedKeepsTheClusterAndSaysSo(t *testing.T) {
	const f = clusterv1.FinalizerResourceCleanup
	plan := Decide(State{
		Name:    "c1",
		Clean:   true,
		Now:     now,
		Cluster: cluster(true, f),
		Groups:  groups(nil, nil),
		Fault:   errors.New("forbidden"),
	})
	mc := plan.Object.(*clusterv1.ManagedCluster)
	require.Equal(t, []string{f}, mc.Finalizers)
	c := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionDeleting)
	require.Equal(t, clusterv1.ReasonDeletingError, c.Reason)
	require.Contains(t, c.Message, "forbidden")
}

func TestNothingIsDeletedWhereWhatThereIsCannotBeKnown(t *testing.T) {
	shown := groups(nil, []Item{{Name: "w"}})
	fault := errors.New("too many requests")
	going := Decide(State{
		Name:    "c1",
		Clean:   true,
		Now:     now,
		Cluster: cluster(true, clusterv1.FinalizerResourceCleanup),
		Groups:  shown,
		Fault:   fault,
	})
	require.Empty(t, reconcile.Of[reconcile.Remove](going.Writes))
	require.Equal(t, []string{clusterv1.FinalizerResourceCleanup}, going.Object.(*clusterv1.ManagedCluster).Finalizers)
	require.Empty(
		t,
		reconcile.Of[reconcile.Remove](Decide(State{
			Name:   "c1",
			Clean:  true,
			Now:    now,
			Owned:  true,
			Groups: shown,
			Fault:  fault,
		}).Writes),
	)
	require.NotEmpty(
		t,
		reconcile.Of[reconcile.Remove](Decide(State{
			Name:   "c1",
			Clean:  true,
			Now:    now,
			Owned:  true,
			Groups: shown,
		}).Writes),
	)
}

func TestAResourceThatIsNotWatchedIsLookedAtAgain(t *testing.T) {
	other := Group{
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		Items:    []Item{{Name: "x", Deleting: true}},
	}
	plan := Decide(State{
		Name:    "c1",
		Clean:   true,
		Now:     now,
		Cluster: cluster(true, clusterv1.FinalizerResourceCleanup),
		Groups:  []Group{other},
	})
	require.Equal(t, lookAgain, plan.RequeueAfter)
	other.Watched = true
	plan = Decide(State{
		Name:    "c1",
		Clean:   true,
		Now:     now,
		Cluster: cluster(true, clusterv1.FinalizerResourceCleanup),
		Groups:  []Group{other},
	})
	require.Zero(t, plan.RequeueAfter)
}

func TestParseOrder(t *testing.T) {
	order, bad := ParseOrder([]string{
		"/v1/configmaps", "addon.open-cluster-management.io/v1beta1/managedclusteraddons", "manifestworks", "a/b",
		"a//c", "a/b/", "a/b/c/d", "",
		"addon.open-cluster-management.io/v1alpha1/managedclusteraddons", "example.com/v1/things",
	})
	require.Equal(t, []schema.GroupVersionResource{
		{Version: "v1", Resource: "configmaps"},
		addons,
		{Group: "example.com", Version: "v1", Resource: "things"},
	}, order)
	require.Len(t, bad, 7)
	require.ErrorContains(t, bad[0], `"manifestworks" is not of the form group/version/resource`)
	require.ErrorContains(t, bad[6], "twice")
}
