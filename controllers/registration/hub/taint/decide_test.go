// SPDX-License-Identifier: Apache-2.0

package taint

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

func TestDecide(t *testing.T) {
	unreachable := clusterv1.Taint{Key: clusterv1.TaintUnreachable, Effect: clusterv1.TaintEffectNoSelect}
	unavailable := clusterv1.Taint{Key: clusterv1.TaintUnavailable, Effect: clusterv1.TaintEffectNoSelect}
	own := clusterv1.Taint{Key: "mine", Value: "v", Effect: clusterv1.TaintEffectPreferNoSelect}
	wrong := clusterv1.Taint{Key: clusterv1.TaintUnreachable, Value: "v", Effect: clusterv1.TaintEffectNoSelect}
	stamped := unreachable
	stamped.TimeAdded = &metav1.Time{}
	for name, tc := range map[string]struct {
		available metav1.ConditionStatus
		have      []clusterv1.Taint
		want      []clusterv1.Taint
	}{
		"a cluster that never reported is unreachable": {"", nil, []clusterv1.Taint{unreachable}},
		"what admission put on stays as it is":         {"", []clusterv1.Taint{stamped}, []clusterv1.Taint{stamped}},
		"an unknown cluster is unreachable": {
			"Unknown",
			[]clusterv1.Taint{unavailable},
			[]clusterv1.Taint{unreachable},
		},
		"an unhealthy cluster is unavailable": {
			"False",
			[]clusterv1.Taint{own, unreachable},
			[]clusterv1.Taint{own, unavailable},
		},
		"a healthy cluster has neither": {
			"True",
			[]clusterv1.Taint{unreachable, own, unavailable},
			[]clusterv1.Taint{own},
		},
		"a healthy cluster without taints": {"True", nil, nil},
		"a taint of ours with another value is put right": {
			"",
			[]clusterv1.Taint{wrong},
			[]clusterv1.Taint{unreachable},
		},
	} {
		t.Run(name, func(t *testing.T) {
			mc := &clusterv1.ManagedCluster{Spec: clusterv1.ManagedClusterSpec{Taints: tc.have}}
			if tc.available != "" {
				mc.Status.Conditions = []metav1.Condition{{Type: clusterv1.ConditionAvailable, Status: tc.available}}
			}
			before := mc.DeepCopy()
			plan := Decide(mc)
			require.Equal(t, tc.want, plan.Object.(*clusterv1.ManagedCluster).Spec.Taints)
			require.Equal(t, before, mc)
		})
	}
}

func TestAClusterThatGoesIsLeftAlone(t *testing.T) {
	mc := &clusterv1.ManagedCluster{}
	mc.DeletionTimestamp = &metav1.Time{}
	require.Nil(t, Decide(mc).Object)
}

func TestRight(t *testing.T) {
	mc := &clusterv1.ManagedCluster{}
	require.False(t, hasRightTaints(mc), "it never reported, and the taint is missing")
	mc.Spec.Taints = []clusterv1.Taint{
		{Key: "gpu", Effect: clusterv1.TaintEffectNoSelect},
		{Key: clusterv1.TaintUnreachable, Effect: clusterv1.TaintEffectNoSelect},
	}
	require.True(t, hasRightTaints(mc))
	mc.Status.Conditions = []metav1.Condition{{Type: clusterv1.ConditionAvailable, Status: metav1.ConditionTrue}}
	require.False(t, hasRightTaints(mc), "it is back")
	mc.Spec.Taints = mc.Spec.Taints[:1]
	require.True(t, hasRightTaints(mc))
	mc.Spec.Taints = nil
	mc.Status.Conditions = nil
	mc.DeletionTimestamp = &metav1.Time{}
	require.True(t, hasRightTaints(mc), "a cluster being deleted is left alone")
}
