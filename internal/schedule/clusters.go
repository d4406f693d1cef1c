// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"iter"
	"maps"
	"slices"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1alpha1"
)

// cluster is what is known under the name of a cluster: a ManagedCluster, its scores, or
// only that decisions name it.
type cluster struct {
	name string
	// slot is its index in bits; it is reused once nothing is known under the name.
	slot uint32
	// object is nil if there is no ManagedCluster of that name.
	object *clusterv1.ManagedCluster
	// sets are the existing sets that it belongs to.
	sets []*set
	// decisions is how often PlacementDecisions name it.
	decisions int
	scores    []*clusterv1alpha1.AddOnPlacementScore
	// cpu and memory are allocatable.
	cpu, memory amount
}

// amount is how much of a resource a cluster has. It is known only if capacity has it too.
type amount struct {
	value float64
	known bool
}

// score returns the AddOnPlacementScore of that name, or nil.
func (c *cluster) score(resource string) *clusterv1alpha1.AddOnPlacementScore {
	for _, s := range c.scores {
		if s.Name == resource {
			return s
		}
	}
	return nil
}

func allocatable(c *clusterv1.ManagedCluster, name clusterv1.ResourceName) amount {
	_, has := c.Status.Capacity[name]
	quantity, also := c.Status.Allocatable[name]
	if !has || !also {
		return amount{}
	}
	return amount{quantity.AsApproximateFloat64(), true}
}

// claims are the claims of a cluster in the form of labels; if a name occurs twice, the
// last one counts.
type claims []clusterv1.ManagedClusterClaim

// Has reports whether there is a claim of that name.
func (c claims) Has(name string) bool {
	_, has := c.Lookup(name)
	return has
}

// Get returns the value of the claim of that name.
func (c claims) Get(name string) string {
	value, _ := c.Lookup(name)
	return value
}

// Lookup returns the value of the claim of that name, and whether there is one.
func (c claims) Lookup(name string) (string, bool) {
	for i := len(c) - 1; i >= 0; i-- {
		if c[i].Name == name {
			return c[i].Value, true
		}
	}
	return "", false
}

// values returns the values by name.
func (c claims) values() map[string]string {
	out := make(map[string]string, len(c))
	for _, one := range c {
		out[one.Name] = one.Value
	}
	return out
}

// cluster returns the entry for a name, creating it if necessary.
func (s *Scheduler) cluster(name string) *cluster {
	c := s.clusters[name]
	if c != nil {
		return c
	}
	c = &cluster{name: name}
	if n := len(s.free); n > 0 {
		c.slot, s.free = s.free[n-1], s.free[:n-1]
		s.slots[c.slot] = c
	} else {
		c.slot = uint32(len(s.slots)) //nolint:gosec // there are fewer clusters
		s.slots = append(s.slots, c)
	}
	s.clusters[name] = c
	return c
}

// tidy drops a cluster about which nothing is known any more.
func (s *Scheduler) tidy(c *cluster) {
	if c.object == nil && c.decisions == 0 && len(c.scores) == 0 {
		delete(s.clusters, c.name)
		s.slots[c.slot] = nil
		s.free = append(s.free, c.slot)
	}
}

// SetCluster records a new or changed ManagedCluster. A change that no placement reads
// costs no more than the comparison.
func (s *Scheduler) SetCluster(object *clusterv1.ManagedCluster) {
	c := s.cluster(object.Name)
	old := c.object
	if old == object {
		return
	}
	c.object = object
	fresh := old == nil || old.UID != object.UID
	what := parts{mask: everything}
	if !fresh {
		what = difference(old, object)
	}
	if fresh || what.mask&resources != 0 {
		c.cpu, c.memory = allocatable(object, clusterv1.ResourceCPU), allocatable(object, clusterv1.ResourceMemory)
	}
	s.deleting.assign(c.slot, object.DeletionTimestamp != nil)
	s.tainted.assign(c.slot, len(object.Spec.Taints) > 0)
	if fresh || len(what.labels) > 0 {
		s.updateSets(c)
	}
	if !fresh && !s.isRead(&what) {
		return
	}
	s.concerned(c, func(p *placement) {
		if fresh || p.verdict.touch(&what) {
			p.forget(c.slot)
		}
		if fresh || p.wake.touch(&what) {
			s.touch(p)
		}
	})
}

// DeleteCluster records that a ManagedCluster is gone. An unknown name is not an error,
// here and in all other deletions.
func (s *Scheduler) DeleteCluster(name string) {
	c := s.clusters[name]
	if c == nil || c.object == nil {
		return
	}
	s.concerned(c, s.touch)
	for _, in := range c.sets {
		in.members.clear(c.slot)
	}
	c.sets, c.object = nil, nil
	s.deleting.clear(c.slot)
	s.tainted.clear(c.slot)
	s.tidy(c)
}

// updateSets puts a cluster into the sets that its labels select, and wakes the
// placements of the sets that it joins or leaves.
func (s *Scheduler) updateSets(c *cluster) {
	before := c.sets
	c.sets = nil
	join := func(to *set) {
		c.sets = append(c.sets, to)
		if !to.members.has(c.slot) {
			to.members.set(c.slot)
			s.subscribers(to, func(p *placement) {
				p.forget(c.slot)
				s.touch(p)
			})
		}
	}
	if to := s.sets[c.object.Labels[clusterv1.LabelClusterSet]]; to != nil && to.selector == nil {
		join(to)
	}
	for to := range s.selecting {
		if to.has(c.object.Labels) {
			join(to)
		}
	}
	for _, from := range before {
		if !slices.Contains(c.sets, from) {
			from.members.clear(c.slot)
			s.subscribers(from, s.touch)
		}
	}
}

// mayHold returns the sets that may have a cluster as a member: while the selector of a set
// cannot be parsed, every cluster may be in it.
func (s *Scheduler) mayHold(c *cluster) iter.Seq[*set] {
	return func(yield func(*set) bool) {
		for _, in := range c.sets {
			if !yield(in) {
				return
			}
		}
		maps.Keys(s.malformed)(yield)
	}
}

// concerned calls visit with the placements that have a cluster as a candidate, some of
// them more than once.
func (s *Scheduler) concerned(c *cluster, visit func(*placement)) {
	for in := range s.mayHold(c) {
		s.subscribers(in, visit)
	}
}

// SetScore records a new or changed AddOnPlacementScore. Its namespace is the name of the
// cluster.
func (s *Scheduler) SetScore(object *clusterv1alpha1.AddOnPlacementScore) {
	c := s.cluster(object.Namespace)
	old := c.score(object.Name)
	if old == object {
		return
	}
	if at := slices.Index(c.scores, old); old != nil {
		c.scores[at] = object
	} else {
		c.scores = append(c.scores, object)
	}
	s.wakeReaders(c, object.Name, old == nil || s.matters(&old.Status, &object.Status))
}

// matters reports whether a change of scores may change a decision. It does not if the
// scores are only valid for longer and had not expired at the latest decision: placements
// that read them are decided again when they would have expired.
func (s *Scheduler) matters(old, now *clusterv1alpha1.AddOnPlacementScoreStatus) bool {
	if !slices.Equal(old.Scores, now.Scores) {
		return true
	}
	if old.ValidUntil.Equal(now.ValidUntil) {
		return false
	}
	longer := old.ValidUntil != nil && (now.ValidUntil == nil || old.ValidUntil.Before(now.ValidUntil))
	return !longer || !s.latest.Before(old.ValidUntil.Time)
}

// DeleteScore records that an AddOnPlacementScore is gone.
func (s *Scheduler) DeleteScore(key Key) {
	c := s.clusters[key.Namespace]
	if c == nil {
		return
	}
	at := slices.IndexFunc(c.scores, func(s *clusterv1alpha1.AddOnPlacementScore) bool { return s.Name == key.Name })
	if at < 0 {
		return
	}
	c.scores = slices.Delete(c.scores, at, at+1)
	s.wakeReaders(c, key.Name, true)
	s.tidy(c)
}

// wakeReaders wakes the placements that read scores of that name of a cluster.
func (s *Scheduler) wakeReaders(c *cluster, name string, matters bool) {
	for _, readers := range []map[*placement]struct{}{s.scoreReaders[name], s.scoreReaders[anyScore]} {
		for p := range readers {
			p.forget(c.slot)
			if !matters {
				continue
			}
			for in := range s.mayHold(c) {
				if s.subscribes(p, in) {
					s.touch(p)
				}
			}
		}
	}
}
