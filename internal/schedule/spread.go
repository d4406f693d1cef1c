// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"cmp"
	"container/heap"
	"strconv"
	"strings"

	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// topology returns the value of a constraint's label or claim on a cluster.
func topology(t *clusterv1beta1.SpreadConstraintsTerm, c *cluster) (string, bool) {
	if t.TopologyKeyType == clusterv1beta1.TopologyKeyTypeClaim {
		return claims(c.object.Status.ClusterClaims).Lookup(t.TopologyKey)
	}
	value, has := c.object.Labels[t.TopologyKey]
	return value, has
}

// spreader takes ranked clusters, best first, as long as the counts of their topology
// values stay within maxSkew of the lowest count. A cluster that has to wait is checked
// again when the lowest count has risen.
//
// Clusters with the same topology values are taken in the order of rank, so they share a
// bucket, and only the first of each bucket is ever compared.
type spreader struct {
	terms  []clusterv1beta1.SpreadConstraintsTerm
	counts []places
	// queue are the buckets that may be taken from, by level and rank of their first
	// cluster. The level of a bucket can only get worse until a minimum rises, so an
	// outdated level is never too bad.
	queue queue[*bucket]
	// blocked are buckets that DoNotSchedule holds back.
	blocked []*bucket
}

// places counts the taken clusters by the value of one topology key.
type places struct {
	counts map[string]int
	// least is the smallest count, and with the number of values that have it.
	least, with int
}

func (p *places) add(place string) (rose bool) {
	p.counts[place]++
	if p.counts[place]-1 != p.least {
		return false
	}
	if p.with--; p.with > 0 {
		return false
	}
	p.least++
	for _, n := range p.counts {
		if n == p.least {
			p.with++
		}
	}
	return true
}

// bucket holds clusters with the same topology values and equal ranking by taints.
type bucket struct {
	places []string
	has    []bool
	// standing is their effect of taints, left the clusters that are not taken yet.
	standing standing
	left     []ranked
	// ranks are the ranks of the remaining clusters, level that of taking the first.
	ranks []int
	level int
}

// compareBuckets orders buckets by level and by the rank of their first cluster.
func compareBuckets(a, b *bucket) int {
	return cmp.Or(cmp.Compare(a.level, b.level), cmp.Compare(a.ranks[0], b.ranks[0]))
}

// newSpreader takes clusters in the order of their rank.
func newSpreader(terms []clusterv1beta1.SpreadConstraintsTerm, order []ranked) *spreader {
	s := &spreader{terms: terms, counts: make([]places, len(terms)), queue: queue[*bucket]{compare: compareBuckets}}
	for i := range s.counts {
		s.counts[i].counts = map[string]int{}
	}
	buckets := map[string]*bucket{}
	var key strings.Builder
	for rank, r := range order {
		b := &bucket{places: make([]string, len(terms)), has: make([]bool, len(terms)), standing: r.standing}
		key.Reset()
		for i := range terms {
			b.places[i], b.has[i] = topology(&terms[i], r.cluster)
			if b.has[i] {
				s.counts[i].counts[b.places[i]] = 0
				key.WriteString(strconv.Quote(b.places[i]))
			}
			key.WriteByte(0)
		}
		key.WriteByte(byte(r.standing))
		if known := buckets[key.String()]; known != nil {
			b = known
		} else {
			buckets[key.String()] = b
			s.blocked = append(s.blocked, b)
		}
		b.left = append(b.left, r)
		b.ranks = append(b.ranks, rank)
	}
	for i := range s.counts {
		s.counts[i].with = len(s.counts[i].counts)
	}
	s.unblock()
	return s
}

// unblock evaluates all buckets again.
func (s *spreader) unblock() {
	all := append(s.queue.items, s.blocked...)
	s.queue.items, s.blocked = nil, nil
	for _, b := range all {
		s.enqueue(b)
	}
}

func (s *spreader) enqueue(b *bucket) {
	level, allowed := s.level(b)
	if !allowed {
		s.blocked = append(s.blocked, b)
		return
	}
	b.level = level
	heap.Push(&s.queue, b)
}

// level ranks a bucket by what taking from it now would violate: PreferNoSelect weighs
// most, then the ScheduleAnyway constraints, the first one most. Taking from it is not
// allowed if that violates DoNotSchedule.
func (s *spreader) level(b *bucket) (level int, allowed bool) {
	level = int(b.standing)
	for i := range s.terms {
		level *= 2
		if !s.violates(i, b.places[i], b.has[i]) {
			continue
		}
		if s.terms[i].WhenUnsatisfiable == clusterv1beta1.DoNotSchedule {
			return 0, false
		}
		level++
	}
	return level, true
}

// violates reports whether taking a cluster with that topology value, if it has one, would
// violate a constraint.
func (s *spreader) violates(i int, place string, has bool) bool {
	p := &s.counts[i]
	return !has || p.counts[place]+1-p.least > int(s.terms[i].MaxSkew)
}

// choose returns the wanted number of clusters, or as many as the constraints allow.
func (s *spreader) choose(wanted int) []ranked {
	var taken []ranked
	for len(taken) < wanted && s.queue.Len() > 0 {
		b := heap.Pop(&s.queue).(*bucket)
		level, allowed := s.level(b)
		if !allowed || level != b.level {
			s.enqueue(b)
			continue
		}
		taken = append(taken, b.left[0])
		b.left, b.ranks = b.left[1:], b.ranks[1:]
		rose := false
		for i := range s.terms {
			rose = b.has[i] && s.counts[i].add(b.places[i]) || rose
		}
		if len(b.left) > 0 {
			s.enqueue(b)
		}
		if rose {
			s.unblock()
		}
	}
	return taken
}
