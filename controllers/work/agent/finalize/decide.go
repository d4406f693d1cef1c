// SPDX-License-Identifier: Apache-2.0

package finalize

import (
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/ledger"
	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// never is the grace from which on nothing is evicted.
const never = 100 * 365 * 24 * time.Hour

// Step is the next step of cleaning up a work.
type Step int

const (
	// Rest: nothing to do until an event or RequeueAfter.
	Rest Step = iota
	// Delete removes the AppliedManifestWork, which keeps its finalizer.
	Delete
	// Empty removes the objects and then the AppliedManifestWork's finalizer. While objects
	// wait, it sets the condition Deleting of the ManifestWork.
	Empty
	// Release drops the ManifestWork's finalizer, after a live read has shown that the
	// AppliedManifestWork is gone.
	Release
	// Stamp records when the work was first missed.
	Stamp
	// Unstamp removes that record.
	Unstamp
	// Evict deletes the AppliedManifestWork of a work that the hub does not know, after
	// asking the hub.
	Evict
	// Hold keeps the objects of a work whose grace is over, because too many works are
	// missed at once, or because the hub went back in time.
	Hold
	// Mark records that the hub went back, so that nothing is removed, after checking
	// that it really did.
	Mark
	// HoldDeletion reports on the work that its objects are kept.
	HoldDeletion
)

// State is the input of a decision.
type State struct {
	// Now is the time of the pass, Grace how long a missed work is kept.
	Now   time.Time
	Grace time.Duration
	// Work is the ManifestWork, nil if the hub does not show it.
	Work *workv1.ManifestWork
	// Applied is the AppliedManifestWork, nil if there is none.
	Applied *workv1.AppliedManifestWork
	// OtherAgent is set when Applied carries another agent's identity.
	OtherAgent bool
	// Successor is the AppliedManifestWork of the hub's current address, where Applied is
	// of an earlier one; nil if there is none.
	Successor *workv1.AppliedManifestWork
	// Moved is the hub's work of the name that Applied had at an earlier address, nil if there
	// is none. It is only read while there is a Successor.
	Moved *workv1.ManifestWork
	// Awaited is set when Applied is of an earlier address, the hub has a work of
	// its name, and Successor does not record its objects yet.
	Awaited bool
	// Known counts the AppliedManifestWorks of this agent, and Missed those of works that
	// the hub does not show. Held is when an eviction was last held because of them.
	Known, Missed int
	Held          time.Time
	// Unreported is set when the work was deleted before this agent had reported anything
	// about it; the grace is not for that.
	Unreported bool
	// WentBack says in what way Work, or the hub's work of the name that Applied had at
	// an earlier address, is older than what was last applied.
	WentBack string
	// Unconfirmed is why nothing of Applied is removed until a person removes that note;
	// Others counts the works with such a note.
	Unconfirmed string
	Others      int
}

// Decide returns the next step, and when to come back if it is Rest.
func Decide(s State) (Step, time.Duration) {
	deleting := s.Work != nil && s.Work.DeletionTimestamp != nil
	switch {
	case s.Applied != nil && s.Applied.DeletionTimestamp != nil:
		if s.OtherAgent || !slices.Contains(s.Applied.Finalizers, workv1.FinalizerAppliedManifestWork) {
			return Rest, 0
		}
		return Empty, 0
	case deleting:
		return decideDeleting(s)
	case s.Applied == nil || s.OtherAgent:
		return Rest, 0
	case s.Work != nil:
		if s.Applied.Status.EvictionStartTime != nil {
			return Unstamp, 0
		}
		return Rest, 0
	}
	return decideMissed(s)
}

func decideDeleting(s State) (Step, time.Duration) {
	switch {
	case !slices.Contains(s.Work.Finalizers, workv1.FinalizerManifestWork):
		return Rest, 0
	case s.Applied == nil:
		return Release, 0
	case s.Unconfirmed != "" && s.takes():
		return HoldDeletion, 0
	case s.WentBack != "" && s.takes():
		return Mark, 0
	}
	return Delete, 0
}

// decideMissed handles an AppliedManifestWork whose work the hub does not show.
func decideMissed(s State) (Step, time.Duration) {
	since := s.Applied.Status.EvictionStartTime
	switch {
	case s.succeeded():
		return Evict, 0
	case s.Grace >= never && since != nil:
		return Unstamp, 0
	case s.Grace >= never:
		return Rest, 0
	case since == nil:
		return Stamp, 0
	}
	if rest := since.Add(s.Grace).Sub(s.Now); rest > 0 && !s.Unreported {
		return Rest, rest
	}
	if s.Awaited {
		return Rest, pendingLast
	}
	if s.tooMany() || s.doubtful() {
		return Hold, 0
	}
	// Where some of many works came back, the grace of the others restarts.
	if rest := s.Held.Add(s.Grace).Sub(s.Now); !s.Held.IsZero() && rest > 0 {
		return Rest, rest
	}
	return Evict, 0
}

// tooMany reports whether more works are missed at once than users plausibly deleted.
func (s State) tooMany() bool { return s.Missed >= manyMissed && 2*s.Missed > s.Known }

// doubtful reports whether the hub went back in time: works that it does not know may be
// younger than its backup.
func (s State) doubtful() bool { return s.Unconfirmed != "" || s.WentBack != "" || s.Others > 0 }

// takes reports whether deleting the work also deletes an object.
func (s State) takes() bool {
	return slices.ContainsFunc(s.Applied.Status.AppliedResources, func(r workv1.AppliedManifestResourceMeta) bool {
		return apply.Owned(s.Work.Spec.DeleteOption, apply.RecordedID(r))
	})
}

// succeeded reports whether Applied can be deleted because Successor holds each of its
// objects, except those that were gone or not created yet: then no object is removed with
// it. It must not stay, because its marks of complete manifests would be taken for those
// of the next work of that name.
func (s State) succeeded() bool {
	return s.Successor != nil && !slices.ContainsFunc(s.Applied.Status.AppliedResources, func(r workv1.AppliedManifestResourceMeta) bool {
		return r.UID != "" && !ledger.Holds(s.Successor, r)
	})
}

// restored reports whether the work was changed after its last generation was applied, so
// that owner references may not match the delete option yet. Deleting a work raises its
// generation by one.
func restored(work *workv1.ManifestWork) bool {
	c := apimeta.FindStatusCondition(work.Status.Conditions, workv1.ConditionApplied)
	return c != nil && work.Generation-c.ObservedGeneration > 1
}
