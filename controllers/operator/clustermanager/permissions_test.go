// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

func TestTheHubSaysWhetherPermissionsAreKept(t *testing.T) {
	gates := func(mode operatorv1.FeatureGateModeType) *operatorv1.WorkConfiguration {
		return &operatorv1.WorkConfiguration{FeatureGates: []operatorv1.FeatureGate{{Feature: "ClusterPermission", Mode: mode}}}
	}
	on, off := gates(operatorv1.FeatureGateModeTypeEnable), gates(operatorv1.FeatureGateModeTypeDisable)
	ours, theirs := API{Found: true, Served: true, Ours: true}, API{Found: true, Served: true}
	newer := API{Found: true, Versions: []string{"v1"}}
	for name, tc := range map[string]struct {
		gate            *operatorv1.WorkConfiguration
		apis            APIs
		applies, served bool
		status          metav1.ConditionStatus
		message         string
	}{
		"by default nothing is done":            {nil, APIs{}, false, false, "", ""},
		"without the gate nothing is done":      {off, APIs{Permissions: ours}, false, true, "", ""},
		"where there is none, it is applied":    {on, APIs{}, true, false, "False", "Waiting for the API"},
		"its own is kept as it should be":       {on, APIs{Permissions: ours}, true, true, "True", "are sent"},
		"that of somebody else is left alone":   {on, APIs{Permissions: theirs}, false, true, "True", "are sent"},
		"one that serves another version":       {on, APIs{Permissions: newer}, false, false, "False", "serves v1 and not v1alpha1"},
		"another controller serves them":        {on, APIs{Permissions: theirs, Rival: true}, false, false, "False", "cluster-permission serves"},
		"another controller, without this gate": {off, APIs{Permissions: theirs, Rival: true}, false, false, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			with := state(t, func(s *State) { s.APIs = tc.apis })
			with.ClusterManager.Spec.WorkConfiguration = tc.gate
			with.ClusterManager.Status.Conditions = []metav1.Condition{{Type: operatorv1.ConditionClusterPermissionsKept, Status: "Unknown", Reason: "R"}}
			d := Decide(with)
			require.Equal(t, tc.gate == on, d.Features.ClusterPermission)
			require.Equal(t, tc.served, d.Features.PermissionsServed)
			require.Equal(t, tc.applies, slices.Contains(definitionsFor(d.Features, tc.apis.Permissions), crd.ClusterPermissions))
			c := apimeta.FindStatusCondition(d.Object.(*operatorv1.ClusterManager).Status.Conditions, operatorv1.ConditionClusterPermissionsKept)
			if tc.status == "" {
				require.Nil(t, c)
				return
			}
			require.Equal(t, tc.status, c.Status)
			require.Contains(t, c.Message, tc.message)
		})
	}
}

func TestTheRightsOnPermissionsComeWithTheirGate(t *testing.T) {
	listed := func(change func(*rendering)) bool {
		r := usual(change)
		objects, err := r.objects()
		require.NoError(t, err)
		for _, u := range objects {
			if u.GetName() == hub.PermissionsRole {
				return true
			}
		}
		return false
	}
	require.False(t, listed(nil))
	require.True(t, listed(func(r *rendering) { r.Features.ClusterPermission = true }))
	role := rendered[rbacv1.ClusterRole](t, usual(func(r *rendering) { r.Features.ClusterPermission = true }), "ClusterRole", hub.PermissionsRole)
	require.NotEmpty(t, role.Rules)

	args := func(served bool, name string) []string {
		r := usual(func(r *rendering) { r.Features.ClusterPermission, r.Features.PermissionsServed = true, served })
		i := slices.IndexFunc(components, func(c component) bool { return c.name == name })
		return r.args(components[i])
	}
	const flag = "--feature-gates=ClusterPermission=true"
	require.NotContains(t, args(false, "work-controller"), flag, "its loop needs the API")
	require.Contains(t, args(true, "work-controller"), flag)
	require.Contains(t, args(false, "work-webhook"), flag)
	f, err := ParseGates(map[string]string{"ClusterPermission": "true"})
	require.NoError(t, err)
	require.True(t, f.ClusterPermission && f.PermissionsServed)
}
