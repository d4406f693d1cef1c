// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// Live compares the computed decision with the existing decision objects.
type Live struct {
	// Clusters are those of all decision objects, sorted, each once.
	Clusters []string `json:"clusters"`
	// Groups are the decision groups of the objects, without empty ones.
	Groups []Group `json:"decisionGroups"`
	// Same reports whether clusters, groups and order are as computed. If not, Added are
	// to be added, Removed to be removed, Moved are in a wrong group, and Reordered
	// reports whether the order of a group differs from that of the scores.
	Same      bool     `json:"same"`
	Added     []string `json:"added"`
	Removed   []string `json:"removed"`
	Moved     []string `json:"moved,omitempty"`
	Reordered bool     `json:"reordered,omitempty"`
}

// compare compares decision objects with groups. Order only counts if the placement asks
// for one.
func compare(objects []*clusterv1beta1.PlacementDecision, groups []Group, ordered bool) Live {
	out := Live{Clusters: []string{}, Groups: []Group{}, Added: []string{}, Removed: []string{}}
	is := map[string][]string{}
	order := []string{}
	for _, g := range liveGroups(objects) {
		out.Groups = append(out.Groups, Group{Name: g.name, Clusters: g.clusters})
		for _, name := range g.clusters {
			is[name] = append(is[name], g.place())
		}
		order = append(order, g.clusters...)
	}
	wanted := map[string]string{}
	var rank []string
	for i, g := range groups {
		for _, name := range g.Clusters {
			wanted[name] = place(i, g.Name)
			rank = append(rank, name)
		}
	}
	for name, places := range is {
		out.Clusters = append(out.Clusters, name)
		switch at, selected := wanted[name]; {
		case !selected:
			out.Removed = append(out.Removed, name)
		case len(places) > 1 || places[0] != at:
			out.Moved = append(out.Moved, name)
		}
	}
	for name := range wanted {
		if is[name] == nil {
			out.Added = append(out.Added, name)
		}
	}
	for _, list := range [][]string{out.Clusters, out.Added, out.Removed, out.Moved} {
		slices.Sort(list)
	}
	same := len(out.Added)+len(out.Removed)+len(out.Moved) == 0
	out.Reordered = same && ordered && !slices.Equal(order, rank)
	out.Same = same && !out.Reordered
	return out
}

// liveGroup is a decision group as found in its objects.
type liveGroup struct {
	index    int
	name     string
	clusters []string
}

func (g *liveGroup) place() string { return place(g.index, g.name) }

func place(index int, name string) string { return strconv.Itoa(index) + " " + name }

// liveGroups returns the groups of decision objects by index, the clusters of each in the
// order of its objects. An index that is not a number counts as 0.
func liveGroups(objects []*clusterv1beta1.PlacementDecision) []*liveGroup {
	sorted := slices.SortedFunc(slices.Values(objects), func(a, b *clusterv1beta1.PlacementDecision) int {
		// p-decision-2 comes before p-decision-10.
		return cmp.Or(indexOf(a)-indexOf(b), len(a.Name)-len(b.Name), strings.Compare(a.Name, b.Name))
	})
	var out []*liveGroup
	for _, d := range sorted {
		if len(d.Status.Decisions) == 0 {
			continue
		}
		g := &liveGroup{index: indexOf(d), name: d.Labels[clusterv1beta1.LabelDecisionGroupName]}
		if n := len(out); n > 0 && out[n-1].place() == g.place() {
			g = out[n-1]
		} else {
			out = append(out, g)
		}
		for _, one := range d.Status.Decisions {
			g.clusters = append(g.clusters, one.ClusterName)
		}
	}
	return out
}

func indexOf(d *clusterv1beta1.PlacementDecision) int {
	i, err := strconv.Atoi(d.Labels[clusterv1beta1.LabelDecisionGroupIndex])
	if err != nil {
		return 0
	}
	return i
}
