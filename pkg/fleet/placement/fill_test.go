// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

func TestASetIsFilledByWhatItSelects(t *testing.T) {
	set := func(selector *metav1.LabelSelector) *clusterv1beta2.ManagedClusterSet {
		s := &clusterv1beta2.ManagedClusterSet{}
		s.Name = "eu"
		if selector != nil {
			s.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.SelectorTypeLabelSelector, LabelSelector: selector}
		}
		return s
	}
	hub := &fleet.Cluster{Context: "h"}
	in := metav1.LabelSelectorRequirement{Key: "env", Operator: metav1.LabelSelectorOpIn, Values: []string{"prod", "test"}}
	not := metav1.LabelSelectorRequirement{Key: "tier", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"test"}}
	for name, tc := range map[string]struct {
		set      *clusterv1beta2.ManagedClusterSet
		clusters []string
		want     fleet.Fix
	}{
		"a set of its own label": {set(nil), []string{"c1"}, AddToSet.On(hub, "set", "eu", "cluster", "c1")},
		"many clusters":          {set(nil), []string{"c1", "c2"}, AddToSet.On(hub, "set", "eu", "cluster", "")},
		"a set of labels": {
			set(&metav1.LabelSelector{MatchLabels: map[string]string{"b": "2", "a": "1"},
				MatchExpressions: []metav1.LabelSelectorRequirement{in}}),
			[]string{"c1"},
			LabelCluster.On(hub, "cluster", "c1", "labels", "a=1 b=2 env=prod"),
		},
		"a set that forbids labels, too": {
			set(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{in, not}}),
			[]string{"c1"},
			FitSelector.On(hub, "set", "eu"),
		},
	} {
		require.Equal(t, tc.want, Fill(tc.set, tc.clusters, hub), name)
	}
}
