// SPDX-License-Identifier: Apache-2.0

package managednamespace

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

func entry(set, name string, conditions ...metav1.Condition) clusterv1.ClusterSetManagedNamespace {
	return clusterv1.ClusterSetManagedNamespace{
		ClusterSet:             set,
		ManagedNamespaceConfig: clusterv1.ManagedNamespaceConfig{Name: name},
		Conditions:             conditions,
	}
}

type entries = []clusterv1.ClusterSetManagedNamespace

func TestEntriesComeAndGoAndKeepTheirConditions(t *testing.T) {
	applied := metav1.Condition{
		Type:    clusterv1.ConditionNamespaceAvailable,
		Status:  metav1.ConditionTrue,
		Reason:  clusterv1.ReasonNamespaceApplied,
		Message: "m",
	}
	for name, tc := range map[string]struct{ have, wanted, want entries }{
		"the first entry": {nil, entries{entry("a", "n")}, entries{entry("a", "n")}},
		"one more": {
			entries{entry("a", "n", applied)},
			entries{entry("a", "m"), entry("a", "n")},
			entries{entry("a", "m"), entry("a", "n", applied)},
		},
		"one less": {
			entries{entry("a", "n"), entry("b", "n", applied)},
			entries{entry("b", "n")},
			entries{entry("b", "n", applied)},
		},
		"the last one": {entries{entry("a", "n", applied)}, nil, nil},
		"in another order": {
			entries{entry("b", "n", applied), entry("a", "n")},
			entries{entry("a", "n"), entry("b", "n")},
			entries{entry("a", "n"), entry("b", "n", applied)},
		},
		"of another set": {entries{entry("a", "n", applied)}, entries{entry("b", "n")}, entries{entry("b", "n")}},
		"an entry added by another writer": {
			entries{entry("a", "n", applied), entry("a", "n")},
			entries{entry("a", "n")},
			entries{entry("a", "n", applied)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			mc := &clusterv1.ManagedCluster{}
			mc.Status.ManagedNamespaces = tc.have
			before := mc.DeepCopy()
			got := Decide(State{Cluster: mc, Wanted: tc.wanted}).Object.(*clusterv1.ManagedCluster)
			require.Equal(t, tc.want, got.Status.ManagedNamespaces)
			require.Equal(t, before, mc, "the input is not modified")
			require.Nil(t, Decide(State{Cluster: got, Wanted: tc.wanted}).Object)
		})
	}
	right := &clusterv1.ManagedCluster{}
	right.Status.ManagedNamespaces = entries{entry("a", "n", applied)}
	require.Nil(
		t, Decide(State{Cluster: right, Wanted: entries{entry("a", "n")}}).Object, "conditions are no reason to write",
	)
	right.DeletionTimestamp = &metav1.Time{}
	require.Nil(t, Decide(State{Cluster: right}).Object, "a cluster being deleted keeps its entries")
}
