// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

func groups(addons, works []Item) []Group {
	return []Group{{Resource: reconcile.ResourceOf(AddOnKind), Items: addons}, {Resource: reconcile.ResourceOf(ManifestWorkKind), Items: works}}
}

func TestDecide(t *testing.T) {
	const f = clusterv1.FinalizerResourceCleanup
	for name, tc := range map[string]struct {
		state       State
		wantDelete  []string
		wantMessage string
		wantFinal   []string
	}{
		"a living cluster gets the finalizer":         {state: State{Cluster: cluster(false, "x")}, wantFinal: []string{"x", f}},
		"a living cluster with the finalizer is left": {state: State{Cluster: cluster(false, f)}, wantFinal: []string{f}},
		"a cluster that goes without it is not ours":  {state: State{Cluster: cluster(true, "x")}},
		"nothing is left: the cluster goes":           {state: State{Cluster: cluster(true, f, "x"), Groups: groups(nil, nil)}, wantFinal: []string{"x"}},
		"add-ons go before works": {
			state:      State{Cluster: cluster(true, f), Groups: groups([]Item{{Name: "a"}}, []Item{{Name: "w"}})},
			wantDelete: []string{"managedclusteraddons c1/a"}, wantMessage: "1 managedclusteraddons are left, 0 of them wait for their finalizers", wantFinal: []string{f},
		},
		"the lowest priority goes first; what is no number counts as 0": {
			state: State{Cluster: cluster(true, f), Groups: groups(nil, []Item{
				{Name: "last", Priority: "100"}, {Name: "none"}, {Name: "odd", Priority: "soon"}, {Name: "over", Priority: "101"}, {Name: "under", Priority: "-1"}, {Name: "later", Priority: "20"},
			})},
			wantDelete:  []string{"manifestworks c1/none", "manifestworks c1/odd", "manifestworks c1/over", "manifestworks c1/under"},
			wantMessage: "6 manifestworks are left", wantFinal: []string{f},
		},
		"the next priority waits for the finalizers of the one before": {
			state:       State{Cluster: cluster(true, f), Groups: groups(nil, []Item{{Name: "first", Deleting: true}, {Name: "second", Priority: "20"}})},
			wantMessage: "2 manifestworks are left, 1 of them wait", wantFinal: []string{f},
		},
		"a vanished cluster's objects go":                 {state: State{Owned: true, Groups: groups(nil, []Item{{Name: "w"}})}, wantDelete: []string{"manifestworks c1/w"}},
		"objects of a cluster that has not come yet stay": {state: State{Groups: groups(nil, []Item{{Name: "w"}})}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.state.Name, tc.state.Now, tc.state.Clean = "c1", now, true
			plan := Decide(tc.state)
			var got []string
			for _, d := range plan.Delete {
				got = append(got, d.String())
			}
			require.Equal(t, tc.wantDelete, got)
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
	require.Nil(t, Decide(State{Owned: true, Groups: groups(nil, []Item{{Name: "w"}})}).Delete)
	plan := Decide(State{Cluster: cluster(true, clusterv1.FinalizerResourceCleanup, "x")})
	require.Equal(t, []string{"x"}, plan.Object.(*clusterv1.ManagedCluster).Finalizers)
}
