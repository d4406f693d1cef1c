// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// limit holds back a change that only scores cause, for scoreRateLimit after the last
// such change.
func (d *decider) limit(r *Result) {
	if d.anew || !d.stages.scored || !d.scoresAlone() {
		return
	}
	changed := d.placement.object.Status.LastScoreUpdateTime
	if changed != nil && d.recheckAt(changed.Add(d.program.rate)) {
		r.Delayed = true
		r.Groups = d.lastGroups(func(*cluster) bool { return true })
		return
	}
	r.ScoreUpdate = true
}

// scoresAlone reports whether clusters or scores in the decisions change, although the
// existing decisions are valid apart from the scores: as many clusters, all of them
// feasible, spread no worse, under the same spec.
func (d *decider) scoresAlone() bool {
	t := &d.stages
	done := apimeta.FindStatusCondition(d.placement.object.Status.Conditions, clusterv1beta1.ConditionSatisfied)
	if done == nil || done.ObservedGeneration != d.placement.object.Generation || len(d.s.scratch.owned) != len(t.selected) {
		return false
	}
	var old []ranked
	balance := 0
	for _, f := range t.feasible {
		if d.isOwn(f.cluster) {
			old = append(old, f)
			balance += int(f.standing)
		}
	}
	same := true
	for _, f := range t.selected {
		same = same && d.isOwn(f.cluster)
		balance -= int(f.standing)
	}
	if len(old) != len(t.selected) || balance != 0 || !d.spreadNoWorse(old) {
		return false
	}
	return !same || (d.program.byScore && d.otherScores())
}

// otherScores reports whether the score of a selected cluster differs from the observed
// decisions.
func (d *decider) otherScores() bool {
	scores := map[uint32]*int64{}
	for _, o := range d.placement.observed {
		for i, slot := range o.slots {
			scores[slot] = o.object.Status.Decisions[i].Score
		}
	}
	for _, f := range d.stages.selected {
		if before := scores[f.cluster.slot]; before == nil || *before != f.score {
			return true
		}
	}
	return false
}

// spreadNoWorse reports whether other clusters are spread as evenly as the selected ones,
// or within maxSkew.
func (d *decider) spreadNoWorse(other []ranked) bool {
	for i := range d.program.spread {
		t := &d.program.spread[i]
		if skew := skewOf(t, d.stages.feasible, other); skew > int(t.MaxSkew) && skew > skewOf(t, d.stages.feasible, d.stages.selected) {
			return false
		}
	}
	return true
}

// skewOf returns by how many clusters the fullest topology value exceeds the emptiest;
// each cluster without a value adds one.
func skewOf(t *clusterv1beta1.SpreadConstraintsTerm, feasible, selected []ranked) int {
	counts := map[string]int{}
	for _, f := range feasible {
		if place, has := topology(t, f.cluster); has {
			counts[place] = 0
		}
	}
	without := 0
	for _, f := range selected {
		if place, has := topology(t, f.cluster); has {
			counts[place]++
		} else {
			without++
		}
	}
	least, most := len(selected), 0
	for _, n := range counts {
		least, most = min(least, n), max(most, n)
	}
	return max(most-least, 0) + without
}
