// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// TestWhatAClusterIsGiven: the add-on and its placements determine it. The configuration of a
// placement is only for the clusters that the placement selects.
func TestWhatAClusterIsGiven(t *testing.T) {
	kind := addonv1alpha1.ConfigGroupResource{Group: "g", Resource: "r"}
	at := func(name string) addonv1alpha1.AddOnConfig {
		return addonv1alpha1.AddOnConfig{
			ConfigGroupResource: kind, ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: "ns", Name: name},
		}
	}
	placement := func(name string) addonv1alpha1.PlacementRef {
		return addonv1alpha1.PlacementRef{Namespace: "ns", Name: name}
	}
	a := &addonv1alpha1.ClusterManagementAddOn{}
	a.Name, a.Spec.InstallStrategy.Type = "web", addonv1alpha1.InstallStrategyPlacements
	fallback := at("default").ConfigReferent
	a.Spec.SupportedConfigs = []addonv1alpha1.ConfigMeta{{ConfigGroupResource: kind, DefaultConfig: &fallback}}
	a.Spec.InstallStrategy.Placements = []addonv1alpha1.PlacementStrategy{
		{PlacementRef: placement("prod"), Configs: []addonv1alpha1.AddOnConfig{at("prod")}},
		{PlacementRef: placement("test"), Configs: []addonv1alpha1.AddOnConfig{at("test")}},
	}
	a.Status.InstallProgressions = []addonv1alpha1.InstallProgression{{PlacementRef: placement("test"), ConfigReferences: []addonv1alpha1.InstallConfigReference{{
		ConfigGroupResource: kind, LastAppliedConfig: &addonv1alpha1.ConfigSpecHash{ConfigReferent: at("old").ConfigReferent},
	}}}}
	x := &Index{addOns: map[string]*addonv1alpha1.ClusterManagementAddOn{
		"web": a,
	}, selects: func(_ context.Context, of addonv1alpha1.PlacementRef, cluster string) (bool, error) {
		return of == placement("prod") && cluster == "c1" || of == placement("test") && cluster == "c2", nil
	}}
	other := at("default")
	other.Resource = "others"
	for name, tc := range map[string]struct {
		cluster, addOn string
		config         addonv1alpha1.AddOnConfig
		given, known   bool
	}{
		"a default, to every cluster":      {"c3", "web", at("default"), true, true},
		"another kind of the same name":    {"c1", "web", other, false, true},
		"that of its placement":            {"c1", "web", at("prod"), true, true},
		"that of another one":              {"c1", "web", at("test"), false, true},
		"that of one which selects nobody": {"c3", "web", at("prod"), false, true},
		"before its rollout comes":         {"c2", "web", at("old"), true, true},
		"of another placement":             {"c1", "web", at("old"), false, true},
		"what nobody named":                {"c1", "web", at("private"), false, true},
		"of an add-on that is none":        {"c1", "none", at("default"), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			given, known, err := x.Gives(t.Context(), tc.cluster, tc.addOn, tc.config)
			require.NoError(t, err)
			require.Equal(t, tc.given, given)
			require.Equal(t, tc.known, known)
		})
	}
	a.Spec.InstallStrategy.Type = addonv1alpha1.InstallStrategyManual
	given, _, err := x.Gives(t.Context(), "c1", "web", at("prod"))
	require.NoError(t, err)
	require.False(t, given, "its placements no longer count")
}
