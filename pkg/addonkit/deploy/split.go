// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"cmp"
	"slices"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

const (
	// budget is how many bytes of manifests a work is filled with.
	budget = 409600
	// maxWork is how many bytes admission accepts.
	maxWork = 500 << 10
)

// slot is one ManifestWork that holds manifests, existing or new.
type slot struct {
	index int
	work  *workv1.ManifestWork
	// order is the index of each manifest in the existing work.
	order map[addonkit.ID]int
	// manifests are the desired ones, size their bytes.
	manifests []addonkit.Manifest
	size      int
}

// open reports whether the slot accepts manifests; a work that is being deleted does not.
func (s *slot) open() bool { return s.work == nil || s.work.DeletionTimestamp == nil }

func (s *slot) add(m addonkit.Manifest) {
	s.manifests = append(s.manifests, m)
	s.size += m.Bytes()
}

// slotOf reads an existing work. Items that are not manifests are skipped; the next write
// drops them.
func slotOf(index int, work *workv1.ManifestWork) *slot {
	s := &slot{index: index, work: work, order: map[addonkit.ID]int{}}
	for i, raw := range work.Spec.Workload.Manifests {
		if id, ok := idOf(raw); ok {
			s.order[id] = i
		}
	}
	return s
}

// arrange puts manifests into slots: each stays where it is; the others go, largest first,
// where most space is left, or into a new slot. A manifest in a work that is being deleted
// waits there for its end, and so does one that would otherwise need a new slot: names stay
// the same as if that work had never existed. Slots without manifests remain in the result,
// empty.
func arrange(slots []*slot, manifests []addonkit.Manifest) []*slot {
	slices.SortStableFunc(slots, func(a, b *slot) int { return cmp.Compare(a.index, b.index) })
	rendered := map[addonkit.ID]int{}
	var fresh []addonkit.Manifest
	for i, m := range manifests {
		rendered[m.ID] = i
		if at := slices.IndexFunc(slots, func(s *slot) bool { _, held := s.order[m.ID]; return held }); at >= 0 {
			slots[at].add(m)
		} else {
			fresh = append(fresh, m)
		}
	}
	for _, s := range slots {
		fresh = append(fresh, s.overflow()...)
	}
	largestFirst(fresh)
	for _, m := range fresh {
		to := slotFor(m, slots)
		if to == nil {
			to = &slot{index: freeIndex(slots)}
			slots = append(slots, to)
		}
		to.add(m)
	}
	for _, s := range slots {
		s.sort(rendered)
	}
	return slots
}

// overflow removes from a slot what makes it too large for admission: the largest
// manifests, until it is within the budget.
func (s *slot) overflow() []addonkit.Manifest {
	if s.size <= maxWork {
		return nil
	}
	all := slices.Clone(s.manifests)
	largestFirst(all)
	var out []addonkit.Manifest
	for len(all) > 1 && s.size > budget {
		out = append(out, all[0])
		s.size -= all[0].Bytes()
		all = all[1:]
	}
	s.manifests = all
	return out
}

// sort keeps the manifests of a slot in the order of the existing work, to avoid needless
// writes, and puts new ones in the order of the author.
func (s *slot) sort(rendered map[addonkit.ID]int) {
	rank := func(id addonkit.ID) int {
		if at, held := s.order[id]; held {
			return at
		}
		return len(s.order) + rendered[id]
	}
	slices.SortFunc(s.manifests, func(a, b addonkit.Manifest) int { return cmp.Compare(rank(a.ID), rank(b.ID)) })
}

func largestFirst(list []addonkit.Manifest) {
	slices.SortFunc(list, func(a, b addonkit.Manifest) int {
		return cmp.Or(cmp.Compare(b.Bytes(), a.Bytes()), cmp.Compare(a.ID.String(), b.ID.String()), cmp.Compare(a.APIVersion(), b.APIVersion()))
	})
}

// slotFor returns the open slot with the most space, or else the first slot that is being
// deleted, if it could hold the manifest; nil if none could.
func slotFor(m addonkit.Manifest, slots []*slot) (best *slot) {
	for _, s := range slots {
		switch {
		case s.size+m.Bytes() > budget:
		case best == nil, s.open() && (!best.open() || s.size < best.size):
			best = s
		}
	}
	return best
}

func freeIndex(slots []*slot) int {
	for i := 0; ; i++ {
		if !slices.ContainsFunc(slots, func(s *slot) bool { return s.index == i }) {
			return i
		}
	}
}
