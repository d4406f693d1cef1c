// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-ocm/kubectl-ocm/internal/cel"
	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
)

// maxRequirement bounds the text of one requirement, in bytes: a selector may list any
// number of values, and the text is repeated for every cluster.
const maxRequirement = 1024

// required are the requirements of the selectors of one predicate.
type required struct{ labels, claims []requirement }

// requirement is one part of a selector, with its text.
type requirement struct {
	labels.Requirement
	text string
}

func requirementsOf(s labels.Selector) []requirement {
	if s == nil {
		return nil
	}
	var out []requirement
	all, _ := s.Requirements()
	for _, one := range all {
		out = append(out, requirement{one, excerpt.Within(one.String(), maxRequirement)})
	}
	return out
}

// predicateReports checks a cluster against every requirement of every predicate.
func (e *explainer) predicateReports(c *cluster) []PredicateReport {
	var out []PredicateReport
	for i := range e.program.predicates {
		r := PredicateReport{Parts: selectorParts(PartLabel, e.required[i].labels, labels.Set(c.object.Labels))}
		r.Parts = append(r.Parts, selectorParts(PartClaim, e.required[i].claims, claims(c.object.Status.ClusterClaims))...)
		r.Parts = append(r.Parts, e.expressionParts(c, &e.program.predicates[i])...)
		r.Matched = true
		for _, part := range r.Parts {
			r.Matched = r.Matched && part.Matched
		}
		out = append(out, r)
	}
	return out
}

func selectorParts(kind Part, all []requirement, of labels.Labels) []PartReport {
	var out []PartReport
	for i := range all {
		r := PartReport{Part: kind, Requirement: all[i].text, Matched: all[i].Matches(of)}
		r.Actual, r.Present = of.Lookup(all[i].Key())
		out = append(out, r)
	}
	return out
}

// expressionParts evaluates all expressions of a predicate within their budget, including
// those after a false one.
func (e *explainer) expressionParts(c *cluster, p *predicate) []PartReport {
	var out []PartReport
	var budget cel.Budget
	for i := range p.expressions {
		r := PartReport{Part: PartCEL, Requirement: p.expressions[i].text}
		if e.cost > maxExplained {
			r.Error = "not evaluated: the expressions of this placement are too expensive to explain for all clusters"
			out = append(out, r)
			continue
		}
		before := budget.Spent()
		e.s.counters.CEL++
		ok, err := p.expressions[i].program.Bool(context.Background(), &budget, map[string]any{variable: newCELCluster(c, e.now)})
		if r.Matched = ok && err == nil; err != nil {
			r.Error = err.Error()
		}
		r.Cost = budget.Spent() - before
		e.cost += r.Cost
		out = append(out, r)
	}
	return out
}
