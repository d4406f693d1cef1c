// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/drift"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/ledger"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/status"
	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// folded is the compact form of an item between passes, for an ordinary item: it is
// applied, and nothing more is tracked. The rest is in the record of its
// AppliedManifestWork. It takes a tenth of the memory of an Item.
type folded struct {
	intent digest.Sum
	seen   apply.Pack
	// looked is when the object was last read, relative to the time the record was made.
	looked time.Duration
	// repairs counts writes that followed a change by others.
	repairs int
}

// plain returns an item with nothing special about it.
func plain(recorded workv1.AppliedManifestResourceMeta, o apply.Options, why digest.Sum, seen apply.Seen, looked time.Time) Item {
	return Item{
		ID: apply.RecordedID(recorded), Resource: apply.Resource(recorded), Phase: kept, Options: o, Intent: why,
		Result:  apply.Result{Seen: seen},
		Outcome: status.Outcome{Applied: status.Applied(""), Available: status.Exists(true), Feedback: status.NoFeedback()},
		Looked:  looked,
	}
}

// unplaced returns the item without its ordinal in the status, which each pass sets
// again.
func (i Item) unplaced() Item {
	i.Meta, i.Outcome.Meta = workv1.ManifestResourceMeta{}, workv1.ManifestResourceMeta{}
	return i
}

// fold compacts the items where all are plain and have the same options, and reports
// whether it did. It does not affect any decision of a pass.
func (r *record) fold(applied *workv1.AppliedManifestWork) bool {
	resources := applied.Status.AppliedResources
	if !r.settled || len(r.items) == 0 || len(r.items) != len(resources) {
		return false
	}
	places := make(map[apply.ID]int, len(resources))
	for i, recorded := range resources {
		places[apply.RecordedID(recorded)] = i
	}
	list := make([]folded, len(resources))
	options := r.items[0].Options
	for _, item := range r.items {
		place, ok := places[item.ID]
		if !ok {
			return false
		}
		usual := plain(resources[place], options, item.Intent, item.Result.Seen, item.Looked)
		if usual.Repairs = item.Repairs; !reflect.DeepEqual(item.unplaced(), usual) {
			return false
		}
		delete(places, item.ID)
		list[place] = folded{intent: item.Intent, seen: item.Result.Seen.Packed(), looked: item.Looked.Sub(r.began), repairs: item.Repairs}
	}
	r.folded, r.options, r.items = list, options, nil
	return true
}

// unfold restores the items. If others wrote or removed the list that names them, they
// are forgotten, and the pass reads every object.
func (r *record) unfold(applied *workv1.AppliedManifestWork) {
	if r.folded == nil {
		return
	}
	if applied != nil && r.resources == sumOf(applied.Status.AppliedResources) {
		r.items = slices.Collect(r.each(applied))
	}
	r.folded = nil
}

// each yields the items, folded or not; folded items are named by the list that the last
// pass left on the AppliedManifestWork.
func (r *record) each(applied *workv1.AppliedManifestWork) iter.Seq[Item] {
	return func(yield func(Item) bool) {
		for _, item := range r.items {
			if !yield(item) {
				return
			}
		}
		for i, f := range r.folded {
			item := plain(applied.Status.AppliedResources[i], r.options, f.intent, f.seen.Seen(), r.began.Add(f.looked))
			if item.Repairs = f.repairs; !yield(item) {
				return
			}
		}
	}
}

// seal digests the objects of a work whose items are all plain: the same seal later means
// the same intents, and unchanged objects.
func seal(items iter.Seq[Item]) string {
	sum := sha256.New()
	for item := range items {
		fmt.Fprintf(sum, "%q %x %s\n", item.ID.String(), item.Intent, item.Result.Seen.Mark(item.Options.Manager))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// notesOn digests the annotations that a record holds for an agent that restarts: the
// executor, the complete manifests, and why nothing is removed. It is zero if there are
// none.
func notesOn(applied *workv1.AppliedManifestWork) digest.Sum {
	notes := [...]string{
		applied.Annotations[workv1.AnnotationExecutor], applied.Annotations[workv1.AnnotationCompleteManifests],
		applied.Annotations[workv1.AnnotationRemovalHeld],
	}
	if notes == [len(notes)]string{} {
		return digest.Sum{}
	}
	return digest.Of(notes)
}

// recordApplied records on the AppliedManifestWork which state of the work was applied,
// and the seal if the pass folded it, so that an agent that restarts knows without a
// request that the work is applied. Without the seal the work is applied again, which
// changes nothing; so a write for the seal alone waits until the work is at rest, and
// recordApplied returns until when. A change in between records both at once, and a
// deletion spares the write.
func (p *pass) recordApplied(ctx context.Context, folded bool) time.Duration {
	values := map[string]string{}
	if now := ledger.SightingOf(p.state.Work); !ledger.Noted(p.applied, now) || p.state.WentBack != "" && !p.plan.Mark {
		values[workv1.AnnotationLastSeen] = now.String()
	}
	if p.plan.Unmark {
		values[workv1.AnnotationRemovalHeld] = ""
	}
	alone := len(values) == 0
	if folded {
		p.record.addSeal(values, p.applied)
	}
	switch {
	case len(values) == 0:
		return 0
	case alone:
		p.record.sealAt = p.c.Clock.Now().Add(p.c.SealAfter)
		return p.c.SealAfter
	}
	if err := p.annotate(ctx, values); err != nil {
		logNotRecorded(ctx, p.work.Name, err)
		return 0
	}
	p.record.notes = notesOn(p.applied)
	return 0
}

// addSeal adds to annotations the seal of a folded record, where it is new.
func (r *record) addSeal(values map[string]string, applied *workv1.AppliedManifestWork) {
	if value := seal(r.each(applied)); value != applied.Annotations[workv1.AnnotationAppliedDigest] {
		values[workv1.AnnotationAppliedDigest] = value
	}
}

// sealLast is how long the seal of a work waits at most for other works to come to rest.
// Seals are recorded sealEvery after each other, so that the seals of many works do not
// delay a work that changes.
const sealLast, sealEvery = time.Minute, 5 * time.Millisecond

// sealDue records the seal of a work at rest when it is due, and otherwise returns when it
// will be.
func (c *Controller) sealDue(ctx context.Context, work string, r *record) time.Duration {
	if r.sealAt.IsZero() {
		return 0
	}
	c.mu.Lock()
	rest := c.passed.Add(c.c.SealAfter)
	c.mu.Unlock()
	now, last := c.c.Clock.Now(), r.sealAt.Add(sealLast)
	if now.Before(r.sealAt) || (now.Before(rest) && now.Before(last)) {
		return max(r.sealAt.Sub(now), min(rest.Sub(now), last.Sub(now)))
	}
	if turn := c.sealTurn(r, now); turn > 0 {
		return turn
	}
	r.sealAt = time.Time{}
	applied := c.c.Applied.Get(c.c.Applied.Identity.Name(work))
	if applied == nil || !c.asRecorded(applied, r) {
		return 0
	}
	values := map[string]string{}
	if r.addSeal(values, applied); len(values) == 0 {
		return 0
	}
	if _, err := c.c.Applied.Annotate(ctx, applied, values); err != nil {
		logNotRecorded(ctx, work, err)
	}
	return 0
}

// sealTurn gives the seal of a work its turn, and returns when that is.
func (c *Controller) sealTurn(r *record, now time.Time) time.Duration {
	if r.sealTurn {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sealNext.Before(now) {
		c.sealNext = now
	}
	r.sealAt, r.sealTurn = c.sealNext, true
	c.sealNext = c.sealNext.Add(sealEvery)
	return r.sealAt.Sub(now)
}

func logNotRecorded(ctx context.Context, work string, err error) {
	logr.FromContextOrDiscard(ctx).V(1).Info("The applied state was not recorded", "work", work, "error", err.Error())
}

// watchWait is how long a work that may be applied already waits for the watches of its
// objects, and watchCheck how often it checks for them; their first list wakes the work
// sooner.
const watchWait, watchCheck = 10 * time.Second, time.Second

// restore rebuilds the memory of a work that an earlier process of the agent applied. It
// makes no request: manifests and objects are compared with the seal. False means that
// the watches have not shown the objects yet.
func (c *Controller) restore(s *State, r *record) bool {
	if !restorable(s, r) {
		return true
	}
	c.c.Watcher.Track(s.Applied.Name, drift.Recorded(s.Applied.Status.AppliedResources))
	order := make(map[apply.ID]int, len(s.Manifests))
	for i := range s.Manifests {
		m := &s.Manifests[i]
		if m.Err != nil || m.MapErr != nil || m.Refusal != nil || m.Rival != "" {
			return true
		}
		order[apply.IDOf(m.Mapping.Resource, m.Object.GetNamespace(), m.Object.GetName())] = i
	}
	items := make([]Item, 0, len(s.Manifests))
	views := make([]view, 0, len(s.Manifests))
	for _, recorded := range s.Applied.Status.AppliedResources {
		i, declared := order[apply.RecordedID(recorded)]
		if !declared {
			return true
		}
		m := &s.Manifests[i]
		item := plain(recorded, m.Options, intentOf(*m), apply.Seen{}, time.Time{})
		shown := c.view(item)
		switch {
		case shown.sight == drift.Unknown && s.Now.Sub(r.began) < watchWait:
			return false
		case shown.sight != drift.Present, strays(m.Options, s.Applied.UID, shown.seen):
			return true
		}
		item.Result.Seen = shown.seen
		items, views = append(items, item), append(views, shown)
	}
	if seal(slices.Values(items)) != s.Applied.Annotations[workv1.AnnotationAppliedDigest] {
		return true
	}
	for k := range items {
		m := &s.Manifests[order[items[k].ID]]
		m.Before, m.Shown = &items[k], views[k]
	}
	return true
}

// strays reports whether an object's owner differs from what its options require, or the
// object is being deleted. The seal does not cover this, because our field manager does
// not hold it.
func strays(o apply.Options, work types.UID, seen apply.Seen) bool {
	return writesOwner(o) && (seen.Deleting || seen.OwnedBy(work) != o.Owned)
}

// restorable reports whether an earlier process may have applied the work.
func restorable(s *State, r *record) bool {
	return r.generation == 0 && s.Adopted && s.Applied.DeletionTimestamp == nil && s.Work.Spec.Executor == nil &&
		s.Applied.Annotations[workv1.AnnotationAppliedDigest] != "" &&
		len(s.Applied.Status.AppliedResources) == len(s.Manifests)
}
