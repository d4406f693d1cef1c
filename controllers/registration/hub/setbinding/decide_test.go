// SPDX-License-Identifier: Apache-2.0

package setbinding

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
)

var now = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func binding(name, set string) *clusterv1beta2.ManagedClusterSetBinding {
	b := &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, Generation: 3},
	}
	b.Spec.ClusterSet = set
	return b
}

func TestABindingTellsWhetherItsSetExists(t *testing.T) {
	for name, tc := range map[string]struct {
		state   State
		status  metav1.ConditionStatus
		reason  string
		message string
	}{
		"no set": {
			State{Binding: binding("s", "s")},
			"False",
			"ClusterSetNotFound",
			"There is no ManagedClusterSet s",
		},
		"a set": {
			State{Binding: binding("s", "s"), Exists: true},
			"True",
			"ClusterSetBound",
			"ManagedClusterSet s is bound",
		},
		"a set that goes": {
			State{Binding: binding("s", "s"), Exists: true, Deleting: true},
			"True",
			"ClusterSetBound",
			"it is being deleted",
		},
		"the wrong name": {
			State{Binding: binding("x", "s"), Exists: true},
			"False",
			"ClusterSetNotFound",
			`spec.clusterSet is "s" but metadata.name is "x"`,
		},
		"no name of a set": {
			State{Binding: binding("x", "")},
			"False",
			"ClusterSetNotFound",
			"both are the name of the set",
		},
		"another condition": {
			State{Binding: withOther(binding("s", "s")), Exists: true},
			"True",
			"ClusterSetBound",
			"is bound",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(tc.state.Binding.Status.Conditions)
			tc.state.Now = now
			got := Decide(tc.state).Object.(*clusterv1beta2.ManagedClusterSetBinding)
			require.Len(t, got.Status.Conditions, before+1)
			c := got.Status.Conditions[before]
			require.Equal(t, tc.status, c.Status)
			require.Equal(t, tc.reason, c.Reason)
			require.Contains(t, c.Message, tc.message)
			require.EqualValues(t, 3, c.ObservedGeneration)
			tc.state.Binding = got
			require.Nil(t, Decide(tc.state).Object, "a correct condition is not written again")
			got.Generation++
			require.NotNil(t, Decide(tc.state).Object, "a new generation is observed")
		})
	}
	going := binding("s", "s")
	going.DeletionTimestamp = &metav1.Time{Time: now}
	require.Nil(t, Decide(State{Binding: going, Exists: true, Now: now}).Object)
}

func withOther(b *clusterv1beta2.ManagedClusterSetBinding) *clusterv1beta2.ManagedClusterSetBinding {
	b.Status.Conditions = []metav1.Condition{{Type: "Other", Status: "True", Reason: "R"}}
	return b
}
