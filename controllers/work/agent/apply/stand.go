// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"time"
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
