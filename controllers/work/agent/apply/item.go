// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/drift"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/status"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
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
	// A manifest that failed is tried again after firstRetry, then twice that,
	// and so on up to lastRetry.
	firstRetry = 10 * time.Millisecond
	lastRetry  = time.Minute
)

// intent is a digest of everything that decides how an object is written.
type intent [16]byte

// Item is what is remembered of one manifest after a pass.
type Item struct {
	// Meta names the object as the status does.
	Meta workv1.ManifestResourceMeta
	// ID and Resource name it for requests; Named is false if they are unknown.
	ID       apply.ID
	Resource schema.GroupVersionResource
	Named    bool
	// Options say how it is applied, Intent digests them with the content.
	Options apply.Options
	Intent  intent
	// Result is what the last write or look left.
	Result apply.Result
	// Outcome is what stands in the status.
	Outcome status.Outcome
	// Fails counts the tries that failed since the last that did not; Next is
	// when the next one is due.
	Fails int
	Next  time.Time
	// Waits is set while only a change of the object can help.
	Waits bool
	// Unknown is set while the kind does not exist.
	Unknown bool
	// Looked is when the object was last looked at.
	Looked time.Time
	// Repairs counts writes that followed a change by somebody else.
	Repairs int
}

// view is what a watch shows of an object.
type view struct {
	seen  apply.Seen
	sight drift.Sight
}

// due tells whether a remembered object has to be looked at now, or else when
// to come back without an event (zero: not at all).
func (i Item) due(v view, work types.UID, now time.Time) (look bool, wait time.Duration) {
	if i.Fails > 0 {
		if rest := i.Next.Sub(now); rest > 0 {
			return false, rest
		}
		return true, 0
	}
	if !i.Named {
		return false, 0
	}
	changed := i.changed(v, work, now)
	if !changed && i.Waits {
		rest := conflictEvery - now.Sub(i.Looked)
		return rest <= 0, max(rest, 0)
	}
	if !changed {
		return false, 0
	}
	pause := lookEvery
	if i.hot(now) {
		pause = hotEvery
	}
	if rest := pause - now.Sub(i.Looked); rest > 0 {
		return false, rest
	}
	return true, 0
}

// changed tells whether the object may not be as it was left.
func (i Item) changed(v view, work types.UID, now time.Time) bool {
	there := i.Result.Seen.UID != ""
	switch v.sight {
	case drift.Absent:
		return there
	case drift.Blind:
		return now.Sub(i.Looked) >= drift.PollEvery
	case drift.Present:
		if !there {
			return true
		}
		if i.Waits {
			return v.seen.Version != i.Result.Seen.Version && !v.seen.Older(i.Result.Seen)
		}
		return apply.Drifted(i.Options, work, i.Result, v.seen)
	}
	return false
}

// hot tells whether the object was repaired again and again.
func (i Item) hot(now time.Time) bool {
	return i.Repairs >= hotAfter && now.Sub(i.Looked) < coolAfter
}

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

// failed notes one more failure.
func (i *Item) failed(now time.Time) {
	i.Fails++
	i.Next = now.Add(backoff(i.Fails))
}
