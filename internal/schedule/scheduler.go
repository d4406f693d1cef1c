// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// Scheduler is a fleet in memory, and what its placements select. It is not safe
// for concurrent use.
type Scheduler struct {
	clusters map[string]*cluster
	// slots are the clusters by slot, and free the slots without one.
	slots []*cluster
	free  []uint32
	// deleting are the clusters with a deletion timestamp, tainted those with
	// taints.
	deleting, tainted bits

	sets map[string]*set
	// selecting are the sets with a selector, malformed those of them whose
	// selector cannot be read.
	selecting, malformed map[*set]struct{}
	namespaces           map[string]*namespace
	// boundIn are the namespaces that are bound to the set of a name, whether
	// there is one or not.
	boundIn map[string]map[string]struct{}

	placements map[Key]*placement
	decisions  map[Key]*decision
	// histogram counts the clusters that have so many decisions, one or more.
	histogram []int

	// readers count the placements that read each facet, labelReaders and
	// claimReaders those that read a key; scoreReaders are those that read scores
	// of a name, anyScore those whose expressions may read any.
	readers                    [facets]int
	labelReaders, claimReaders map[string]int
	scoreReaders               map[string]map[*placement]struct{}
	anyScore                   map[*placement]struct{}

	// latest is the latest time that anybody decided for.
	latest    time.Time
	dirty     map[Key]struct{}
	counters  Counters
	stopwatch Stopwatch
	scratch   scratch
}

// Counters count work, so that tests and benchmarks show what a change costs.
type Counters struct {
	// Evaluations is how often the predicates of a placement were held against a
	// cluster.
	Evaluations uint64
	// CEL is how many expressions were evaluated in them.
	CEL uint64
	// Decisions is how often Decide came to a decision.
	Decisions uint64
	// Scored is how many scores were computed, one for each prioritizer and
	// feasible cluster.
	Scored uint64
}

// New is an empty fleet.
func New() *Scheduler {
	return &Scheduler{
		clusters: map[string]*cluster{},
		sets:     map[string]*set{}, selecting: map[*set]struct{}{}, malformed: map[*set]struct{}{},
		namespaces: map[string]*namespace{}, boundIn: map[string]map[string]struct{}{},
		placements: map[Key]*placement{}, decisions: map[Key]*decision{},
		labelReaders: map[string]int{}, claimReaders: map[string]int{},
		scoreReaders: map[string]map[*placement]struct{}{}, anyScore: map[*placement]struct{}{},
		dirty: map[Key]struct{}{},
	}
}

// Counters are the counters so far.
func (s *Scheduler) Counters() Counters { return s.counters }

// Evaluations is how often the predicates of a placement were held against a
// cluster so far.
func (s *Scheduler) Evaluations() uint64 { return s.counters.Evaluations }

// Take are the placements that the changes since the last Take touch, sorted,
// each once. A placement that is gone is among them when its deletion is new.
// What it leaves out decides as before, but for the passing of time, which
// Result.LookAgain tells of, and for Balance: decisions of other placements count
// when a placement is decided next and wake nobody.
func (s *Scheduler) Take() []Key {
	for key := range s.dirty {
		if p := s.placements[key]; p != nil {
			p.touched = false
		}
	}
	out := slices.SortedFunc(maps.Keys(s.dirty), compareKeys)
	clear(s.dirty)
	return out
}

// Keys are all placements, sorted.
func (s *Scheduler) Keys() []Key {
	var out []Key
	for key, p := range s.placements {
		if p.object != nil {
			out = append(out, key)
		}
	}
	slices.SortFunc(out, compareKeys)
	return out
}

func compareKeys(a, b Key) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// touch notes that a placement may decide otherwise.
func (s *Scheduler) touch(p *placement) {
	if p.object != nil && !p.touched {
		p.touched = true
		s.dirty[p.key] = struct{}{}
	}
}

// placement is a Placement with what is observed of its decisions.
type placement struct {
	key Key
	// object is nil where only decisions name the placement.
	object *clusterv1beta1.Placement
	// made is the program of the object.
	made *program
	// verdict is what its predicates read, wake all that it reads.
	verdict, wake reads
	scores        []string
	anyScore      bool
	// known are the clusters that were held against the predicates since they
	// changed, passed those of them that fit one.
	known, passed bits
	// expiry is when the verdict on a cluster ends for the scores that it rests
	// on; evaluated is the latest time of such a verdict.
	expiry    map[uint32]time.Time
	evaluated time.Time
	// observed are its PlacementDecisions by name.
	observed map[string]*decision
	touched  bool
}

// forget drops the verdict on a cluster.
func (p *placement) forget(slot uint32) {
	p.known.clear(slot)
	delete(p.expiry, slot)
}

// forgetAll drops the verdicts on those clusters.
func (p *placement) forgetAll(of bits) {
	p.known.remove(of)
	for slot := range p.expiry {
		if of.has(slot) {
			delete(p.expiry, slot)
		}
	}
}

// selectsFrom tells whether the placement uses the set of that name where it is
// bound.
func (p *placement) selectsFrom(set string) bool {
	return len(p.object.Spec.ClusterSets) == 0 || slices.Contains(p.object.Spec.ClusterSets, set)
}

// placement is what is known under a key; it is made when it is not there.
func (s *Scheduler) placement(key Key) *placement {
	p := s.placements[key]
	if p == nil {
		p = &placement{key: key, observed: map[string]*decision{}}
		s.placements[key] = p
	}
	return p
}

func (s *Scheduler) tidyPlacement(p *placement) {
	if p.object == nil && len(p.observed) == 0 {
		delete(s.placements, p.key)
	}
}

// SetPlacement takes up a Placement that appeared or changed, also in its status.
func (s *Scheduler) SetPlacement(object *clusterv1beta1.Placement) {
	p := s.placement(Key{Namespace: object.Namespace, Name: object.Name})
	old := p.object
	if old == object {
		return
	}
	if old == nil || !reflect.DeepEqual(old.Spec, object.Spec) {
		s.unregister(p)
		p.object = object
		s.register(p)
	}
	p.object = object
	s.touch(p)
}

// DeletePlacement takes up that a Placement is gone.
func (s *Scheduler) DeletePlacement(key Key) {
	p := s.placements[key]
	if p == nil || p.object == nil {
		return
	}
	s.touch(p)
	s.unregister(p)
	s.tidyPlacement(p)
}

// register makes the program of a placement and notes what it reads.
func (s *Scheduler) register(p *placement) {
	p.made = compile(p.object, expressions)
	p.verdict, p.scores, p.anyScore = p.made.verdictReads()
	p.wake = p.made.wakeReads()
	s.namespace(p.key.Namespace).placements[p] = struct{}{}
	s.countReaders(p, 1)
	resources := slices.Clone(p.scores)
	for _, one := range p.made.prioritizers {
		if one.kind == addOn {
			resources = append(resources, one.resource)
		}
	}
	for _, name := range resources {
		if s.scoreReaders[name] == nil {
			s.scoreReaders[name] = map[*placement]struct{}{}
		}
		s.scoreReaders[name][p] = struct{}{}
	}
	if p.anyScore {
		s.anyScore[p] = struct{}{}
	}
}

func (s *Scheduler) unregister(p *placement) {
	if p.object == nil {
		return
	}
	s.countReaders(p, -1)
	for _, one := range p.made.prioritizers {
		s.forgetReader(one.resource, p)
	}
	for _, name := range p.scores {
		s.forgetReader(name, p)
	}
	delete(s.anyScore, p)
	ns := s.namespaces[p.key.Namespace]
	delete(ns.placements, p)
	s.tidyNamespace(p.key.Namespace, ns)
	p.object, p.made, p.known, p.passed, p.expiry = nil, nil, nil, nil, nil
}

func (s *Scheduler) forgetReader(name string, p *placement) {
	if delete(s.scoreReaders[name], p); len(s.scoreReaders[name]) == 0 {
		delete(s.scoreReaders, name)
	}
}

// countReaders adds or takes off a placement in the counts of readers.
func (s *Scheduler) countReaders(p *placement, by int) {
	for i := range s.readers {
		if p.wake.mask&(1<<i) != 0 {
			s.readers[i] += by
		}
	}
	count := func(in map[string]int, keys []string) {
		for _, key := range keys {
			if in[key] += by; in[key] == 0 {
				delete(in, key)
			}
		}
	}
	count(s.labelReaders, p.wake.labels)
	count(s.claimReaders, p.wake.claims)
}

// anybodyReads tells whether a placement reads what changed of a cluster.
func (s *Scheduler) anybodyReads(what *change) bool {
	for i, n := range s.readers {
		if n > 0 && what.mask&(1<<i) != 0 {
			return true
		}
	}
	return slices.ContainsFunc(what.labels, func(key string) bool { return s.labelReaders[key] > 0 }) ||
		slices.ContainsFunc(what.claims, func(key string) bool { return s.claimReaders[key] > 0 })
}
