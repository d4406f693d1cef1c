// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"time"
)

// stand is where a manifest stands between passes. It is exactly one of these; the
// package comment draws how one follows from another.
type stand int

const (
	// fresh: nobody has looked at its object, or not since it was complete.
	fresh stand = iota
	// broken: it names no object. Only an edit of the work helps.
	broken
	// unknown: its kind does not exist, or could not be asked for. Fails and Next say
	// when that is done again.
	unknown
	// kept: the object is as the manifest declares, or as an older work does. It is
	// looked at when it changes.
	kept
	// refused: the manifest is not applied, whatever the object is. The object is
	// looked at when it changes, to tell whether it exists.
	refused
	// blocked: others hold fields of the object, or it is on its way out. It is tried
	// again when it changes, and every conflictEvery.
	blocked
	// denied: the executor may not apply it. It is asked again when the executor's
	// rights change, and every executor.RetryEvery.
	denied
	// failing: the last try failed. Fails and Next say when the next one is due.
	failing
	// resting: the manifest is complete, and no more of the object is kept than its
	// owner. It is looked at when it changes; Fails and Next say when, where that failed.
	resting
)

// names tells whether a manifest that stands so names an object.
func (s stand) names() bool { return s != broken && s != unknown }

const (
	// A manifest that failed is tried again after firstRetry, then twice that,
	// and so on up to lastRetry.
	firstRetry = 10 * time.Millisecond
	lastRetry  = time.Minute
)

// backoff is how long to wait after that many failures.
func backoff(fails int) time.Duration {
	d := firstRetry
	for range fails - 1 {
		if d *= 2; d >= lastRetry {
			return lastRetry
		}
	}
	return d
}

// to moves a manifest to a stand of which no try has failed.
func (i *Item) to(s stand) { i.Stand, i.Fails, i.Next = s, 0, time.Time{} }

// failed notes one more failure. It is not tried again before rest is over. What
// rests, or has no kind, stays so.
func (i *Item) failed(now time.Time, rest time.Duration) {
	if i.Stand != resting && i.Stand != unknown {
		i.Stand = failing
	}
	i.Fails++
	i.Next = now.Add(max(backoff(i.Fails), rest))
}
