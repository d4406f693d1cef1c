// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"context"
	"slices"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/internal/cel"
)

// maxCostAtOnce bounds the cost of one placement's expressions in one Decide, in the
// units that CEL counts: about half a second at worst. The next Decide does the rest.
const maxCostAtOnce = 5_000_000

// match finds the candidates that match one of the predicates; without any, all do. It
// returns false if it did not finish.
func (d *decider) match() bool {
	defer d.s.took(Step{KindFilter, pluginPredicate}, d.s.begin())
	t := &d.stages
	if len(d.program.predicates) == 0 {
		t.matched = t.candidates
		return true
	}
	p := d.placement
	d.dropExpired()
	p.known.grow(len(t.candidates))
	p.passed.grow(len(t.candidates))
	for i, word := range t.candidates {
		for pending := word &^ p.known[i]; pending != 0; pending &= pending - 1 {
			slot := slotOf(i, pending)
			if d.cost > maxCostAtOnce {
				return false
			}
			p.passed.assign(slot, d.fitsAny(d.s.slots[slot]))
			p.known.set(slot)
		}
		word &= p.passed[i]
		t.matched = append(t.matched, word)
	}
	d.recheckExpiries()
	return true
}

// dropExpired drops verdicts based on scores that have expired since, or that were not
// yet valid at an earlier time.
func (d *decider) dropExpired() {
	p := d.placement
	if d.now.Before(p.evaluated) {
		p.known, p.expiry = nil, nil
	}
	if len(p.scores) > 0 {
		p.evaluated = d.now
	}
	for slot, until := range p.expiry {
		if !d.now.Before(until) {
			p.forget(slot)
		}
	}
}

// recheckExpiries makes the placement due for a recheck when a score that a verdict is
// based on expires.
func (d *decider) recheckExpiries() {
	for slot, until := range d.placement.expiry {
		if d.stages.candidates.has(slot) {
			d.recheckAt(until)
		}
	}
}

// fitsAny checks a cluster against the predicates until one matches.
func (d *decider) fitsAny(c *cluster) bool {
	d.s.counters.Evaluations++
	var until time.Time
	fits := slices.ContainsFunc(d.program.predicates, func(p predicate) bool { return d.fits(c, p, &until) })
	if !until.IsZero() {
		if d.placement.expiry == nil {
			d.placement.expiry = map[uint32]time.Time{}
		}
		d.placement.expiry[c.slot] = until
	}
	return fits
}

// fits checks a cluster against one predicate, and moves until forward to the first
// expiry of a score that it read.
func (d *decider) fits(c *cluster, p predicate, until *time.Time) bool {
	d.cost += p.cost
	if matches := p.match(c); !matches || len(p.expressions) == 0 {
		return matches
	}
	defer d.s.took(Step{KindCEL, ""}, d.s.begin())
	seen := newCELCluster(c, d.now)
	variables := map[string]any{variable: seen}
	var budget cel.Budget
	fits := true
	for i := range p.expressions {
		d.s.counters.CEL++
		ok, err := p.expressions[i].program.Bool(context.Background(), &budget, variables)
		if fits = ok && err == nil; !fits {
			break
		}
	}
	d.cost += budget.Spent()
	if !seen.until.IsZero() && (until.IsZero() || seen.until.Before(*until)) {
		*until = seen.until
	}
	return fits
}
