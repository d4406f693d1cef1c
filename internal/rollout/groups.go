// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	clusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// Group is a decision group of a placement.
type Group struct {
	// Name may be empty; several groups may have the same.
	Name string
	// Index is unique, counted from 0.
	Index int
	// Clusters are the names of the clusters in the group.
	Clusters []string
}

// Groups reads the decision groups of one placement from the labels of its
// PlacementDecisions, sorted by index, their clusters by name. It fails if a label is
// missing or is not a number, if the indexes have a gap, or if two decisions of one index
// have different names.
func Groups(decisions []*clusterv1beta1.PlacementDecision) ([]Group, error) {
	byIndex := map[int]*Group{}
	seen := map[string]bool{}
	// The first group that names a cluster gets it.
	for _, d := range slices.SortedFunc(slices.Values(decisions), compareLabels) {
		text := d.Labels[clusterv1beta1.LabelDecisionGroupIndex]
		index, err := strconv.Atoi(text)
		if err != nil || index < 0 {
			return nil, fmt.Errorf("label %s of placementdecision %s: %q is not a number from 0", clusterv1beta1.LabelDecisionGroupIndex, d.Name, text)
		}
		name := d.Labels[clusterv1beta1.LabelDecisionGroupName]
		group := byIndex[index]
		if group == nil {
			group = &Group{Name: name, Index: index}
			byIndex[index] = group
		}
		if group.Name != name {
			return nil, fmt.Errorf("label %s of placementdecision %s: group %d has the names %q and %q",
				clusterv1beta1.LabelDecisionGroupName, d.Name, index, group.Name, name)
		}
		for _, c := range d.Status.Decisions {
			if !seen[c.ClusterName] {
				seen[c.ClusterName] = true
				group.Clusters = append(group.Clusters, c.ClusterName)
			}
		}
	}
	out := make([]Group, 0, len(byIndex))
	for i := range len(byIndex) {
		group, ok := byIndex[i]
		if !ok {
			return nil, fmt.Errorf("the decision groups have no index %d, though there are %d of them", i, len(byIndex))
		}
		slices.Sort(group.Clusters)
		out = append(out, *group)
	}
	return out, nil
}

// compareLabels orders decisions by index as a number, then by name.
func compareLabels(a, b *clusterv1beta1.PlacementDecision) int {
	i, _ := strconv.Atoi(a.Labels[clusterv1beta1.LabelDecisionGroupIndex])
	j, _ := strconv.Atoi(b.Labels[clusterv1beta1.LabelDecisionGroupIndex])
	return cmp.Or(cmp.Compare(i, j), strings.Compare(a.Name, b.Name))
}

// split separates the mandatory groups, in the order in which the strategy names them.
// Groups that the placement does not have are skipped.
func split(groups []Group, wanted []clusterv1alpha1.MandatoryDecisionGroup) (mandatory, rest []Group) {
	taken := map[int]bool{}
	for _, w := range wanted {
		for _, g := range groups {
			match := g.Index == int(w.GroupIndex)
			if w.GroupName != "" {
				match = g.Name == w.GroupName
			}
			if match && !taken[g.Index] {
				taken[g.Index] = true
				mandatory = append(mandatory, g)
			}
		}
	}
	for _, g := range groups {
		if !taken[g.Index] {
			rest = append(rest, g)
		}
	}
	return mandatory, rest
}
