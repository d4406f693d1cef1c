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
	// lookEvery is the minimum time between two reads of a changed object.
	lookEvery = 500 * time.Millisecond
	// hotAfter repairs within coolAfter of each other slow the agent down to one read
	// each hotEvery: another writer changes the same fields.
	hotAfter  = 5
	hotEvery  = 10 * time.Second
	coolAfter = time.Minute
	// conflictEvery is when an object whose fields others hold is retried although it did
	// not change.
	conflictEvery = 5 * time.Minute
)

// phase is the phase of a manifest between passes. It is in exactly one of these; the
// package comment shows the transitions.
type phase int

const (
	// fresh: its object has not been read yet, or not since it stopped being complete.
	fresh phase = iota
	// broken: it names no object. Only an edit of the work helps.
	broken
	// unknown: its kind does not exist, or discovery failed. Fails and Next say when
	// discovery is retried.
	unknown
	// kept: the object is as the manifest, or an older work, declares it. It is read when
	// it changes.
	kept
	// refused: the manifest is not applied, whatever the object is. The object is read
	// when it changes, to see whether it exists.
	refused
	// blocked: others hold fields of the object, or it is being deleted. It is retried
	// when it changes, and every conflictEvery.
	blocked
	// denied: the executor may not apply it. It is checked again when the executor's
	// rights change, and every executor.RetryEvery.
	denied
	// failing: the last try failed. Fails and Next say when the next one is due.
	failing
	// resting: the manifest is complete, and only the owner of the object is maintained.
	// It is read when it changes; if that failed, Fails and Next say when it is retried.
	resting
)

// names reports whether a manifest in this phase names an object.
func (s phase) names() bool { return s != broken && s != unknown }

const (
	// A failed manifest is retried after firstRetry, then twice that, and so on up to
	// lastRetry.
	firstRetry = 10 * time.Millisecond
	lastRetry  = time.Minute
)

// backoff returns how long to wait after that many failures.
func backoff(fails int) time.Duration {
	d := firstRetry
	for range fails - 1 {
		if d *= 2; d >= lastRetry {
			return lastRetry
		}
	}
	return d
}

// moveTo moves a manifest to a phase in which no try has failed yet.
func (i *Item) moveTo(s phase) { i.Phase, i.Fails, i.Next = s, 0, time.Time{} }

// recordFailure counts one more failure. The next try is due after rest at the earliest.
// A manifest that rests, or whose kind is unknown, stays in that phase.
func (i *Item) recordFailure(now time.Time, rest time.Duration) {
	if i.Phase != resting && i.Phase != unknown {
		i.Phase = failing
	}
	i.Fails++
	i.Next = now.Add(max(backoff(i.Fails), rest))
}

// Item is what is remembered of one manifest after a pass.
type Item struct {
	// Meta names the object as the status does.
	Meta workv1.ManifestResourceMeta
	// Phase is the phase of the manifest. Fails counts the tries that failed in a row,
	// and Next is when the next one is due.
	Phase phase
	Fails int
	Next  time.Time
	// ID and Resource name the object for requests, where Phase.names.
	ID       apply.ID
	Resource schema.GroupVersionResource
	// Options say how it is applied, Intent digests them with the content.
	Options apply.Options
	Intent  digest.Sum
	// Result is that of the last write or read.
	Result apply.Result
	// Outcome is what the status shows.
	Outcome status.Outcome
	// Executor is who applies the object. Rights is the epoch of its rights at the last
	// read; Granted is set when they sufficed then.
	Executor executor.Account
	Rights   uint64
	Granted  bool
	// Looked is when the object was last read.
	Looked time.Time
	// Repairs counts writes that followed a change by others.
	Repairs int
	// Reading is what is remembered of reading the object for rules.
	Reading reading
}

// view is what a watch shows of an object.
type view struct {
	seen  apply.Seen
	sight drift.Sight
	// rights is the current epoch of the executor's rights.
	rights uint64
}

// due reports whether a remembered object has to be read now, or else when to come back
// without an event (zero: not at all).
func (i Item) due(v view, work types.UID, now time.Time) (look bool, wait time.Duration) {
	switch {
	case v.rights != i.Rights, i.Phase == fresh:
		return true, 0
	case i.Phase == denied:
		return after(executor.RetryEvery - now.Sub(i.Looked))
	case i.Fails > 0:
		return after(i.Next.Sub(now))
	case !i.Phase.names():
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

// after returns whether rest has elapsed, and otherwise how long to wait.
func after(rest time.Duration) (due bool, wait time.Duration) { return rest <= 0, max(rest, 0) }

// overdue reports whether an object that did not change has to be read anyway, or else
// when: one whose fields others hold, because they may be free, and one that others kept
// changing, so that the status does not report it longer than it is true.
func (i Item) overdue(now time.Time) (look bool, wait time.Duration) {
	every := conflictEvery
	switch {
	case i.fought():
		every = coolAfter
	case i.Phase != blocked:
		return false, 0
	}
	return after(every - now.Sub(i.Looked))
}

// changed reports whether the object may have changed since the last pass.
func (i Item) changed(v view, work types.UID, now time.Time) bool {
	there := i.Result.Seen.UID != ""
	switch v.sight {
	case drift.Absent:
		return there
	case drift.Blind:
		// The read is recorded when it is over, a moment after the event that caused it.
		return now.Sub(i.Looked) >= drift.PollEvery-lookEvery
	case drift.Present:
		if !there {
			return true
		}
		if i.Phase == blocked {
			return v.seen.Version != i.Result.Seen.Version && !v.seen.Older(i.Result.Seen)
		}
		return apply.Drifted(i.upheld(), work, i.Result, v.seen)
	}
	return false
}

// upheld returns the options in effect: only the owner of a resting object is maintained.
func (i Item) upheld() apply.Options {
	o := i.Options
	if i.Phase == resting && writesOwner(o) {
		o.Strategy = workv1.UpdateStrategyTypeCreateOnly
	}
	return o
}

// fought reports whether the object was repaired again and again.
func (i Item) fought() bool { return i.Repairs >= hotAfter }

// hot reports whether that is still going on.
func (i Item) hot(now time.Time) bool { return i.fought() && now.Sub(i.Looked) < coolAfter }

// recordLook records a read. Repairs before a quiet period no longer count.
func (i *Item) recordLook(now time.Time) {
	if now.Sub(i.Looked) >= coolAfter {
		i.Repairs = 0
	}
	i.Looked = now
}

// recordFailure counts one more failed read for rules, and waits for rest, but at most
// lastRetry.
func (r *reading) recordFailure(rest time.Duration) {
	r.fails++
	for backoff(r.fails) < min(rest, lastRetry) {
		r.fails++
	}
}
