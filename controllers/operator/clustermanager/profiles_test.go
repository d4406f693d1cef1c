// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"testing"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

func TestTheHubSaysWhetherProfilesAreKept(t *testing.T) {
	gate := func(mode operatorv1.FeatureGateModeType) *operatorv1.RegistrationHubConfiguration {
		return &operatorv1.RegistrationHubConfiguration{
			FeatureGates: []operatorv1.FeatureGate{{Feature: "ClusterProfile", Mode: mode}},
		}
	}
	on, off := gate(operatorv1.FeatureGateModeTypeEnable), gate(operatorv1.FeatureGateModeTypeDisable)
	for name, tc := range map[string]struct {
		gate    *operatorv1.RegistrationHubConfiguration
		found   API
		creates bool
		status  metav1.ConditionStatus
		message string
	}{
		"by default nothing is done":         {nil, API{}, false, "", ""},
		"without the gate nothing is done":   {off, API{Found: true, Served: true}, false, "", ""},
		"where there is none, it is created": {on, API{}, true, "False", "Waiting for the API"},
		"one that is not established yet": {
			on,
			API{Found: true, Versions: []string{"v1alpha1"}},
			false,
			"False",
			"Waiting for the API",
		},
		"one that serves": {
			on,
			API{Found: true, Served: true, Versions: []string{"v1alpha1", "v1"}},
			false,
			"True",
			"are kept",
		},
		"one of another release is left alone": {
			on,
			API{Found: true, Versions: []string{"v1beta1", "v1"}},
			false,
			"False",
			"serves v1beta1, v1 and not v1alpha1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			with := state(t, func(s *State) { s.Profiles = tc.found })
			with.ClusterManager.Spec.RegistrationConfiguration = tc.gate
			if tc.gate == off {
				with.ClusterManager.Status.Conditions = []metav1.Condition{
					{Type: operatorv1.ConditionClusterProfilesKept, Status: "True", Reason: "R"},
				}
			}
			d := Decide(with)
			created := 0
			for _, a := range reconcile.Of[reconcile.Create](d.Writes) {
				if a.Object.GetName() == crd.ClusterProfiles {
					created++
					require.True(t, a.Lenient, "an existing one is never changed")
					require.Empty(t, a.Object.GetLabels(), "it is not part of the hub's inventory")
				}
			}
			require.Equal(t, tc.creates, created == 1)
			require.True(t, d.Run, "all other loops run")
			require.Equal(t, tc.gate == on, d.Features.ClusterProfile)
			require.Equal(t, tc.found.Served, d.Features.ProfilesServed)
			c := apimeta.FindStatusCondition(
				d.Object.(*operatorv1.ClusterManager).Status.Conditions, operatorv1.ConditionClusterProfilesKept,
			)
			if tc.status == "" {
				require.Nil(t, c)
				return
			}
			require.Equal(t, tc.status, c.Status)
			require.Contains(t, c.Message, tc.message)
		})
	}
}

func TestADefinitionIsServedOnceItIsEstablished(t *testing.T) {
	u, err := crd.Get(crd.ClusterProfiles)
	require.NoError(t, err)
	got, keep := keepProfiles(u)
	require.True(t, keep)
	require.Equal(t, API{Found: true, Versions: []string{"v1alpha1"}}, got)
	require.NoError(
		t,
		unstructured.SetNestedSlice(
			u.Object, []any{map[string]any{"type": "Established", "status": "True"}}, "status", "conditions",
		),
	)
	got, _ = keepProfiles(u)
	require.True(t, got.Served)
	now := metav1.Now()
	u.SetDeletionTimestamp(&now)
	got, _ = keepProfiles(u)
	require.False(t, got.Served, "one that is being deleted is no longer served")
	got, _ = keepProfiles(&unstructured.Unstructured{
		Object: map[string]any{"spec": map[string]any{"versions": []any{"broken", map[string]any{"name": "v1alpha1"}}}},
	})
	require.Equal(t, API{Found: true}, got)
}
