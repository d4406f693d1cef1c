// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// key is the key of the placement in most tests.
var key = schedule.Key{Namespace: "ns", Name: "p"}

func clusterOf(name string, changes ...func(*clusterv1.ManagedCluster)) *clusterv1.ManagedCluster {
	c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{
		Name:   name,
		Labels: map[string]string{clusterv1.LabelClusterSet: "prod"},
	}}
	for _, change := range changes {
		change(c)
	}
	return c
}

func setOf(name string) *clusterv1beta2.ManagedClusterSet {
	return &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func bindingOf(namespace, name string) *clusterv1beta2.ManagedClusterSetBinding {
	return &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: name},
	}
}

func placementOf(spec clusterv1beta1.PlacementSpec) *clusterv1beta1.Placement {
	return &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
		Namespace:  key.Namespace,
		Name:       key.Name,
		Generation: 1,
	}, Spec: spec}
}

// fleet returns a Scheduler with that many clusters in the set prod, which is bound in
// ns.
func fleet(clusters int) *schedule.Scheduler {
	s := schedule.New()
	s.SetClusterSet(setOf("prod"))
	s.SetBinding(bindingOf("ns", "prod"))
	for i := range clusters {
		s.SetCluster(clusterOf(fmt.Sprintf("c%d", i+1)))
	}
	return s
}

// names returns the selected clusters by group, in order.
func names(r schedule.Result) []string {
	out := []string{}
	for _, g := range r.Groups {
		for _, c := range g.Clusters {
			out = append(out, c.ClusterName)
		}
	}
	return out
}

func number(n int32) *int32 { return &n }

func TestAPlacementSelectsSoManyClustersOfItsSets(t *testing.T) {
	s := fleet(3)
	s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{NumberOfClusters: number(2)}))
	require.Equal(t, []schedule.Key{key}, s.Take())
	require.Empty(t, s.Take())
	r := s.Decide(key, now)
	require.Equal(t, []string{"c1", "c2"}, names(r))
	require.Equal(t, "AllDecisionsScheduled", r.Satisfied.Reason)
	require.Equal(t, int64(1), r.Satisfied.ObservedGeneration)
}
