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
	// slots are the clusters by slot, and free the unused slots.
	slots []*cluster
	free  []uint32
	// deleting are the clusters with a deletion timestamp, tainted those with
	// taints.
	deleting, tainted bits

	sets map[string]*set
	// selecting are the sets with a selector, malformed those of them whose selector
	// cannot be parsed.
	selecting, malformed map[*set]struct{}
	namespaces           map[string]*namespace
	// boundIn are the namespaces with a binding to the set of a name, whether or not the
	// set exists.
	boundIn map[string]map[string]struct{}

	placements map[Key]*placement
	decisions  map[Key]*decision
	// histogram counts the clusters by their number of decisions, from one on.
	histogram []int

	// readers count the placements that read each facet, labelReaders and claimReaders
	// those that read a key. scoreReaders are the placements that read scores of a name.
	readers                    [facets]int
	labelReaders, claimReaders map[string]int
	scoreReaders               map[string]map[*placement]struct{}

	// latest is the latest time of any decision.
	latest    time.Time
	dirty     map[Key]struct{}
	counters  Counters
	stopwatch Stopwatch
	scratch   scratch
}

// Counters count work, so that tests and benchmarks can measure the cost of a change.
type Counters struct {
	// Evaluations is how often the predicates of a placement were checked against a
	// cluster.
	Evaluations uint64
	// CEL is how many expressions were evaluated in them.
	CEL uint64
	// Decisions is how often Decide returned a decision.
	Decisions uint64
	// Scored is how many scores were computed, one for each prioritizer and
	// feasible cluster.
	Scored uint64
}

// New returns an empty fleet.
func New() *Scheduler {
	return &Scheduler{
		clusters: map[string]*cluster{},
		sets:     map[string]*set{}, selecting: map[*set]struct{}{}, malformed: map[*set]struct{}{},
		namespaces: map[string]*namespace{}, boundIn: map[string]map[string]struct{}{},
		placements: map[Key]*placement{}, decisions: map[Key]*decision{},
		labelReaders: map[string]int{}, claimReaders: map[string]int{},
		scoreReaders: map[string]map[*placement]struct{}{},
		dirty:        map[Key]struct{}{},
	}
}

// Counters returns the counters so far.
func (s *Scheduler) Counters() Counters { return s.counters }

// Take returns the placements that the changes since the last Take affect, sorted, each
// once, including newly deleted ones. The decision of any other placement is unchanged,
// except for the passing of time, which Result.LookAgain covers, and for Balance:
// decisions of other placements count when a placement is next decided and do not wake
// it.
func (s *Scheduler) Take() []Key {
	out := slices.SortedFunc(maps.Keys(s.dirty), compareKeys)
	clear(s.dirty)
	return out
}

// Keys returns all placements, sorted.
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

// touch records that the decision of a placement may change.
func (s *Scheduler) touch(p *placement) {
	if p.object != nil {
		s.dirty[p.key] = struct{}{}
	}
}

// placement is a Placement with its observed decisions.
type placement struct {
	key Key
	// object is nil if only decisions name the placement.
	object *clusterv1beta1.Placement
	// made is the compiled program of the object.
	made *program
	// verdict is what its predicates read, wake everything that it reads.
	verdict, wake parts
	// scores are the names of the scores that its predicates read.
	scores []string
	// known are the clusters that were checked against the predicates since these
	// changed, passed those of them that match one.
	known, passed bits
	// expiry is when the verdict on a cluster ends because of the scores that it is based
	// on; evaluated is the latest time of such a verdict.
	expiry    map[uint32]time.Time
	evaluated time.Time
	// observed are its PlacementDecisions by name.
	observed map[string]*decision
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

// selectsFrom reports whether the placement uses the set of that name if it is bound.
func (p *placement) selectsFrom(set string) bool {
	return len(p.object.Spec.ClusterSets) == 0 || slices.Contains(p.object.Spec.ClusterSets, set)
}

// placement returns the entry for a key, creating it if necessary.
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

// SetPlacement records a new or changed Placement, including its status.
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

// DeletePlacement records that a Placement is gone.
func (s *Scheduler) DeletePlacement(key Key) {
	p := s.placements[key]
	if p == nil || p.object == nil {
		return
	}
	s.touch(p)
	s.unregister(p)
	s.tidyPlacement(p)
}

// register compiles a placement and records what it reads.
func (s *Scheduler) register(p *placement) {
	p.made = compile(p.object)
	p.verdict, p.scores = p.made.verdictReads()
	p.wake = p.made.wakeReads()
	s.namespace(p.key.Namespace).placements[p] = struct{}{}
	s.countReaders(p, 1)
	for _, name := range p.allScores() {
		if s.scoreReaders[name] == nil {
			s.scoreReaders[name] = map[*placement]struct{}{}
		}
		s.scoreReaders[name][p] = struct{}{}
	}
}

// allScores returns the names of the scores that it reads.
func (p *placement) allScores() []string {
	out := slices.Clone(p.scores)
	for _, one := range p.made.prioritizers {
		if one.resource != "" {
			out = append(out, one.resource)
		}
	}
	return out
}

func (s *Scheduler) unregister(p *placement) {
	if p.object == nil {
		return
	}
	s.countReaders(p, -1)
	for _, name := range p.allScores() {
		if delete(s.scoreReaders[name], p); len(s.scoreReaders[name]) == 0 {
			delete(s.scoreReaders, name)
		}
	}
	ns := s.namespaces[p.key.Namespace]
	delete(ns.placements, p)
	s.tidyNamespace(p.key.Namespace, ns)
	p.object, p.made, p.known, p.passed, p.expiry = nil, nil, nil, nil, nil
}

// countReaders adds a placement to the counts of readers, or subtracts it.
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

// isRead reports whether a placement reads what changed of a cluster.
func (s *Scheduler) isRead(what *parts) bool {
	for i, n := range s.readers {
		if n > 0 && what.mask&(1<<i) != 0 {
			return true
		}
	}
	return slices.ContainsFunc(what.labels, func(key string) bool { return s.labelReaders[key] > 0 }) ||
		slices.ContainsFunc(what.claims, func(key string) bool { return s.claimReaders[key] > 0 })
}
