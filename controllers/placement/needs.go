// SPDX-License-Identifier: Apache-2.0

package placement

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// needs is what placements read of clusters. It only grows while the loop runs:
// what is kept of clusters is a question of memory alone.
type needs struct {
	// clusters: there is a placement at all. Names, labels and taints are kept.
	clusters bool
	// claims and resources are read.
	claims, resources bool
	// everything may be read, by an expression.
	everything bool
}

// Needed makes a cluster as small as the decision of one placement allows.
func Needed(p *clusterv1beta1.Placement) func(*clusterv1.ManagedCluster) *clusterv1.ManagedCluster {
	return needs{}.with(p).of
}

// with is n and what one more placement needs.
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

// of is what is kept of a cluster.
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

// measured are the resources that clusters are ranked by.
func measured(all clusterv1.ResourceList) clusterv1.ResourceList {
	out := clusterv1.ResourceList{}
	for _, name := range []clusterv1.ResourceName{clusterv1.ResourceCPU, clusterv1.ResourceMemory} {
		if q, ok := all[name]; ok {
			out[name] = q
		}
	}
	return out
}
