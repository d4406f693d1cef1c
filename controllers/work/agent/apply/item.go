// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/drift"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/executor"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/status"
	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

const (
	// lookEvery is the least time between two looks at one object that changed.
	lookEvery = 500 * time.Millisecond
	// hotAfter repairs that followed each other within coolAfter slow the agent
	// down to one look each hotEvery: somebody else writes the same fields.
	hotAfter  = 5
	hotEvery  = 10 * time.Second
	coolAfter = time.Minute
	// conflictEvery is when an object whose fields others hold is tried again
	// although it did not change.
	conflictEvery = 5 * time.Minute
)

// Item is what is remembered of one manifest after a pass.
type Item struct {
	// Meta names the object as the status does.
	Meta workv1.ManifestResourceMeta
	// Stand is where it stands. Fails counts the tries that failed in a row, and Next is
	// when the next one is due.
	Stand stand
	Fails int
	Next  time.Time
	// ID and Resource name the object for requests, where Stand.names.
	ID       apply.ID
	Resource schema.GroupVersionResource
	// Options say how it is applied, Intent digests them with the content.
	Options apply.Options
	Intent  digest.Sum
	// Result is what the last write or look left.
	Result apply.Result
	// Outcome is what stands in the status.
	Outcome status.Outcome
	// Executor is who applies the object. Rights is the epoch of its rights at the last
	// look; Granted is set when they were found to suffice then.
	Executor executor.Account
	Rights   uint64
	Granted  bool
	// Looked is when the object was last looked at.
	Looked time.Time
	// Repairs counts writes that followed a change by somebody else.
	Repairs int
	// Reading is what is remembered of reading the object for the work's rules.
	Reading reading
}

// view is what a watch shows of an object.
type view struct {
	seen  apply.Seen
	sight drift.Sight
	// rights is the epoch of the executor's rights now.
	rights uint64
}

// due tells whether a remembered object has to be looked at now, or else when
// to come back without an event (zero: not at all).
func (i Item) due(v view, work types.UID, now time.Time) (look bool, wait time.Duration) {
	switch {
	case v.rights != i.Rights, i.Stand == fresh:
		return true, 0
	case i.Stand == denied:
		return after(executor.RetryEvery - now.Sub(i.Looked))
	case i.Fails > 0:
		return after(i.Next.Sub(now))
	case !i.Stand.names():
		return false, 0
	case !i.changed(v, work, now):
		return i.overdue(now)
	}
	pause := lookEvery
	if i.hot(now) {
		pause = hotEvery
	}
	return after(max(pause-now.Sub(i.Looked), lookEvery-now.Sub(i.Reading.at)))
}

// after is now, or in that time.
func after(rest time.Duration) (due bool, wait time.Duration) { return rest <= 0, max(rest, 0) }

// overdue tells whether an object that did not change has to be looked at all the
// same, or else when: one that others hold, because it may be free, and one that
// somebody else kept changing, so that this is said no longer than it is so.
func (i Item) overdue(now time.Time) (look bool, wait time.Duration) {
	every := conflictEvery
	switch {
	case i.fought():
		every = coolAfter
	case i.Stand != blocked:
		return false, 0
	}
	return after(every - now.Sub(i.Looked))
}

// changed tells whether the object may not be as it was left.
func (i Item) changed(v view, work types.UID, now time.Time) bool {
	there := i.Result.Seen.UID != ""
	switch v.sight {
	case drift.Absent:
		return there
	case drift.Blind:
		// The look is noted when it is over, a moment after what woke it.
		return now.Sub(i.Looked) >= drift.PollEvery-lookEvery
	case drift.Present:
		if !there {
			return true
		}
		if i.Stand == blocked {
			return v.seen.Version != i.Result.Seen.Version && !v.seen.Older(i.Result.Seen)
		}
		return apply.Drifted(i.upheld(), work, i.Result, v.seen)
	}
	return false
}

// upheld are the options as far as they hold for the object now: while it rests, no
// more of it is kept than its owner.
func (i Item) upheld() apply.Options {
	o := i.Options
	if i.Stand == resting && writesOwner(o) {
		o.Strategy = workv1.UpdateStrategyTypeCreateOnly
	}
	return o
}

// fought tells whether the object was repaired again and again.
func (i Item) fought() bool { return i.Repairs >= hotAfter }

// hot tells whether that goes on.
func (i Item) hot(now time.Time) bool { return i.fought() && now.Sub(i.Looked) < coolAfter }

// looked notes a look. Repairs before a time of peace do not count any more.
func (i *Item) looked(now time.Time) {
	if now.Sub(i.Looked) >= coolAfter {
		i.Repairs = 0
	}
	i.Looked = now
}

// unread notes one more read for rules that failed, and waits for rest, for
// lastRetry at most.
func (r *reading) unread(rest time.Duration) {
	r.fails++
	for backoff(r.fails) < min(rest, lastRetry) {
		r.fails++
	}
}
