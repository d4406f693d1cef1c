// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// decider computes one decision.
type decider struct {
	s         *Scheduler
	placement *placement
	program   *program
	now       time.Time
	lookAgain time.Time
	// anew: the existing decisions are not protected by scoreRateLimit.
	anew bool
	// expiries are the scores that have expired.
	expiries []string
	// cost is the cost of expressions so far.
	cost   uint64
	stages stages
}

// stages are the results of the pipeline.
type stages struct {
	bound, eligible     []string
	candidates, matched bits
	// refusedBy counts the matched clusters that a taint keeps out, by its key.
	refusedBy map[string]int
	feasible  []ranked
	selected  []ranked
	scored    bool
}

// scratch is memory that successive decisions reuse.
type scratch struct {
	candidates, matched bits
	feasible, selected  []ranked
	// own is how often the decisions of the placement name the cluster of a slot; owned
	// are the slots where it is not 0.
	own, owned []uint32
}

// ranked is a feasible cluster with the values that it is ranked by.
type ranked struct {
	cluster *cluster
	score   int64
	// standing is welcome or last.
	standing standing
}

// compareRanked orders clusters, best first.
func compareRanked(a, b ranked) int {
	if order := cmp.Or(cmp.Compare(a.standing, b.standing), cmp.Compare(b.score, a.score)); order != 0 {
		return order
	}
	return strings.Compare(a.cluster.name, b.cluster.name)
}

// Decide returns what a Placement selects at a given time. The result depends only on the
// objects that the Scheduler knows and on now. Decide changes nothing but caches.
func (s *Scheduler) Decide(key Key, now time.Time) Result { return s.decide(key, now, false) }

// DecideAnew is Decide for a Placement whose decisions were changed by others: they were
// never decided, so scoreRateLimit does not protect them.
func (s *Scheduler) DecideAnew(key Key, now time.Time) Result { return s.decide(key, now, true) }

func (s *Scheduler) decide(key Key, now time.Time, anew bool) Result {
	d, r := s.decider(key, now)
	if r.Skip != SkipNone {
		return r
	}
	d.anew = anew
	if !d.run(false) {
		r.Skip = SkipMore
		return r
	}
	s.counters.Decisions++
	return d.result(r)
}

// Scores returns the feasible clusters of a Placement with their total score, by name. It
// is nil if Decide gives no decision or finds the spec misconfigured.
func (s *Scheduler) Scores(key Key, now time.Time) []Scored {
	d, r := s.decider(key, now)
	if r.Skip != SkipNone || d.program.broken || !d.run(true) {
		return nil
	}
	out := make([]Scored, 0, len(d.stages.feasible))
	for _, f := range d.stages.feasible {
		out = append(out, Scored{f.cluster.name, f.score})
	}
	slices.SortFunc(out, func(a, b Scored) int { return strings.Compare(a.Cluster, b.Cluster) })
	return out
}

func (s *Scheduler) decider(key Key, now time.Time) (*decider, Result) {
	r := Result{Key: key}
	p := s.placements[key]
	switch {
	case p == nil || p.object == nil:
		r.Skip = SkipUnknown
	case p.object.DeletionTimestamp != nil:
		r.Skip = SkipDeleting
	case p.object.Annotations[clusterv1beta1.AnnotationSchedulingDisable] == "true":
		r.Skip = SkipDisabled
	}
	if r.Skip != SkipNone {
		return nil, r
	}
	if s.latest.Before(now) {
		s.latest = now
	}
	r.Generation = p.object.Generation
	d := &decider{s: s, placement: p, program: p.made, now: now}
	d.markOwn()
	return d, r
}

// markOwn records how often the observed decisions of this placement name each cluster.
func (d *decider) markOwn() {
	m := &d.s.scratch
	m.own = append(m.own, make([]uint32, len(d.s.slots)-len(m.own))...)
	for _, slot := range m.owned {
		m.own[slot] = 0
	}
	m.owned = m.owned[:0]
	for _, o := range d.placement.observed {
		for _, slot := range o.slots {
			if m.own[slot]++; m.own[slot] == 1 {
				m.owned = append(m.owned, slot)
			}
		}
	}
}

// ownCount returns how often the placement's decisions name a cluster.
func (d *decider) ownCount(c *cluster) int { return int(d.s.scratch.own[c.slot]) }

func (d *decider) isOwn(c *cluster) bool { return d.ownCount(c) > 0 }

// run executes the stages; withScores computes scores even if they make no difference. It
// returns false if it did not finish.
func (d *decider) run(withScores bool) bool {
	t, m := &d.stages, &d.s.scratch
	t.matched, t.feasible, t.selected = m.matched[:0], m.feasible[:0], m.selected[:0]
	t.bound = d.s.namespaces[d.placement.key.Namespace].bound
	t.eligible = eligible(t.bound, d.placement.object.Spec.ClusterSets)
	d.findCandidates()
	if d.program.broken {
		return true
	}
	if !d.match() {
		return false
	}
	if len(d.program.predicates) > 0 {
		m.matched = t.matched
	}
	d.filterTaints()
	wanted := len(t.feasible)
	if d.program.wanted >= 0 {
		wanted = min(wanted, d.program.wanted)
	}
	if withScores || d.program.byScore || wanted < len(t.feasible) || d.hardSpread() {
		d.score()
	}
	m.feasible = t.feasible
	t.selected = d.choose(wanted)
	return true
}

// findCandidates finds the members of the eligible sets that are not being deleted. While
// the selector of such a set cannot be parsed, clusters that are already selected count
// as its members.
func (d *decider) findCandidates() {
	t, m := &d.stages, &d.s.scratch
	clear(m.candidates)
	malformed := false
	for _, name := range t.eligible {
		of := d.s.sets[name]
		m.candidates.add(of.members)
		malformed = malformed || of.problem != ""
	}
	if malformed {
		for _, slot := range m.owned {
			if d.s.slots[slot].object != nil && !m.candidates.has(slot) {
				m.candidates.set(slot)
				// Its verdict is not kept up to date.
				d.placement.forget(slot)
			}
		}
	}
	m.candidates.remove(d.s.deleting)
	t.candidates = m.candidates
}

// filterTaints finds the matched clusters that no taint keeps out.
func (d *decider) filterTaints() {
	defer d.s.took(Step{KindFilter, pluginTaint}, d.s.begin())
	t := &d.stages
	for i, word := range t.matched {
		tainted := d.s.tainted.word(i)
		for ; word != 0; word &= word - 1 {
			slot := slotOf(i, word)
			r := ranked{cluster: d.s.slots[slot]}
			if tainted&(word&-word) != 0 {
				if r.standing = d.worstStanding(r.cluster); r.standing == refused {
					d.countRefusal(r.cluster)
					continue
				}
			}
			t.feasible = append(t.feasible, r)
		}
	}
}

// countRefusal counts the taints that keep a cluster out.
func (d *decider) countRefusal(c *cluster) {
	if d.stages.refusedBy == nil {
		d.stages.refusedBy = map[string]int{}
	}
	for i := range c.object.Spec.Taints {
		if got, _, _ := d.evaluateTaint(c, &c.object.Spec.Taints[i]); got == refused {
			d.stages.refusedBy[c.object.Spec.Taints[i].Key]++
		}
	}
}

// result returns the Result of the stages.
func (d *decider) result(r Result) Result {
	t := &d.stages
	r.Problems = d.program.problems
	r.Candidates, r.Matched, r.Feasible = t.candidates.count(), t.matched.count(), len(t.feasible)
	if d.program.broken {
		r.Kept = true
		if d.program.named {
			r.Groups = d.lastGroups(func(c *cluster) bool { return t.candidates.has(c.slot) })
		}
	} else {
		r.Groups = d.group(t.selected)
		d.limit(&r)
	}
	for _, g := range r.Groups {
		r.Selected += len(g.Clusters)
	}
	if d.program.wanted >= 0 && !d.program.broken {
		r.Unscheduled = d.program.wanted - r.Selected
	}
	r.Warnings = append(d.setWarnings(), d.expiredWarning()...)
	r.LookAgain = d.lookAgain
	d.conditions(&r)
	return r
}

// setWarnings returns warnings about eligible sets whose selector cannot be parsed.
func (d *decider) setWarnings() []string {
	var out []string
	for _, name := range d.stages.eligible {
		if problem := d.s.sets[name].problem; problem != "" {
			out = append(out, fmt.Sprintf("ManagedClusterSet %.100s: %s", name, problem))
		}
	}
	return out
}
