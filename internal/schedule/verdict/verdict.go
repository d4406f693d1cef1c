// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"cmp"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// Explanation is what a placement selects and why. The first four fields have the names
// of the API's debug endpoint.
type Explanation struct {
	Placement               Placement     `json:"placement"`
	FilteredPipelineResults []Filtered    `json:"filteredPipelineResults,omitempty"`
	PrioritizeResults       []Prioritized `json:"prioritizeResults,omitempty"`
	AggregatedScores        []Aggregated  `json:"aggregatedScores,omitempty"`
	// Selected are the clusters that it selects, sorted.
	Selected []string `json:"selected"`
	// Groups are the decision groups in order.
	Groups []Group `json:"decisionGroups"`
	// Conditions are those that the hub sets on it, without times.
	Conditions []Condition `json:"conditions"`
	// Live is the existing decision, compared with this one.
	Live Live `json:"liveDecision"`
	// Sets are those that are bound or named.
	Sets []schedule.SetReport `json:"clusterSets"`
	// Clusters are all clusters of the fleet with their verdict, by name.
	Clusters []schedule.ClusterReport `json:"clusters"`
	// Problems are errors and ineffective fields in its spec.
	Problems []schedule.Problem `json:"problems,omitempty"`
	// Warnings are what could not be taken into account, Hints how to get more clusters
	// selected.
	Warnings []string `json:"warnings,omitempty"`
	Hints    []string `json:"hints,omitempty"`
	// Frozen means that an annotation stops the hub from deciding, Kept that the spec is
	// invalid and the placement keeps its last decision, Delayed that scoreRateLimit
	// holds a change back.
	Frozen  bool `json:"frozen,omitempty"`
	Kept    bool `json:"kept,omitempty"`
	Delayed bool `json:"delayed,omitempty"`

	// Report is the source of all of this.
	Report schedule.Report `json:"-"`
}

// Placement is the part of a placement that affects its decision.
type Placement struct {
	Metadata Metadata                     `json:"metadata"`
	Spec     clusterv1beta1.PlacementSpec `json:"spec"`
}

// Metadata identifies a placement.
type Metadata struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Filtered lists the clusters that are left after the named filters.
type Filtered struct {
	Name             string   `json:"name"`
	FilteredClusters []string `json:"filteredClusters"`
}

// Prioritized is the score of one prioritizer for each feasible cluster.
type Prioritized struct {
	Name   string           `json:"name"`
	Weight int64            `json:"weight"`
	Scores map[string]int64 `json:"scores"`
}

// Aggregated is the sum of weight times score of one cluster.
type Aggregated struct {
	ClusterName string `json:"clusterName"`
	Score       int64  `json:"score"`
}

// Group is one decision group.
type Group struct {
	Name     string   `json:"name"`
	Clusters []string `json:"clusters"`
}

// Condition is a condition without times.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Of converts a report on a placement, and compares it with the existing decisions of the
// placement. What only the caller knows (Frozen, Hints) is left empty.
func Of(p *clusterv1beta1.Placement, report *schedule.Report, live []*clusterv1beta1.PlacementDecision) Explanation {
	r := &report.Result
	out := Explanation{
		Report: *report, Kept: r.Kept, Delayed: r.Delayed, Selected: []string{}, Groups: []Group{}, Conditions: []Condition{},
		Sets: append([]schedule.SetReport{}, report.Sets...), Clusters: append([]schedule.ClusterReport{}, report.Clusters...),
		Problems: r.Problems, Warnings: slices.Clone(r.Warnings),
		Placement: Placement{Spec: p.Spec, Metadata: Metadata{Name: p.Name, Namespace: p.Namespace, Labels: p.Labels, Annotations: p.Annotations}},
	}
	for _, g := range r.Groups {
		group := Group{Name: g.Name, Clusters: namesOf(g.Clusters)}
		out.Selected = append(out.Selected, group.Clusters...)
		out.Groups = append(out.Groups, group)
	}
	slices.Sort(out.Selected)
	for _, c := range []metav1.Condition{r.Misconfigured, r.Satisfied} {
		if c.Type != "" {
			out.Conditions = append(out.Conditions, Condition{c.Type, string(c.Status), c.Reason, c.Message})
		}
	}
	out.pipeline(report)
	out.Live = compare(live, out.Groups, p.Spec.SortBy == clusterv1beta1.SortByScore)
	return out
}

func namesOf(clusters []clusterv1beta1.ClusterDecision) []string {
	out := make([]string, 0, len(clusters))
	for _, c := range clusters {
		out = append(out, c.ClusterName)
	}
	return out
}

// pipeline fills the fields of the debug endpoint.
func (e *Explanation) pipeline(report *schedule.Report) {
	matched, feasible := []string{}, []*schedule.ClusterReport{}
	for i := range report.Clusters {
		c := &report.Clusters[i]
		if slices.ContainsFunc(
			c.Predicates, func(p schedule.PredicateReport) bool { return p.Matched },
		) || len(c.Sets) > 0 && len(e.Placement.Spec.Predicates) == 0 && c.Stage != schedule.StageDeleting {
			matched = append(matched, c.Name)
		}
		if c.Rank > 0 {
			feasible = append(feasible, c)
		}
	}
	if report.Result.Candidates == 0 {
		return
	}
	slices.SortFunc(feasible, func(a, b *schedule.ClusterReport) int { return cmp.Compare(a.Rank, b.Rank) })
	ranked := []string{}
	for _, c := range feasible {
		ranked = append(ranked, c.Name)
		e.AggregatedScores = append(e.AggregatedScores, Aggregated{c.Name, *c.Total})
	}
	slices.SortStableFunc(e.AggregatedScores, func(a, b Aggregated) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ClusterName, b.ClusterName))
	})
	e.FilteredPipelineResults = []Filtered{{"Predicate", matched}, {"Predicate,TaintToleration", ranked}}
	for _, p := range report.Prioritizers {
		scores := map[string]int64{}
		for _, c := range feasible {
			scores[c.Name] = c.Scores[p.Name]
		}
		e.PrioritizeResults = append(e.PrioritizeResults, Prioritized{p.Name, p.Weight, scores})
	}
}

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
	for _, observed := range schedule.Observed(slices.Values(objects), func(string) bool { return true }) {
		g := Group{Name: observed.Name, Clusters: namesOf(observed.Clusters)}
		out.Groups = append(out.Groups, g)
		for _, name := range g.Clusters {
			is[name] = append(is[name], place(observed.Index, g.Name))
		}
		order = append(order, g.Clusters...)
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

// place identifies a group.
func place(index int, name string) string { return strconv.Itoa(index) + " " + name }
