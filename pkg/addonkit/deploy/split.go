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
	// maxWork is how many admission takes.
	maxWork = 500 << 10
)

// slot is one ManifestWork that holds manifests: one that is there, or a new one.
type slot struct {
	index int
	work  *workv1.ManifestWork
	// order is where each manifest stands in the work that is there.
	order map[addonkit.ID]int
	// manifests are those wanted, size their bytes.
	manifests []addonkit.Manifest
	size      int
}

// open tells whether the slot takes more: a work that is being deleted takes none.
func (s *slot) open() bool { return s.work == nil || s.work.DeletionTimestamp == nil }

func (s *slot) add(m addonkit.Manifest) {
	s.manifests = append(s.manifests, m)
	s.size += m.Bytes()
}

// slotOf reads a work that is there. What it holds besides manifests is not looked
// at here; what is no manifest is dropped by the next write.
func slotOf(index int, work *workv1.ManifestWork) *slot {
	s := &slot{index: index, work: work, order: map[addonkit.ID]int{}}
	for i, raw := range work.Spec.Workload.Manifests {
		if id, ok := idOf(raw); ok {
			s.order[id] = i
		}
	}
	return s
}

// arrange puts manifests into slots: each stays where it is, the others go, the
// largest first, where most room is left, or into a new slot. One that is in a work
// that is being deleted waits for its end there, and so does one for which there would
// be a new slot otherwise: names are the same as if that work had never been. Slots
// without manifests remain in the result, empty.
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
		to := roomiest(slots)
		if to == nil || to.size+m.Bytes() > budget {
			to = ending(slots, m)
		}
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

// overflow takes out of a slot what makes it too large for admission: the largest
// until it is within the budget.
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

// sort brings the manifests of a slot into the order of the work that is there, so
// that it is not written for nothing, and new ones into that of the author.
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

// roomiest is the open slot with the most room; nil if there is none.
func roomiest(slots []*slot) *slot {
	var best *slot
	for _, s := range slots {
		if s.open() && (best == nil || s.size < best.size) {
			best = s
		}
	}
	return best
}

// ending is the first slot that is being deleted and would take a manifest; nil if
// there is none.
func ending(slots []*slot, m addonkit.Manifest) *slot {
	for _, s := range slots {
		if !s.open() && s.size+m.Bytes() <= budget {
			return s
		}
	}
	return nil
}

func freeIndex(slots []*slot) int {
	for i := 0; ; i++ {
		if !slices.ContainsFunc(slots, func(s *slot) bool { return s.index == i }) {
			return i
		}
	}
}
