// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"slices"

	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// score computes the total score of all feasible clusters.
func (d *decider) score() {
	feasible := d.stages.feasible
	for _, p := range d.program.prioritizers {
		from := d.s.begin()
		of := d.scorer(p, feasible)
		for i := range feasible {
			feasible[i].score += p.Weight * of(feasible[i].cluster)
		}
		d.s.took(Step{KindPrioritizer, p.kind.String()}, from)
		d.s.counters.Scored += uint64(len(feasible))
	}
	d.stages.scored = true
}

// hardSpread reports whether a constraint may exclude clusters.
func (d *decider) hardSpread() bool {
	for i := range d.program.spread {
		if d.program.spread[i].WhenUnsatisfiable == clusterv1beta1.DoNotSchedule {
			return true
		}
	}
	return false
}

// choose returns the best wanted of the feasible clusters, in any order.
func (d *decider) choose(wanted int) []ranked {
	t := &d.stages
	switch {
	case len(d.program.spread) > 0 && (wanted < len(t.feasible) || d.hardSpread()):
		order := slices.Clone(t.feasible)
		slices.SortFunc(order, compareRanked)
		return newSpreader(d.program.spread, order).choose(wanted)
	case wanted == len(t.feasible):
		return t.feasible
	}
	d.s.scratch.selected = best(d.s.scratch.selected[:0], t.feasible, wanted)
	return d.s.scratch.selected
}

// best appends the best n of the clusters to a slice, in any order. It keeps a heap of n
// with the worst on top, so that choosing few of many costs little more than one
// comparison each.
func best(heap, of []ranked, n int) []ranked {
	if n <= 0 {
		return heap
	}
	for _, r := range of[:n] {
		heap = append(heap, r)
		for i := len(heap) - 1; i > 0; {
			parent := (i - 1) / 2
			if compareRanked(heap[i], heap[parent]) <= 0 {
				break
			}
			heap[i], heap[parent] = heap[parent], heap[i]
			i = parent
		}
	}
	for _, r := range of[n:] {
		if compareRanked(r, heap[0]) < 0 {
			heap[0] = r
			sink(heap)
		}
	}
	return heap
}

// sink moves the first element of a heap down to its position.
func sink(heap []ranked) {
	for i := 0; ; {
		worst := 2*i + 1
		if worst >= len(heap) {
			return
		}
		if other := worst + 1; other < len(heap) && compareRanked(heap[other], heap[worst]) > 0 {
			worst = other
		}
		if compareRanked(heap[worst], heap[i]) <= 0 {
			return
		}
		heap[i], heap[worst] = heap[worst], heap[i]
		i = worst
	}
}
