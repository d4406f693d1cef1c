// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"slices"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/status"
	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
)

// lateEvery is when condition rules that a pass put off, because the rules of the work
// together took too long, are evaluated again.
const lateEvery = time.Minute

// turns returns the order of tasks: by rank, and within a rank those whose rules have
// waited longest first. A task that is read for its rules alone and has waited goes
// before all others, whatever their rank; otherwise rules whose budget others use up
// would never be evaluated.
func turns(tasks []Task) []int {
	order := make([]int, len(tasks))
	rank := func(t *Task) int {
		if t.Action == read && !t.Reading.late.IsZero() {
			return -1
		}
		return t.Rank
	}
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := &tasks[a], &tasks[b]
		by := x.Reading.late.Compare(y.Reading.late)
		if x.Reading.late.IsZero() || y.Reading.late.IsZero() {
			by = -by // those that do not wait come last
		}
		return cmp.Or(cmp.Compare(rank(x), rank(y)), by)
	})
	return order
}

// former returns the verdicts that stay valid while the rules of a manifest wait: those
// over the same content, of an earlier pass or, after a restart of the agent, of the
// status at this generation.
func (p *pass) former(t *Task) []status.RuleVerdict {
	switch {
	case len(t.Rules.Conditions) == 0:
	case t.Reading.judged == t.Intent:
		return t.Outcome.Rules
	case t.Reading.judged == digest.Sum{}:
		if entry := appliedEntry(p.state, t); entry != nil {
			return keptVerdicts(t.Rules.Conditions, entry.Conditions)
		}
	}
	return nil
}
