// SPDX-License-Identifier: Apache-2.0

//go:build perf

package schedule

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/budget"
)

const (
	namespace, set = "fleet", "all"
	// regions is the number of regions that clusters are spread over.
	regions = 4
	// wanted is the number of clusters of each placement.
	wanted = 10
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func TestPlacementWithinItsBudget(t *testing.T) {
	b := budget.Open(t, "../schedule.yaml")
	unit := budget.CPU(t)
	large := fleet(10_000)
	b.Time("cold", repeat(large, func(i int) *clusterv1beta1.Placement {
		p := placement(fmt.Sprint("cold", i), byLabel(i))
		cpu := clusterv1beta1.ScoreCoordinate{Type: clusterv1beta1.ScoreCoordinateTypeBuiltIn, BuiltIn: clusterv1beta1.PrioritizerResourceAllocatableCPU}
		p.Spec.PrioritizerPolicy.Configurations = []clusterv1beta1.PrioritizerConfig{{ScoreCoordinate: &cpu}}
		return p
	}), unit)
	b.Time("expression", repeat(large, func(i int) *clusterv1beta1.Placement {
		return placement(fmt.Sprint("cel", i), byExpression(`managedCluster.metadata.labels["region"] == "1"`))
	})[1:], unit) // the first one compiles

	crowd := fleet(1000)
	for i := range 10_000 {
		crowd.SetPlacement(placement(fmt.Sprint("p", i), byLabel(i)))
	}
	settle(crowd)
	b.Time("labelOfOneCluster", labels(t, crowd), unit)
	beat := cluster(1, "1")
	crowd.SetCluster(beat)
	for _, key := range crowd.Take() {
		crowd.Decide(key, now)
	}
	before := crowd.Counters()
	for i := range 1000 {
		beat = beat.DeepCopy()
		beat.Status.Conditions = []metav1.Condition{{Type: clusterv1.ConditionAvailable, Message: fmt.Sprint(i)}}
		crowd.SetCluster(beat)
	}
	b.Count("heartbeat", float64(len(crowd.Take()))+float64(crowd.Counters().Evaluations-before.Evaluations))
	b.Bytes("memory", memory(t))
	b.Complete()
}

// repeat decides a new placement, several times.
func repeat(s *schedule.Scheduler, of func(i int) *clusterv1beta1.Placement) (took []time.Duration) {
	for i := range budget.Repetitions + 1 {
		began := time.Now()
		p := of(i)
		s.SetPlacement(p)
		for _, key := range s.Take() {
			s.Decide(key, now)
		}
		took = append(took, time.Since(began))
	}
	return took
}

// labels changes a label of one cluster that all placements read, and decides all
// of them.
func labels(t *testing.T, s *schedule.Scheduler) (took []time.Duration) {
	for i := range budget.Repetitions {
		began := time.Now()
		s.SetCluster(cluster(1, fmt.Sprint(i%regions)))
		woken := s.Take()
		for _, key := range woken {
			s.Decide(key, now)
		}
		took = append(took, time.Since(began))
		require.Equal(t, 10_000, len(woken))
	}
	return took
}

// memory returns how much memory 10,000 clusters and 1,000 placements take in addition to
// their objects. Half of the placements have a CEL expression.
func memory(t *testing.T) int64 {
	var objects []*clusterv1.ManagedCluster
	for i := range 10_000 {
		objects = append(objects, cluster(i, fmt.Sprint(i%regions)))
	}
	before := heap()
	s := empty()
	for _, c := range objects {
		s.SetCluster(c)
	}
	for i := range 1000 {
		p := placement(fmt.Sprint("p", i), byLabel(i))
		if i%2 == 0 {
			p.Spec.Predicates = byExpression(fmt.Sprintf(`managedCluster.metadata.labels["region"] == "%d"`, i%regions))
		}
		s.SetPlacement(p)
	}
	settle(s)
	used := heap() - before
	runtime.KeepAlive(objects)
	require.Len(t, s.Keys(), 1000)
	return used
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// settle decides all placements and records in the fleet what a controller would write.
func settle(s *schedule.Scheduler) {
	for range 2 {
		for _, key := range s.Take() {
			r := s.Decide(key, now)
			d := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
				Namespace: key.Namespace, Name: key.Name + "-decision-1", Labels: map[string]string{clusterv1beta1.LabelPlacement: key.Name},
			}}
			for _, one := range r.Groups[0].Clusters {
				d.Status.Decisions = append(d.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: one.ClusterName})
			}
			s.SetDecision(d)
		}
	}
	s.Take()
}

func empty() *schedule.Scheduler {
	s := schedule.New()
	s.SetClusterSet(&clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: set}})
	s.SetBinding(&clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: set}, Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: set},
	})
	return s
}

func fleet(clusters int) *schedule.Scheduler {
	s := empty()
	for i := range clusters {
		s.SetCluster(cluster(i, fmt.Sprint(i%regions)))
	}
	return s
}

func cluster(i int, region string) *clusterv1.ManagedCluster {
	c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("cluster%05d", i), Labels: map[string]string{clusterv1.LabelClusterSet: set, "region": region},
	}}
	amounts := clusterv1.ResourceList{
		clusterv1.ResourceCPU:    *resource.NewQuantity(int64(i%97), resource.DecimalSI),
		clusterv1.ResourceMemory: *resource.NewQuantity(int64(i%89), resource.BinarySI),
	}
	c.Status.Allocatable, c.Status.Capacity = amounts, amounts
	return c
}

func placement(name string, predicates []clusterv1beta1.ClusterPredicate) *clusterv1beta1.Placement {
	n := int32(wanted)
	return &clusterv1beta1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1},
		Spec:       clusterv1beta1.PlacementSpec{NumberOfClusters: &n, Predicates: predicates},
	}
}

func byLabel(i int) []clusterv1beta1.ClusterPredicate {
	var p clusterv1beta1.ClusterPredicate
	p.RequiredClusterSelector.LabelSelector.MatchLabels = map[string]string{"region": fmt.Sprint(i % regions)}
	return []clusterv1beta1.ClusterPredicate{p}
}

func byExpression(text string) []clusterv1beta1.ClusterPredicate {
	var p clusterv1beta1.ClusterPredicate
	p.RequiredClusterSelector.CELSelector.CELExpressions = []string{text}
	return []clusterv1beta1.ClusterPredicate{p}
}
