// SPDX-License-Identifier: Apache-2.0

package placement

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// needs is what placements read of clusters. It only grows while the loop runs, which
// costs nothing but memory.
type needs struct {
	// clusters is set when there is any placement: names, labels and taints are kept.
	clusters bool
	// claims and resources are read.
	claims, resources bool
	// everything may be read, by a CEL expression.
	everything bool
}

// Needed returns a function that drops from a cluster what deciding the placement does
// not need.
func Needed(p *clusterv1beta1.Placement) func(*clusterv1.ManagedCluster) *clusterv1.ManagedCluster {
	return needs{}.with(p).of
}

// with adds the needs of one more placement to n.
func (n needs) with(p *clusterv1beta1.Placement) needs {
	n.clusters = true
	for _, predicate := range p.Spec.Predicates {
		s := predicate.RequiredClusterSelector
		n.claims = n.claims || len(s.ClaimSelector.MatchExpressions) > 0
		n.everything = n.everything || len(s.CELSelector.CELExpressions) > 0
	}
	for _, c := range p.Spec.SpreadPolicy.SpreadConstraints {
		n.claims = n.claims || c.TopologyKeyType == clusterv1beta1.TopologyKeyTypeClaim
	}
	for _, g := range p.Spec.DecisionStrategy.GroupStrategy.DecisionGroups {
		n.claims = n.claims || len(g.GroupClusterSelector.ClaimSelector.MatchExpressions) > 0
	}
	for _, c := range p.Spec.PrioritizerPolicy.Configurations {
		if c.ScoreCoordinate != nil {
			switch c.ScoreCoordinate.BuiltIn {
			case clusterv1beta1.PrioritizerResourceAllocatableCPU, clusterv1beta1.PrioritizerResourceAllocatableMemory:
				n.resources = true
			}
		}
	}
	return n
}

// of returns what is kept of a cluster.
func (n needs) of(mc *clusterv1.ManagedCluster) *clusterv1.ManagedCluster {
	if n.everything {
		return mc
	}
	out := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: mc.Name, Labels: mc.Labels, DeletionTimestamp: mc.DeletionTimestamp},
		Spec:       clusterv1.ManagedClusterSpec{Taints: mc.Spec.Taints},
	}
	if n.claims {
		out.Status.ClusterClaims = mc.Status.ClusterClaims
	}
	if n.resources {
		out.Status.Allocatable, out.Status.Capacity = measured(mc.Status.Allocatable), measured(mc.Status.Capacity)
	}
	return out
}

// measured returns the resources that clusters are ranked by.
func measured(all clusterv1.ResourceList) clusterv1.ResourceList {
	out := clusterv1.ResourceList{}
	for _, name := range []clusterv1.ResourceName{clusterv1.ResourceCPU, clusterv1.ResourceMemory} {
		if q, ok := all[name]; ok {
			out[name] = q
		}
	}
	return out
}
