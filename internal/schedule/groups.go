// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"

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
			if rule.match(r.cluster) {
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

func (d *decider) chunk(name string, clusters []ranked, size int) []Group {
	var out []Group
	for part := range slices.Chunk(clusters, max(size, 1)) {
		g := Group{Name: name, Clusters: make([]clusterv1beta1.ClusterDecision, 0, len(part))}
		for _, r := range part {
			one := clusterv1beta1.ClusterDecision{ClusterName: r.cluster.name}
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

// ObservedGroup is a decision group as its objects define it.
type ObservedGroup struct {
	Group
	// Index is that of the label; one that is not a number counts as 0.
	Index int
}

// Observed returns the decision groups of PlacementDecisions without empty ones: by index,
// the clusters of each in the order of its objects. Clusters that keep refuses are left
// out.
func Observed(objects iter.Seq[*clusterv1beta1.PlacementDecision], keep func(cluster string) bool) []ObservedGroup {
	var out []ObservedGroup
	for _, o := range slices.SortedFunc(objects, compareDecisions) {
		g := ObservedGroup{Group{Name: o.Labels[clusterv1beta1.LabelDecisionGroupName]}, indexOf(o)}
		for _, one := range o.Status.Decisions {
			if keep(one.ClusterName) {
				g.Clusters = append(g.Clusters, clusterv1beta1.ClusterDecision{ClusterName: one.ClusterName, Score: one.Score})
			}
		}
		switch n := len(out); {
		case len(g.Clusters) == 0:
		case n > 0 && out[n-1].Index == g.Index && out[n-1].Name == g.Name:
			out[n-1].Clusters = append(out[n-1].Clusters, g.Clusters...)
		default:
			out = append(out, g)
		}
	}
	return out
}

// compareDecisions orders decisions by index, and by name within one: p-decision-2 comes
// before p-decision-10.
func compareDecisions(a, b *clusterv1beta1.PlacementDecision) int {
	return cmp.Or(indexOf(a)-indexOf(b), len(a.Name)-len(b.Name), strings.Compare(a.Name, b.Name))
}

func indexOf(d *clusterv1beta1.PlacementDecision) int {
	i, err := strconv.Atoi(d.Labels[clusterv1beta1.LabelDecisionGroupIndex])
	if err != nil {
		return 0
	}
	return i
}

// lastGroups returns the groups of the observed decisions, with the clusters for which
// keep returns true.
func (d *decider) lastGroups(keep func(*cluster) bool) []Group {
	objects := func(yield func(*clusterv1beta1.PlacementDecision) bool) {
		for _, o := range d.placement.observed {
			if !yield(o.object) {
				return
			}
		}
	}
	seen := map[string]bool{}
	var out []Group
	for _, g := range Observed(objects, func(name string) bool {
		c := d.s.clusters[name]
		if seen[name] || c == nil || c.object == nil || !keep(c) {
			return false
		}
		seen[name] = true
		return true
	}) {
		out = append(out, g.Group)
	}
	if out == nil {
		out = []Group{{}}
	}
	return out
}
