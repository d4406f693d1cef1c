// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1alpha1"
)

func TestManaged(t *testing.T) {
	a := &addonv1alpha1.ClusterManagementAddOn{}
	require.True(t, Managed(a), "without an annotation the hub installs")
	for lifecycle, want := range map[string]bool{"addon-manager": true, "self": false, "": false, "Addon-Manager": false, "else": false} {
		a.Annotations = map[string]string{addonv1alpha1.AnnotationLifecycle: lifecycle}
		require.Equal(t, want, Managed(a), lifecycle)
	}
}

func TestWhomSomethingConcerns(t *testing.T) {
	config := addonv1alpha1.AddOnConfig{
		ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: "g", Resource: "r"},
		ConfigReferent:      addonv1alpha1.ConfigReferent{Namespace: "ns", Name: "c"},
	}
	addOn := func(name, strategy string, change func(*addonv1alpha1.ClusterManagementAddOnSpec)) *addonv1alpha1.ClusterManagementAddOn {
		a := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
		a.Spec.InstallStrategy.Type = strategy
		change(&a.Spec)
		return a
	}
	placed := func(s *addonv1alpha1.ClusterManagementAddOnSpec) {
		s.InstallStrategy.Placements = []addonv1alpha1.PlacementStrategy{
			{PlacementRef: addonv1alpha1.PlacementRef{Namespace: "ns", Name: "p"}, Configs: []addonv1alpha1.AddOnConfig{config}},
		}
	}
	x := &Index{addOns: map[string]*addonv1alpha1.ClusterManagementAddOn{}}
	var told []string
	x.OnConcern(func(name string) { told = append(told, name) })
	by := addOn("by", addonv1alpha1.InstallStrategyPlacements, placed)
	x.addOnChanged(nil, by)
	x.addOnChanged(nil, addOn("hand", addonv1alpha1.InstallStrategyManual, placed))
	x.addOnChanged(nil, addOn("default", addonv1alpha1.InstallStrategyManual, func(s *addonv1alpha1.ClusterManagementAddOnSpec) {
		s.SupportedConfigs = []addonv1alpha1.ConfigMeta{
			{ConfigGroupResource: config.ConfigGroupResource, DefaultConfig: &config.ConfigReferent},
		}
	}))
	require.Equal(t, []string{"by", "hand", "default"}, told)
	require.Equal(t, []string{"by"}, x.selecting("ns", "p"))
	require.Empty(t, x.selecting("other", "p"))
	require.Equal(t, []string{"by", "default", "hand"}, x.Naming(config))
	require.Equal(t, []string{"by"}, x.matching(ByPlacements))
	x.addOnChanged(by, nil)
	require.Empty(t, x.selecting("ns", "p"))
	require.Equal(t, "by", told[3])
}

func TestWhatOfAClusterConcernsAddOns(t *testing.T) {
	gone := metav1.NewTime(time.Unix(1, 0))
	old := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c1", UID: "u", Annotations: map[string]string{"other": "1"}},
	}
	with := func(change func(*clusterv1.ManagedCluster)) *clusterv1.ManagedCluster {
		mc := old.DeepCopy()
		change(mc)
		return mc
	}
	placed := &addonv1alpha1.ClusterManagementAddOn{}
	placed.Spec.InstallStrategy.Type = addonv1alpha1.InstallStrategyPlacements
	told := 0
	x := &Index{
		addOns: map[string]*addonv1alpha1.ClusterManagementAddOn{"a": placed}, clusters: map[string]Cluster{}, concern: []func(string){func(string) { told++ }},
	}
	concerns := func(old, current *clusterv1.ManagedCluster) bool {
		told = 0
		x.clusterChanged(old, current)
		return told > 0
	}
	require.True(t, concerns(nil, old))
	require.Equal(t, map[string]Cluster{"c1": {Exists: true}}, x.Clusters(map[string]bool{"c1": true, "c2": true}))
	require.True(t, concerns(old, nil))
	require.Empty(t, x.Clusters(map[string]bool{"c1": true}))
	for name, tc := range map[string]struct {
		change func(*clusterv1.ManagedCluster)
		want   bool
	}{
		"another annotation": {func(mc *clusterv1.ManagedCluster) { mc.Annotations["other"] = "2" }, false},
		"a status": {
			func(mc *clusterv1.ManagedCluster) { mc.Labels, mc.ResourceVersion = map[string]string{"a": "b"}, "2" },
			false,
		},
		"an annotation that is copied": {
			func(mc *clusterv1.ManagedCluster) { mc.Annotations[addonv1alpha1.AnnotationHostingClusterName] = "" },
			true,
		},
		"to be left out": {
			func(mc *clusterv1.ManagedCluster) { mc.Annotations[addonv1alpha1.AnnotationPrefixExclude+"a"] = "" },
			true,
		},
		"on its way out":          {func(mc *clusterv1.ManagedCluster) { mc.DeletionTimestamp = &gone }, true},
		"another one of the name": {func(mc *clusterv1.ManagedCluster) { mc.UID = "v" }, true},
	} {
		concerns(nil, old)
		now := with(tc.change)
		require.Equal(t, tc.want, concerns(old, now), name)
		require.Equal(t, clusterOf(now), x.Clusters(map[string]bool{"c1": true})["c1"], name)
	}
	c := Cluster{Exists: true, Annotations: map[string]string{addonv1alpha1.AnnotationPrefixExclude + "a": "false"}}
	require.False(t, c.Takes("a"), "whatever the value")
	require.True(t, c.Takes("b"))
	require.False(t, Cluster{}.Takes("b"), "there is none")
	require.False(t, Cluster{Exists: true, Deleting: true}.Takes("b"))
}

func TestTheSizeOfDecisionGroupsIsTheDefaultOfConcurrency(t *testing.T) {
	three, own := intstr.FromInt32(3), intstr.FromString("25%")
	progressive := clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.RolloutTypeProgressive}
	require.Equal(t, &three, sized(progressive, &three).Progressive.MaxConcurrency)
	require.Nil(t, sized(progressive, nil).Progressive)
	progressive.Progressive = &clusterv1alpha1.RolloutProgressive{MaxConcurrency: &own}
	require.Equal(t, &own, sized(progressive, &three).Progressive.MaxConcurrency)
	require.Nil(t, sized(clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.RolloutTypeAll}, &three).Progressive)
}
