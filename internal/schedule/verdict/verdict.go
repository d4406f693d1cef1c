// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"cmp"
	"slices"

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
	Sets []Set `json:"clusterSets"`
	// Clusters are all clusters of the fleet with their verdict, by name.
	Clusters []Cluster `json:"clusters"`
	// Problems are errors and ineffective fields in its spec.
	Problems []Problem `json:"problems,omitempty"`
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

// Set is what a cluster set contributes.
type Set struct {
	Name     string `json:"name"`
	Bound    bool   `json:"bound"`
	Exists   bool   `json:"exists"`
	Eligible bool   `json:"eligible"`
	Members  int    `json:"members"`
	Problem  string `json:"problem,omitempty"`
}

// Problem is something wrong in a spec.
type Problem struct {
	Severity string `json:"severity"`
	Field    string `json:"field"`
	Message  string `json:"message"`
	Fix      string `json:"fix"`
}

// Cluster explains why a cluster is in or out.
type Cluster struct {
	Name string `json:"name"`
	// Stage is how far it got: NotInSet, Deleting, Predicate, Taint, Spread, Rank or
	// Selected.
	Stage    string `json:"stage"`
	Selected bool   `json:"selected"`
	Reason   string `json:"reason"`
	// Sets are the sets of the placement that it is in.
	Sets       []string    `json:"clusterSets,omitempty"`
	Predicates []Predicate `json:"predicates,omitempty"`
	Taints     []Taint     `json:"taints,omitempty"`
	// Scores are by prioritizer, and Total is their weighted sum, for clusters that pass
	// all filters; Rank counts them from 1.
	Scores map[string]int64 `json:"scores,omitempty"`
	Total  *int64           `json:"total,omitempty"`
	Rank   int              `json:"rank,omitempty"`
	// Group is the index of its decision group, with its name; nil if the cluster is not
	// selected.
	Group     *int   `json:"decisionGroup,omitempty"`
	GroupName string `json:"decisionGroupName,omitempty"`
}

// Predicate is the result of a predicate for a cluster.
type Predicate struct {
	Matched bool   `json:"matched"`
	Parts   []Part `json:"parts,omitempty"`
}

// Part is the result of one requirement of a predicate for a cluster.
type Part struct {
	// Part is label, claim or cel.
	Part        string `json:"part"`
	Requirement string `json:"requirement"`
	Matched     bool   `json:"matched"`
	// Actual is the value of the label or claim; nil if there is none.
	Actual *string `json:"actual,omitempty"`
	Error  string  `json:"error,omitempty"`
	Cost   uint64  `json:"cost,omitempty"`
}

// Taint is the effect of a taint.
type Taint struct {
	Key       string `json:"key"`
	Value     string `json:"value,omitempty"`
	Effect    string `json:"effect"`
	Tolerated bool   `json:"tolerated"`
	// Until is when that changes by time alone.
	Until  *metav1.Time `json:"until,omitempty"`
	Reason string       `json:"reason"`
}

// Of converts a report on a placement, and compares it with the existing decisions of the
// placement. What only the caller knows (Frozen, Hints) is left empty.
func Of(p *clusterv1beta1.Placement, report *schedule.Report, live []*clusterv1beta1.PlacementDecision) Explanation {
	r := &report.Result
	out := Explanation{Report: *report, Kept: r.Kept, Delayed: r.Delayed, Selected: []string{}, Groups: []Group{}, Sets: []Set{}, Clusters: []Cluster{},
		Placement: Placement{Spec: p.Spec, Metadata: Metadata{Name: p.Name, Namespace: p.Namespace, Labels: p.Labels, Annotations: p.Annotations}},
		Warnings:  slices.Clone(r.Warnings), Conditions: []Condition{}}
	for _, g := range r.Groups {
		group := Group{Name: g.Name, Clusters: []string{}}
		for _, d := range g.Clusters {
			group.Clusters = append(group.Clusters, d.Cluster)
		}
		out.Selected = append(out.Selected, group.Clusters...)
		out.Groups = append(out.Groups, group)
	}
	slices.Sort(out.Selected)
	for _, c := range []metav1.Condition{r.Misconfigured, r.Satisfied} {
		if c.Type != "" {
			out.Conditions = append(out.Conditions, Condition{c.Type, string(c.Status), c.Reason, c.Message})
		}
	}
	for _, s := range report.Sets {
		out.Sets = append(out.Sets, Set(s))
	}
	for _, problem := range r.Problems {
		out.Problems = append(out.Problems, Problem{string(problem.Severity), problem.Field, problem.Message, problem.Fix})
	}
	for i := range report.Clusters {
		out.Clusters = append(out.Clusters, verdict(report, &report.Clusters[i]))
	}
	out.pipeline(report)
	out.Live = compare(live, out.Groups, p.Spec.SortBy == clusterv1beta1.SortByScore)
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
		e.AggregatedScores = append(e.AggregatedScores, Aggregated{c.Name, c.Total})
	}
	slices.SortStableFunc(e.AggregatedScores, func(a, b Aggregated) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ClusterName, b.ClusterName))
	})
	e.FilteredPipelineResults = []Filtered{{"Predicate", matched}, {"Predicate,TaintToleration", ranked}}
	for i, p := range report.Prioritizers {
		scores := map[string]int64{}
		for _, c := range feasible {
			if i < len(c.Scores) {
				scores[c.Name] = c.Scores[i]
			}
		}
		e.PrioritizeResults = append(e.PrioritizeResults, Prioritized{p.Name, p.Weight, scores})
	}
}

// verdict returns the report of one cluster.
func verdict(report *schedule.Report, c *schedule.ClusterReport) Cluster {
	out := Cluster{Name: c.Name, Stage: string(c.Stage), Selected: c.Selected, Reason: c.Reason, Sets: c.Sets, Rank: c.Rank}
	for _, p := range c.Predicates {
		one := Predicate{Matched: p.Matched}
		for _, part := range p.Parts {
			v := Part{Part: string(part.Part), Requirement: part.Requirement, Matched: part.Matched, Error: part.Error, Cost: part.Cost}
			if part.Present {
				v.Actual = &part.Actual
			}
			one.Parts = append(one.Parts, v)
		}
		out.Predicates = append(out.Predicates, one)
	}
	for _, t := range c.Taints {
		one := Taint{Key: t.Taint.Key, Value: t.Taint.Value, Effect: string(t.Taint.Effect), Tolerated: t.Tolerated, Reason: t.Reason}
		if !t.Until.IsZero() {
			one.Until = &metav1.Time{Time: t.Until}
		}
		out.Taints = append(out.Taints, one)
	}
	if c.Rank > 0 {
		out.Total, out.Scores = &c.Total, map[string]int64{}
		for i, p := range report.Prioritizers {
			if i < len(c.Scores) {
				out.Scores[p.Name] = c.Scores[i]
			}
		}
	}
	if c.Group >= 0 {
		out.Group, out.GroupName = &c.Group, c.GroupName
	}
	return out
}
