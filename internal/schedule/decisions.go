// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"slices"

	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// decision is an observed PlacementDecision.
type decision struct {
	object *clusterv1beta1.PlacementDecision
	owner  Key
	// slots are the clusters that it names, in order.
	slots []uint32
}

// SetDecision records a new or changed PlacementDecision. It belongs to the Placement
// that its label names, in its own namespace; without that label it counts only for
// Balance.
func (s *Scheduler) SetDecision(object *clusterv1beta1.PlacementDecision) {
	key := Key{Namespace: object.Namespace, Name: object.Name}
	if old := s.decisions[key]; old != nil {
		if old.object == object || sameDecision(old.object, object) {
			old.object = object
			return
		}
		defer s.drop(key, old) // after, so that clusters keep their slots
	}
	d := &decision{object: object, slots: make([]uint32, 0, len(object.Status.Decisions))}
	for _, one := range object.Status.Decisions {
		c := s.cluster(one.ClusterName)
		s.recount(c, 1)
		d.slots = append(d.slots, c.slot)
	}
	if name := object.Labels[clusterv1beta1.LabelPlacement]; name != "" {
		d.owner = Key{Namespace: object.Namespace, Name: name}
		p := s.placement(d.owner)
		p.observed[object.Name] = d
		s.touch(p)
	}
	s.decisions[key] = d
}

func sameDecision(a, b *clusterv1beta1.PlacementDecision) bool {
	for _, label := range []string{clusterv1beta1.LabelPlacement, clusterv1beta1.LabelDecisionGroupName, clusterv1beta1.LabelDecisionGroupIndex} {
		if a.Labels[label] != b.Labels[label] {
			return false
		}
	}
	return slices.EqualFunc(a.Status.Decisions, b.Status.Decisions, func(x, y clusterv1beta1.ClusterDecision) bool {
		return x.ClusterName == y.ClusterName && equalScores(x.Score, y.Score)
	})
}

func equalScores(a, b *int64) bool {
	return (a == nil) == (b == nil) && (a == nil || *a == *b)
}

// DeleteDecision records that a PlacementDecision is gone.
func (s *Scheduler) DeleteDecision(key Key) {
	if d := s.decisions[key]; d != nil {
		delete(s.decisions, key)
		s.drop(key, d)
	}
}

// drop reverts the counts of a decision.
func (s *Scheduler) drop(key Key, d *decision) {
	for _, slot := range d.slots {
		c := s.slots[slot]
		s.recount(c, -1)
		s.tidy(c)
	}
	p := s.placements[d.owner]
	if p == nil {
		return
	}
	if p.observed[key.Name] == d {
		delete(p.observed, key.Name)
	}
	s.touch(p)
	s.tidyPlacement(p)
}

// recount changes how many decisions name a cluster.
func (s *Scheduler) recount(c *cluster, by int) {
	if c.decisions > 0 {
		s.histogram[c.decisions]--
	}
	c.decisions += by
	for len(s.histogram) <= c.decisions {
		s.histogram = append(s.histogram, 0)
	}
	if c.decisions > 0 {
		s.histogram[c.decisions]++
	}
	for n := len(s.histogram); n > 0 && s.histogram[n-1] == 0; n-- {
		s.histogram = s.histogram[:n-1]
	}
}
