// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-ocm/kubectl-ocm/internal/cel"
	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

const (
	// maxExplained bounds the cost of expressions in one Explain, in the units that CEL
	// counts. Expressions beyond it are reported as not evaluated.
	maxExplained = 10 * maxCostAtOnce
	// maxRequirement bounds the text of one requirement, in bytes: a selector may list any
	// number of values, and the text is repeated for every cluster.
	maxRequirement = 1024
)

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
	// required are the requirements of the selectors, by predicate.
	required [][]requirement
	// order are the feasible clusters, best first, and ranks their positions from 1.
	order []ranked
	ranks map[*cluster]int
	// scorers are those of the prioritizers.
	scorers []scorer
	chosen  map[*cluster]bool
	groups  map[string]int
	counts  *spreader
}

// requirement is one part of a selector, with its text.
type requirement struct {
	labels.Requirement
	part Part
	text string
}

func requirementsOf(part Part, s labels.Selector) []requirement {
	var out []requirement
	all, _ := s.Requirements()
	for _, one := range all {
		out = append(out, requirement{one, part, excerpt.Within(one.String(), maxRequirement)})
	}
	return out
}

// prepare computes ranks and groups of all clusters.
func (e *explainer) prepare() {
	e.ranks, e.chosen, e.groups = map[*cluster]int{}, map[*cluster]bool{}, map[string]int{}
	for _, p := range e.program.predicates {
		e.required = append(e.required, append(requirementsOf(PartLabel, p.labels), requirementsOf(PartClaim, p.claims)...))
	}
	e.order = slices.SortedFunc(slices.Values(e.stages.feasible), compareRanked)
	for i, f := range e.order {
		e.ranks[f.cluster] = i + 1
	}
	for _, p := range e.program.prioritizers {
		e.report.Prioritizers = append(e.report.Prioritizers, p.Prioritizer)
		e.scorers = append(e.scorers, e.scorer(p, e.order))
	}
	e.counts = newSpreader(e.program.spread, e.order)
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
			e.groups[one.ClusterName] = i
		}
	}
}

// cluster returns the verdict on one cluster.
func (e *explainer) cluster(c *cluster) ClusterReport {
	r := ClusterReport{Name: c.name}
	if i, in := e.groups[c.name]; in {
		r.Selected, r.Group, r.GroupName = true, &i, e.report.Result.Groups[i].Name
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
	r.Predicates = e.predicateReports(c)
	r.Rank = e.ranks[c]
	switch {
	case !e.stages.matched.has(c.slot):
		r.Stage, r.Reason = StagePredicate, whyNoPredicate(r.Predicates)
	case r.Rank == 0:
		r.Stage, r.Reason = StageTaint, whyTainted(r.Taints)
	default:
		r.Scores, r.Total = map[string]int64{}, &e.order[r.Rank-1].score
		for i, score := range e.scorers {
			r.Scores[e.report.Prioritizers[i].Name] = score(c)
		}
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
		one := SpreadReport{Topology: place, Present: has, Violated: !e.chosen[c] && e.counts.violates(i, place, has)}
		r.Spread = append(r.Spread, one)
		switch {
		case !one.Violated || term.WhenUnsatisfiable != clusterv1beta1.DoNotSchedule:
		case !has:
			refused = fmt.Sprintf("the cluster has no %s %s to be spread by", strings.ToLower(string(term.TopologyKeyType)), term.TopologyKey)
		default:
			refused = fmt.Sprintf("%s=%.100s would exceed the lowest count by more than %d", term.TopologyKey, place, term.MaxSkew)
		}
	}
	cut, wanted := len(e.stages.selected), e.program.wanted
	if wanted < 0 {
		wanted = len(e.stages.feasible)
	}
	switch {
	case e.chosen[c]:
		r.Stage, r.Reason = StageSelected, fmt.Sprintf("selected: rank %d of %d, %d are wanted", r.Rank, len(e.order), wanted)
	case refused != "" && (cut < wanted || r.Rank <= cut):
		r.Stage, r.Reason = StageSpread, refused
	case r.Rank <= cut:
		r.Stage, r.Reason = StageSpread, fmt.Sprintf("rank %d would suffice, but other clusters spread better", r.Rank)
	default:
		r.Stage, r.Reason = StageRank, fmt.Sprintf("rank %d of %d, and %d are wanted", r.Rank, len(e.order), wanted)
		for _, t := range r.Taints {
			if t.Last {
				r.Reason += "; " + t.Reason
			}
		}
	}
}

// predicateReports checks a cluster against every requirement of every predicate.
func (e *explainer) predicateReports(c *cluster) []PredicateReport {
	of := map[Part]labels.Labels{PartLabel: labels.Set(c.object.Labels), PartClaim: claims(c.object.Status.ClusterClaims)}
	var out []PredicateReport
	for i, p := range e.program.predicates {
		var r PredicateReport
		for _, one := range e.required[i] {
			part := PartReport{Part: one.part, Requirement: one.text, Matched: one.Matches(of[one.part])}
			if actual, has := of[one.part].Lookup(one.Key()); has {
				part.Actual = &actual
			}
			r.Parts = append(r.Parts, part)
		}
		r.Parts = append(r.Parts, e.expressionParts(c, p)...)
		r.Matched = !slices.ContainsFunc(r.Parts, func(p PartReport) bool { return !p.Matched })
		out = append(out, r)
	}
	return out
}

// expressionParts evaluates all expressions of a predicate within their budget, including
// those after a false one.
func (e *explainer) expressionParts(c *cluster, p predicate) []PartReport {
	var out []PartReport
	var budget cel.Budget
	for _, one := range p.expressions {
		r := PartReport{Part: PartCEL, Requirement: one.text}
		if e.cost > maxExplained {
			r.Error = "not evaluated: the expressions of this placement are too expensive to explain for all clusters"
			out = append(out, r)
			continue
		}
		before := budget.Spent()
		e.s.counters.CEL++
		ok, err := one.program.Bool(context.Background(), &budget, map[string]any{variable: newCELCluster(c, e.now)})
		if r.Matched = ok && err == nil; err != nil {
			r.Error = err.Error()
		}
		r.Cost = budget.Spent() - before
		e.cost += r.Cost
		out = append(out, r)
	}
	return out
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
		if at := slices.IndexFunc(p.Parts, func(part PartReport) bool { return !part.Matched }); at >= 0 {
			out = append(out, fmt.Sprintf("predicate %d: %s", i+1, p.Parts[at].text()))
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
	case p.Actual != nil:
		return fmt.Sprintf("%s %.200s does not hold, the value is %.200q", p.Part, p.Requirement, *p.Actual)
	default:
		return fmt.Sprintf("%s %.200s does not hold, the cluster has none of that name", p.Part, p.Requirement)
	}
}
