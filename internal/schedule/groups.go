// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// group puts the selected clusters into groups.
func (d *decider) group(selected []ranked) []Group {
	left := slices.Clone(selected)
	if d.program.byScore {
		slices.SortStableFunc(left, compareRanked)
	} else {
		slices.SortFunc(left, func(a, b ranked) int { return strings.Compare(a.cluster.name, b.cluster.name) })
	}
	size := d.program.size.of(len(left))
	var out []Group
	for _, rule := range d.program.groups {
		var in, rest []ranked
		for _, r := range left {
			if rule.takes(r.cluster) {
				in = append(in, r)
			} else {
				rest = append(rest, r)
			}
		}
		out = append(out, d.chunk(rule.name, in, size)...)
		left = rest
	}
	if out = append(out, d.chunk("", left, size)...); out == nil {
		out = []Group{{}}
	}
	return out
}

func (g *groupRule) takes(c *cluster) bool {
	return (g.labels == nil || g.labels.Matches(labels.Set(c.object.Labels))) &&
		(g.claims == nil || g.claims.Matches(claims(c.object.Status.ClusterClaims)))
}

func (d *decider) chunk(name string, clusters []ranked, size int) []Group {
	var out []Group
	for part := range slices.Chunk(clusters, max(size, 1)) {
		g := Group{Name: name}
		for _, r := range part {
			one := Decision{Cluster: r.cluster.name}
			if d.program.byScore {
				score := r.score
				one.Score = &score
			}
			g.Clusters = append(g.Clusters, one)
		}
		out = append(out, g)
	}
	return out
}

// lastGroups returns the groups of the observed decisions, with the clusters for which
// keep returns true.
func (d *decider) lastGroups(keep func(*cluster) bool) []Group {
	var order []*decision
	for _, o := range d.placement.observed {
		order = append(order, o)
	}
	slices.SortFunc(order, func(a, b *decision) int {
		if i, j := a.index(), b.index(); i != j {
			return i - j
		}
		return compareNumbered(a.object.Name, b.object.Name)
	})
	var out []Group
	seen := map[string]bool{}
	index := -1
	for _, o := range order {
		var in []Decision
		for _, one := range o.object.Status.Decisions {
			c := d.s.clusters[one.ClusterName]
			if seen[one.ClusterName] || c == nil || c.object == nil || !keep(c) {
				continue
			}
			seen[one.ClusterName] = true
			in = append(in, Decision{Cluster: one.ClusterName, Score: one.Score})
		}
		if len(in) == 0 {
			continue
		}
		name := o.object.Labels[clusterv1beta1.LabelDecisionGroupName]
		if i := o.index(); len(out) == 0 || i != index || out[len(out)-1].Name != name {
			out, index = append(out, Group{Name: name}), i
		}
		last := &out[len(out)-1]
		last.Clusters = append(last.Clusters, in...)
	}
	if out == nil {
		out = []Group{{}}
	}
	return out
}

// compareNumbered orders names that end in a number by the number: p-decision-2 comes
// before p-decision-10.
func compareNumbered(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}
