// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// tainted reports whether a cluster has exactly these taints.
func tainted(keys ...string) func(*clusterv1.ManagedCluster) bool {
	return func(mc *clusterv1.ManagedCluster) bool {
		if len(mc.Spec.Taints) != len(keys) {
			return false
		}
		for i, taint := range mc.Spec.Taints {
			if taint.Key != keys[i] {
				return false
			}
		}
		return true
	}
}

// state sets Available as the administrator, whether the cluster is accepted or
// not.
func (s *scene) state(t testing.TB, name string, status metav1.ConditionStatus) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []metav1.Condition{
		{Type: clusterv1.ConditionAvailable, Status: status, Reason: "Test", LastTransitionTime: metav1.Now()},
	}}})
	require.NoError(t, err)
	require.NoError(t, patch(s.dyn, name, string(body), "status"))
}

func TestTaintsFollowTheStateOfACluster(t *testing.T) {
	s := sharedHub(t)
	dyn, _ := s.bootstrap(t)
	settled(t, func() error { return create(dyn, cluster("tainted")) })
	mc := s.get(t, "tainted")
	require.True(t, tainted(clusterv1.TaintUnreachable)(mc), "right after the creation")
	require.Equal(t, clusterv1.TaintEffectNoSelect, mc.Spec.Taints[0].Effect)
	require.Empty(t, mc.Spec.Taints[0].Value)
	require.NotNil(t, mc.Spec.Taints[0].TimeAdded)

	s.state(t, "tainted", metav1.ConditionTrue)
	s.await(t, "tainted", "has no taint, although it is not accepted", tainted())
	require.NoError(t, patch(s.dyn, "tainted", `{"spec":{"taints":[{"key":"mine","value":"v","effect":"PreferNoSelect"}]}}`))
	mc = s.await(t, "tainted", "has the user's", tainted("mine"))
	mine := mc.Spec.Taints[0]
	s.state(t, "tainted", metav1.ConditionFalse)
	s.await(t, "tainted", "is unavailable", tainted("mine", clusterv1.TaintUnavailable))
	s.state(t, "tainted", metav1.ConditionUnknown)
	mc = s.await(t, "tainted", "is unreachable, and no longer unavailable", tainted("mine", clusterv1.TaintUnreachable))
	require.Equal(t, mine, mc.Spec.Taints[0], "taints of users are left alone, their time too")
	require.NotNil(t, mc.Spec.Taints[1].TimeAdded)

	require.NoError(t, patch(s.dyn, "tainted", `{"spec":{"taints":null}}`))
	s.await(t, "tainted", "gets it back", tainted(clusterv1.TaintUnreachable))
	require.NoError(t, patch(s.dyn, "tainted", `{"spec":{"taints":[{"key":"`+clusterv1.TaintUnreachable+`","value":"v","effect":"NoSelectIfNew"}]}}`))
	s.await(t, "tainted", "has it as it has to be", func(mc *clusterv1.ManagedCluster) bool {
		return tainted(clusterv1.TaintUnreachable)(mc) && mc.Spec.Taints[0].Effect == clusterv1.TaintEffectNoSelect && mc.Spec.Taints[0].Value == ""
	})
	s.state(t, "tainted", metav1.ConditionTrue)
	s.await(t, "tainted", "has no taint", tainted())
}
