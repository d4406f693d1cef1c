// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// many returns a fleet of the given number of clusters with resources and labels.
func many(clusters int) *schedule.Scheduler {
	s := fleet(0)
	for i := range clusters {
		s.SetCluster(clusterOf(fmt.Sprintf("cluster%05d", i), labelled("region", fmt.Sprint(i%4)),
			amounts(clusterv1.ResourceCPU, fmt.Sprint(i%97)), amounts(clusterv1.ResourceMemory, fmt.Sprint(i%89))))
	}
	return s
}

func three() clusterv1beta1.PrioritizerPolicy {
	return policy(additive, builtIn("ResourceAllocatableCPU", 1))
}

// BenchmarkCold decides a placement for the first time.
func BenchmarkCold(b *testing.B) {
	s := many(10_000)
	for b.Loop() {
		s.DeletePlacement(key)
		s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{NumberOfClusters: number(10), Predicates: all(byLabel("region", "1")), PrioritizerPolicy: three()}))
		s.Decide(key, now)
	}
}

// BenchmarkExpression evaluates a CEL expression for all clusters.
func BenchmarkExpression(b *testing.B) {
	s := many(10_000)
	for b.Loop() {
		s.DeletePlacement(key)
		s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{
			NumberOfClusters: number(10),
			Predicates:       all(byCEL(clusterv1beta1.ClusterPredicate{}, `managedCluster.metadata.labels["region"] == "1"`)),
		}))
		s.Decide(key, now)
	}
}

// crowd returns 1,000 clusters and the given number of placements of 10 clusters each,
// decided and observed.
func crowd(placements int) *schedule.Scheduler {
	s := many(1000)
	for i := range placements {
		p := placementOf(clusterv1beta1.PlacementSpec{NumberOfClusters: number(10), Predicates: all(byLabel("region", fmt.Sprint(i%4)))})
		p.Name = fmt.Sprint("p", i)
		s.SetPlacement(p)
	}
	for _, k := range s.Take() {
		s.SetDecision(decisionOf(k, 1, names(s.Decide(k, now))...))
	}
	for _, k := range s.Take() {
		s.Decide(k, now)
	}
	return s
}

// BenchmarkLabelOfOneCluster changes a label that every placement reads, and
// decides all of them.
func BenchmarkLabelOfOneCluster(b *testing.B) {
	s := crowd(10_000)
	i := 0
	for b.Loop() {
		i++
		s.SetCluster(clusterOf("cluster00001", labelled("region", fmt.Sprint(i%4))))
		for _, k := range s.Take() {
			s.Decide(k, now)
		}
	}
}

// BenchmarkHeartbeat changes a condition that no placement reads.
func BenchmarkHeartbeat(b *testing.B) {
	s := crowd(1000)
	i := 0
	for b.Loop() {
		i++
		s.SetCluster(clusterOf("cluster00001", labelled("region", "1"), func(c *clusterv1.ManagedCluster) {
			c.Status.Conditions = []metav1.Condition{{Type: "Available", Message: fmt.Sprint(i % 2)}}
		}))
	}
}

// BenchmarkSchedule selects 10 of K clusters with the default prioritizers, with a number
// of other decisions of 10 clusters each: for a new placement, and for one of which a
// cluster has changed. It has the rows and columns of the contract's table.
func BenchmarkSchedule(b *testing.B) {
	var none clusterv1beta1.ClusterPredicate
	predicates := []struct {
		name string
		of   []clusterv1beta1.ClusterPredicate
	}{
		{
			"none",
			nil,
		}, {
			"label",
			all(byLabel("region", "1")),
		}, {
			"CEL",
			all(byCEL(none, `managedCluster.metadata.labels["region"] == "1"`)),
		},
	}
	for _, clusters := range []int{100, 1000, 5000} {
		for _, decisions := range []int{0, 1000, 10_000} {
			s := many(clusters)
			for i := range decisions {
				var of []string
				for j := range 10 {
					of = append(of, fmt.Sprintf("cluster%05d", (i+j)%clusters))
				}
				s.SetDecision(foreign(i, of...))
			}
			for _, p := range predicates {
				made := placementOf(clusterv1beta1.PlacementSpec{NumberOfClusters: number(10), Predicates: p.of})
				b.Run(fmt.Sprintf("clusters=%d/decisions=%d/predicate=%s/new", clusters, decisions, p.name), func(b *testing.B) {
					for b.Loop() {
						s.DeletePlacement(key)
						s.SetPlacement(made)
						s.Decide(key, now)
					}
				})
				b.Run(fmt.Sprintf("clusters=%d/decisions=%d/predicate=%s/changed", clusters, decisions, p.name), func(b *testing.B) {
					i := 0
					for b.Loop() {
						i++
						s.SetCluster(clusterOf("cluster00001", labelled("region", fmt.Sprint(i%4))))
						s.Decide(key, now)
					}
				})
			}
		}
	}
}
