// SPDX-License-Identifier: Apache-2.0

package hashing

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

var (
	maps  = addonv1alpha1.ConfigGroupResource{Resource: "configmaps"}
	other = addonv1alpha1.ConfigGroupResource{Group: "example.com", Resource: "others"}
)

// known has ConfigMaps of these names.
func known(names map[string]Content) Lookup {
	return func(at addonv1alpha1.AddOnConfig) (Content, bool, bool) {
		c, found := names[at.Name]
		return c, at.ConfigGroupResource == maps, found && at.ConfigGroupResource == maps
	}
}

func desired(name, hash string) *addonv1alpha1.ConfigSpecHash {
	return &addonv1alpha1.ConfigSpecHash{ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: "n", Name: name}, SpecHash: hash}
}

func TestHashesOfAnAddOn(t *testing.T) {
	addOn := &addonv1alpha1.ClusterManagementAddOn{Status: addonv1alpha1.ClusterManagementAddOnStatus{
		DefaultConfigReferences: []addonv1alpha1.DefaultConfigReference{
			{
				ConfigGroupResource: maps,
				DesiredConfig:       desired("a", "old"),
			}, {
				ConfigGroupResource: maps,
				DesiredConfig:       desired("gone", "old"),
			},
			{ConfigGroupResource: other, DesiredConfig: desired("a", "theirs")}, {ConfigGroupResource: maps},
		},
		InstallProgressions: []addonv1alpha1.InstallProgression{{ConfigReferences: []addonv1alpha1.InstallConfigReference{
			{ConfigGroupResource: maps, DesiredConfig: desired("b", ""), LastAppliedConfig: desired("b", "old")},
		}}},
	}}
	before := addOn.DeepCopy()
	look := known(map[string]Content{"a": {Hash: "of a"}, "b": {Hash: "of b"}})
	out := Shared(addOn, look).Object.(*addonv1alpha1.ClusterManagementAddOn)
	var got []string
	for _, r := range out.Status.DefaultConfigReferences[:3] {
		got = append(got, r.DesiredConfig.SpecHash)
	}
	require.Equal(t, []string{"of a", "", "theirs"}, got, "a deleted object has no hash, and another kind is left alone")
	installed := out.Status.InstallProgressions[0].ConfigReferences[0]
	require.Equal(t, "of b", installed.DesiredConfig.SpecHash)
	require.Equal(t, "old", installed.LastAppliedConfig.SpecHash, "what was applied is the hub's to say")
	require.Equal(t, before, addOn, "the object of the cache is left alone")
	require.Equal(t, out, Shared(out, look).Object, "at rest nothing changes")
	out.DeletionTimestamp = &metav1.Time{}
	require.Equal(t, reconcile.Plan{}, Shared(out, look))
}

func TestHashesOfAnInstance(t *testing.T) {
	at := func(name string) addonv1alpha1.AddOnConfig {
		return addonv1alpha1.AddOnConfig{ConfigGroupResource: maps, ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: "n", Name: name}}
	}
	addOn := &addonv1alpha1.ManagedClusterAddOn{
		Spec: addonv1alpha1.ManagedClusterAddOnSpec{Configs: []addonv1alpha1.AddOnConfig{at("mine"), at("gone")}},
		Status: addonv1alpha1.ManagedClusterAddOnStatus{ConfigReferences: []addonv1alpha1.ConfigReference{
			{ConfigGroupResource: maps, DesiredConfig: desired("mine", "")},
			{ConfigGroupResource: maps, DesiredConfig: desired("gone", "old"), LastObservedGeneration: 3},
			{ConfigGroupResource: maps, DesiredConfig: desired("shared", "given")},
			{ConfigGroupResource: other, DesiredConfig: desired("mine", "theirs")},
			{ConfigGroupResource: maps},
		}},
	}
	before := addOn.DeepCopy()
	look := known(map[string]Content{"mine": {"of mine", 7}, "shared": {"newer", 8}})
	out := Own(addOn, look).Object.(*addonv1alpha1.ManagedClusterAddOn)
	refs := out.Status.ConfigReferences
	require.Equal(t, "of mine", refs[0].DesiredConfig.SpecHash)
	require.EqualValues(t, 7, refs[0].LastObservedGeneration)
	require.Equal(t, before.Status.ConfigReferences[1], refs[1], "what is gone stays as it was")
	require.Equal(t, "given", refs[2].DesiredConfig.SpecHash, "what many clusters use comes by the rollout")
	require.EqualValues(t, 8, refs[2].LastObservedGeneration)
	require.Equal(t, before.Status.ConfigReferences[3], refs[3])
	require.Equal(t, before, addOn)
	require.Equal(t, out, Own(out, look).Object)
	out.DeletionTimestamp = &metav1.Time{}
	require.Equal(t, reconcile.Plan{}, Own(out, look))
}
