// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// maxExplained bounds the cost of expressions in one Explain, in the units that CEL
// counts. Expressions beyond it are reported as not evaluated.
const maxExplained = 10 * maxCostAtOnce

// Explain returns how the Result of Decide comes about, for every cluster. It evaluates
// each cluster again, so it is much slower than Decide. If the expressions of the
// placement are very expensive, the Result has Skip SkipMore and the rest is empty: call
// it again.
func (s *Scheduler) Explain(key Key, now time.Time) Report {
	d, r := s.decider(key, now)
	if r.Skip != SkipNone {
		return Report{Result: r}
	}
	if !d.run(true) {
		r.Skip = SkipMore
		return Report{Result: r}
	}
	e := &explainer{decider: d, report: Report{Result: d.result(r), Sets: s.setReports(key.Namespace, d.placement.object.Spec.ClusterSets)}}
	if !d.program.broken {
		e.report.Result.Scores = d.scores()
	}
	e.cost = 0
	e.prepare()
	for _, name := range slices.Sorted(maps.Keys(s.clusters)) {
		if c := s.clusters[name]; c.object != nil {
			e.report.Clusters = append(e.report.Clusters, e.cluster(c))
		}
	}
	return e.report
}

// explainer builds one Report.
type explainer struct {
	*decider
	report Report
	// required are the requirements of the predicates, by predicate.
	required []required
	// scores are those of the feasible clusters by prioritizer.
	scores map[*cluster][]int64
	ranks  map[*cluster]int
	totals map[*cluster]int64
	chosen map[*cluster]bool
	groups map[string]int
	counts *spreader
}

// prepare computes scores, ranks and groups of all clusters.
func (e *explainer) prepare() {
	e.scores, e.ranks, e.totals = map[*cluster][]int64{}, map[*cluster]int{}, map[*cluster]int64{}
	e.chosen, e.groups = map[*cluster]bool{}, map[string]int{}
	for i := range e.program.predicates {
		p := &e.program.predicates[i]
		e.required = append(e.required, required{requirementsOf(p.labels), requirementsOf(p.claims)})
	}
	for _, p := range e.program.prioritizers {
		e.report.Prioritizers = append(e.report.Prioritizers, p.Prioritizer)
	}
	order := slices.Clone(e.stages.feasible)
	slices.SortFunc(order, compareRanked)
	for i, f := range order {
		e.ranks[f.cluster], e.totals[f.cluster] = i+1, f.score
	}
	for _, p := range e.program.prioritizers {
		of := e.scorer(p, order)
		for _, f := range order {
			e.scores[f.cluster] = append(e.scores[f.cluster], of(f.cluster))
		}
	}
	e.counts = newSpreader(e.program.spread, order)
	for _, f := range e.stages.selected {
		e.chosen[f.cluster] = true
		for i := range e.program.spread {
			if place, has := topology(&e.program.spread[i], f.cluster); has {
				e.counts.counts[i].add(place)
			}
		}
	}
	for i, g := range e.report.Result.Groups {
		for _, one := range g.Clusters {
			e.groups[one.Cluster] = i
		}
	}
}

// cluster returns the verdict on one cluster.
func (e *explainer) cluster(c *cluster) ClusterReport {
	r := ClusterReport{Name: c.name, Group: -1}
	if i, in := e.groups[c.name]; in {
		r.Selected, r.Group, r.GroupName = true, i, e.report.Result.Groups[i].Name
	}
	for _, in := range c.sets {
		if slices.Contains(e.stages.eligible, in.name) {
			r.Sets = append(r.Sets, in.name)
		}
	}
	slices.Sort(r.Sets)
	e.setStage(c, &r)
	result := &e.report.Result
	switch {
	case e.program.broken && r.Selected:
		r.Reason = "kept from the last decisions: the placement is misconfigured"
	case e.program.broken && e.stages.candidates.has(c.slot):
		r.Reason = "nothing new is selected: the placement is misconfigured"
	case result.Delayed && r.Selected != (r.Stage == StageSelected):
		r.Reason += fmt.Sprintf("; scores alone would change that, and scoreRateLimit holds it back until %s", result.LookAgain.UTC().Format(time.RFC3339))
	}
	return r
}

// setStage sets the stage that the cluster reached, and why it went no further.
func (e *explainer) setStage(c *cluster, r *ClusterReport) {
	if !e.stages.candidates.has(c.slot) {
		r.Stage, r.Reason = StageNotInSet, e.whyOutside()
		if len(r.Sets) > 0 {
			r.Stage, r.Reason = StageDeleting, "the cluster is being deleted"
		}
		return
	}
	r.Taints = e.taintReports(c)
	if e.program.broken {
		r.Stage = StageRank
		return
	}
	matched := e.stages.matched.has(c.slot)
	r.Predicates = e.predicateReports(c)
	r.Rank, r.Total, r.Scores = e.ranks[c], e.totals[c], e.scores[c]
	switch {
	case !matched:
		r.Stage, r.Reason = StagePredicate, whyNoPredicate(r.Predicates)
	case r.Rank == 0:
		r.Stage, r.Reason = StageTaint, whyTainted(r.Taints)
	default:
		e.setRankedStage(c, r)
	}
}

// whyOutside returns why clusters are not candidates.
func (e *explainer) whyOutside() string {
	switch {
	case len(e.stages.bound) == 0:
		return "no set is bound to the namespace"
	case len(e.stages.eligible) == 0:
		return "none of spec.clusterSets is bound to the namespace"
	}
	return fmt.Sprintf("the cluster is in none of the sets %.400s", strings.Join(e.stages.eligible, ", "))
}

// setRankedStage sets the stage of a feasible cluster.
func (e *explainer) setRankedStage(c *cluster, r *ClusterReport) {
	refused := ""
	for i := range e.program.spread {
		term := &e.program.spread[i]
		place, has := topology(term, c)
		b := bucket{places: make([]string, len(e.program.spread)), has: make([]bool, len(e.program.spread))}
		b.places[i], b.has[i] = place, has
		one := SpreadReport{Topology: place, Present: has, Violated: !e.chosen[c] && e.counts.violates(i, &b)}
		r.Spread = append(r.Spread, one)
		switch {
		case !one.Violated || term.WhenUnsatisfiable != clusterv1beta1.DoNotSchedule:
		case !has:
			refused = fmt.Sprintf("the cluster has no %s %s to be spread by", strings.ToLower(string(term.TopologyKeyType)), term.TopologyKey)
		default:
			refused = fmt.Sprintf("%s=%.100s would exceed the lowest count by more than %d", term.TopologyKey, place, term.MaxSkew)
		}
	}
	cut := len(e.stages.selected)
	switch {
	case e.chosen[c]:
		r.Stage, r.Reason = StageSelected, fmt.Sprintf("selected: rank %d of %d, %d are wanted", r.Rank, len(e.ranks), e.wanted())
	case refused != "" && cut < e.wanted():
		r.Stage, r.Reason = StageSpread, refused
	case refused != "" && r.Rank <= cut:
		r.Stage, r.Reason = StageSpread, refused
	case r.Rank <= cut:
		r.Stage, r.Reason = StageSpread, fmt.Sprintf("rank %d would suffice, but other clusters spread better", r.Rank)
	default:
		r.Stage, r.Reason = StageRank, fmt.Sprintf("rank %d of %d, and %d are wanted", r.Rank, len(e.ranks), e.wanted())
		for _, t := range r.Taints {
			if t.Last {
				r.Reason += "; " + t.Reason
			}
		}
	}
}

// wanted returns how many clusters are to be selected.
func (e *explainer) wanted() int {
	if e.program.wanted < 0 {
		return len(e.stages.feasible)
	}
	return e.program.wanted
}

func whyTainted(taints []TaintReport) string {
	var out []string
	for _, t := range taints {
		if !t.Tolerated {
			out = append(out, t.Reason)
		}
	}
	return strings.Join(out[:min(len(out), maxNames)], "; ")
}

// whyNoPredicate names what failed in each predicate.
func whyNoPredicate(predicates []PredicateReport) string {
	var out []string
	for i, p := range predicates[:min(len(predicates), maxNames)] {
		for _, part := range p.Parts {
			if !part.Matched {
				out = append(out, fmt.Sprintf("predicate %d: %s", i+1, part.text()))
				break
			}
		}
	}
	return strings.Join(out, "; ")
}

// text returns what a part requires and what the cluster has.
func (p *PartReport) text() string {
	switch {
	case p.Part == PartCEL && p.Error != "":
		return fmt.Sprintf("%.200s: %.200s", p.Requirement, p.Error)
	case p.Part == PartCEL:
		return fmt.Sprintf("%.200s is false", p.Requirement)
	case p.Present:
		return fmt.Sprintf("%s %.200s does not hold, the value is %.200q", p.Part, p.Requirement, p.Actual)
	default:
		return fmt.Sprintf("%s %.200s does not hold, the cluster has none of that name", p.Part, p.Requirement)
	}
}
