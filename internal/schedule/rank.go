// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"container/heap"
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
		d.s.took(Step{KindPrioritizer, p.kind()}, from)
		d.s.counters.Scored += uint64(len(feasible))
	}
	d.stages.scored = true
}

// hardSpread reports whether a constraint may exclude clusters.
func (d *decider) hardSpread() bool {
	return slices.ContainsFunc(d.program.spread, func(t clusterv1beta1.SpreadConstraintsTerm) bool {
		return t.WhenUnsatisfiable == clusterv1beta1.DoNotSchedule
	})
}

// choose returns the best wanted of the feasible clusters, in any order.
func (d *decider) choose(wanted int) []ranked {
	t := &d.stages
	switch {
	case len(d.program.spread) > 0 && (wanted < len(t.feasible) || d.hardSpread()):
		return newSpreader(d.program.spread, slices.SortedFunc(slices.Values(t.feasible), compareRanked)).choose(wanted)
	case wanted == len(t.feasible):
		return t.feasible
	}
	d.s.scratch.selected = best(d.s.scratch.selected[:0], t.feasible, wanted)
	return d.s.scratch.selected
}

// best appends the best n of the clusters to a slice, in any order. It keeps a queue of n
// with the worst first, so that choosing few of many costs little more than one
// comparison each.
func best(chosen, of []ranked, n int) []ranked {
	if n <= 0 {
		return chosen
	}
	q := &queue[ranked]{append(chosen, of[:n]...), func(a, b ranked) int { return compareRanked(b, a) }}
	heap.Init(q)
	for _, r := range of[n:] {
		if compareRanked(r, q.items[0]) < 0 {
			q.items[0] = r
			heap.Fix(q, 0)
		}
	}
	return q.items
}

// queue has the least of its items first; it implements heap.Interface.
type queue[T any] struct {
	items   []T
	compare func(a, b T) int
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (q *queue[T]) Len() int           { return len(q.items) }
func (q *queue[T]) Less(i, j int) bool { return q.compare(q.items[i], q.items[j]) < 0 }
func (q *queue[T]) Swap(i, j int)      { q.items[i], q.items[j] = q.items[j], q.items[i] }
func (q *queue[T]) Push(x any)         { q.items = append(q.items, x.(T)) }
func (q *queue[T]) Pop() any {
	n := len(q.items) - 1
	x := q.items[n]
	q.items = q.items[:n]
	return x
}
