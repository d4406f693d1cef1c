// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	multiclusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/multicluster/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

var then = metav1.NewTime(time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC))

func theCluster() *clusterv1.ManagedCluster {
	mc := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c1", Labels: map[string]string{clusterv1.LabelClusterSet: "blue"}},
	}
	mc.Status.Version.Kubernetes = "v1.36.3"
	mc.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "region", Value: "north"}}
	mc.Status.Conditions = []metav1.Condition{
		{Type: clusterv1.ConditionHubAccepted, Status: "True", Reason: "A"},
		{
			Type:               clusterv1.ConditionAvailable,
			Status:             "Unknown",
			Reason:             "Stopped",
			Message:            "no lease",
			LastTransitionTime: then,
		},
		{Type: clusterv1.ConditionJoined, Status: "True", Reason: "Joined", LastTransitionTime: then},
	}
	return mc
}

func theProfile(change ...func(*multiclusterv1alpha1.ClusterProfile)) *multiclusterv1alpha1.ClusterProfile {
	p := newProfile(state())
	p.UID, p.Generation = "u", 2
	for _, c := range change {
		c(p)
	}
	return p
}

func state(change ...func(*State)) State {
	s := State{Key: reconcile.Key{Namespace: "n", Name: "c1"}, Cluster: theCluster(), Reached: true, Open: true}
	for _, c := range change {
		c(&s)
	}
	return s
}

func TestProfilesComeAndGo(t *testing.T) {
	for name, tc := range map[string]struct {
		change                   func(*State)
		creates, deletes, writes bool
	}{
		"a cluster that the namespace reaches": {func(*State) {}, true, false, false},
		"a namespace being deleted":            {func(s *State) { s.Open = false }, false, false, false},
		"a cluster being deleted": {
			func(s *State) { s.Cluster.DeletionTimestamp = &then },
			false,
			false,
			false,
		},
		"no cluster":              {func(s *State) { s.Cluster = nil }, false, false, false},
		"no binding":              {func(s *State) { s.Reached = false }, false, false, false},
		"a profile that is there": {func(s *State) { s.Profile = theProfile() }, false, false, true},
		"a profile in a namespace that goes": {
			func(s *State) { s.Profile, s.Open = theProfile(), false },
			false,
			false,
			true,
		},
		"a profile without a binding": {
			func(s *State) { s.Profile, s.Reached = theProfile(), false },
			false,
			true,
			false,
		},
		"a profile of a cluster that goes": {
			func(s *State) { s.Profile, s.Cluster.DeletionTimestamp = theProfile(), &then },
			false,
			true,
			false,
		},
		"a profile without a cluster": {
			func(s *State) { s.Profile, s.Cluster = theProfile(), nil },
			false,
			true,
			false,
		},
		"a profile that goes": {
			func(s *State) {
				s.Profile, s.Reached = theProfile(func(p *multiclusterv1alpha1.ClusterProfile) { p.DeletionTimestamp = &then }), false
			},
			false,
			false,
			false,
		},
		"a profile of another manager": {func(s *State) {
			s.Profile = theProfile(func(p *multiclusterv1alpha1.ClusterProfile) {
				p.Labels[multiclusterv1alpha1.LabelClusterManager] = "other"
			})
		}, false, false, false},
		"a profile with our label and another manager": {
			func(s *State) {
				s.Profile, s.Reached = theProfile(func(p *multiclusterv1alpha1.ClusterProfile) { p.Spec.ClusterManager.Name = "other" }), false
			},
			false,
			false,
			false,
		},
		"a profile that lost its labels": {func(s *State) {
			s.Profile = theProfile(func(p *multiclusterv1alpha1.ClusterProfile) { p.Labels = nil })
		}, false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Decide(state(tc.change))
			require.Equal(t, tc.creates, len(reconcile.Of[reconcile.Create](plan.Writes)) == 1)
			require.Equal(t, tc.deletes, len(reconcile.Of[reconcile.Remove](plan.Writes)) == 1)
			require.Equal(t, tc.writes, plan.Object != nil)
			if tc.creates {
				require.True(
					t, reconcile.Of[reconcile.Create](plan.Writes)[0].Lenient,
					"an existing profile is never taken over",
				)
			}
			if tc.deletes {
				require.EqualValues(t, "u", reconcile.Of[reconcile.Remove](plan.Writes)[0].UID)
			}
		})
	}
}

func TestAProfileShowsItsCluster(t *testing.T) {
	foreign := metav1.Condition{Type: "Foreign", Status: "True", Reason: "R", LastTransitionTime: then}
	have := theProfile(func(p *multiclusterv1alpha1.ClusterProfile) {
		p.Labels, p.Spec.DisplayName = map[string]string{"mine": "stays"}, "changed"
		p.Status.Conditions = []metav1.Condition{foreign}
		p.Status.Properties = []multiclusterv1alpha1.Property{{Name: "old", Value: "gone"}}
	})
	got := Decide(state(func(s *State) { s.Profile = have })).Object.(*multiclusterv1alpha1.ClusterProfile)
	require.Empty(t, cmp.Diff(map[string]string{
		"mine": "stays", "x-k8s.io/cluster-manager": "open-cluster-management",
		"open-cluster-management.io/cluster-name": "c1",
		"multicluster.x-k8s.io/clusterset":        "blue",
	}, got.Labels))
	require.Equal(t, "c1", got.Spec.DisplayName)
	require.Empty(t, cmp.Diff(multiclusterv1alpha1.ClusterProfileStatus{
		Version:    multiclusterv1alpha1.ClusterVersion{Kubernetes: "v1.36.3"},
		Properties: []multiclusterv1alpha1.Property{{Name: "region", Value: "north"}},
		Conditions: []metav1.Condition{
			foreign,
			{
				Type:               "ControlPlaneHealthy",
				Status:             "Unknown",
				Reason:             "Stopped",
				Message:            "no lease",
				LastTransitionTime: then,
				ObservedGeneration: 2,
			},
			{Type: "Joined", Status: "True", Reason: "Joined", LastTransitionTime: then, ObservedGeneration: 2},
		},
	}, got.Status))
	require.Equal(t, got, Decide(state(func(s *State) { s.Profile = got })).Object, "a correct profile is not changed")

	bare := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
	got = Decide(state(func(s *State) { s.Profile, s.Cluster = got, bare })).Object.(*multiclusterv1alpha1.ClusterProfile)
	require.Equal(t, []metav1.Condition{foreign}, got.Status.Conditions)
	require.NotContains(t, got.Labels, multiclusterv1alpha1.LabelClusterSet)
	require.Empty(t, got.Status.Properties)
}

func TestOnlyWhatAProfileShowsWakesIt(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*clusterv1.ManagedCluster)
		want   bool
	}{
		"nothing": {func(*clusterv1.ManagedCluster) {}, false},
		"a taint": {
			func(mc *clusterv1.ManagedCluster) { mc.Spec.Taints = []clusterv1.Taint{{Key: "k"}} },
			false,
		},
		"another condition": {func(mc *clusterv1.ManagedCluster) { mc.Status.Conditions[0].Status = "False" }, false},
		"capacity": {
			func(mc *clusterv1.ManagedCluster) { mc.Status.Capacity = clusterv1.ResourceList{} },
			false,
		},
		"another label": {func(mc *clusterv1.ManagedCluster) { mc.Labels["a"] = "b" }, false},
		"the set": {
			func(mc *clusterv1.ManagedCluster) { mc.Labels[clusterv1.LabelClusterSet] = "red" },
			true,
		},
		"the version": {
			func(mc *clusterv1.ManagedCluster) { mc.Status.Version.Kubernetes = "v1.37.0" },
			true,
		},
		"a claim": {
			func(mc *clusterv1.ManagedCluster) { mc.Status.ClusterClaims[0].Value = "south" },
			true,
		},
		"availability": {func(mc *clusterv1.ManagedCluster) { mc.Status.Conditions[1].Status = "True" }, true},
		"the end":      {func(mc *clusterv1.ManagedCluster) { mc.DeletionTimestamp = &then }, true},
		"the reason of a state": {
			func(mc *clusterv1.ManagedCluster) { mc.Status.Conditions[2].Reason = "Again" },
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			changed := theCluster()
			tc.change(changed)
			require.Equal(t, tc.want, shownChanged(theCluster(), changed))
		})
	}
}

func TestAProfileInTheWayIsToldOnce(t *testing.T) {
	foreign := theProfile(func(p *multiclusterv1alpha1.ClusterProfile) { p.Spec.ClusterManager.Name = "other" })
	plan := Decide(state(func(s *State) { s.Profile = foreign }))
	require.Len(t, plan.Events, 1)
	require.Equal(t, reasonTaken, plan.Events[0].Reason)
	require.Contains(t, plan.Events[0].Message, `ClusterProfile n/c1 belongs to manager "other"`)
	for name, change := range map[string]func(*State){
		"reported already":             func(s *State) { s.Told = true },
		"it is being deleted":          func(s *State) { s.Profile.DeletionTimestamp = &then },
		"no binding":                   func(s *State) { s.Reached = false },
		"no cluster":                   func(s *State) { s.Cluster = nil },
		"our own":                      func(s *State) { s.Profile = theProfile() },
		"the cluster is being deleted": func(s *State) { s.Cluster.DeletionTimestamp = &then },
		"there is no other":            func(s *State) { s.Profile = nil },
	} {
		t.Run(name, func(t *testing.T) {
			require.Empty(t, Decide(state(func(s *State) { s.Profile = foreign.DeepCopy(); change(s) })).Events)
		})
	}
}
