// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/drift"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/status"
	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	"github.com/kubectl-ocm/kubectl-ocm/internal/feedback"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// reading is what is remembered of reading an object for rules. Values and
// bodies are not kept.
type reading struct {
	// asked digests the rules; it is zero where nothing is asked for.
	asked digest.Sum
	// from is the version of the object that was read last.
	from string
	// at is when it was read last, fails how often in a row that failed.
	at    time.Time
	fails int
	// values digests the feedback values that were read.
	values digest.Sum
	// judged is the intent that condition rules were evaluated for last.
	judged digest.Sum
	// late is since when condition rules of it wait for a later pass, zero while
	// none do.
	late time.Time
	// leftOut is the generation of the work for whose status the values were too
	// large, zero if they were not.
	leftOut int64
}

// readDue tells whether the object has to be read anew for the rules because it
// changed, or else when to come back without an event (zero: not at all).
// Between two reads of one object there are 500 ms at least, and between two
// passes that read for one work as well: what changes at the same time is told
// in one write. last is when such a pass was. An object is not read for an
// executor that was not found to have the rights: the agent reads with its own.
func (i Item) readDue(v view, last, now time.Time) (read bool, wait time.Duration) {
	r := i.Reading
	if !i.Executor.IsAgent() && !i.Granted && i.Stand != resting {
		return false, 0
	}
	if r.asked == (digest.Sum{}) || i.Stand == denied || v.sight != drift.Present {
		return false, 0
	}
	pause := max(lookEvery, backoff(r.fails))
	if v.seen.Version == r.from || v.seen.Older(apply.Seen{Version: r.from}) {
		if r.late.IsZero() {
			return false, 0
		}
		pause = lateEvery
	}
	own := r.at
	if i.Looked.After(own) {
		own = i.Looked
	}
	rest := max(pause-now.Sub(own), lookEvery-now.Sub(last))
	return rest <= 0, max(rest, 0)
}

// reread forgets what was read before where the rules are others now, or where
// the status does not hold it.
func (t *Task) reread(work *workv1.ManifestWork) {
	before := work.Status
	asked := askedOf(t.Rules)
	if t.Refusal != nil {
		asked = digest.Sum{}
	}
	if t.Reading.asked != asked {
		t.Reading = reading{asked: asked}
		t.Outcome.Feedback, t.Outcome.Rules = status.Verdict{}, nil
	}
	switch entry := status.Entry(before.ResourceStatus.Manifests, t.Meta); {
	case t.Refusal != nil && len(t.Rules.Feedback) > 0:
		t.Outcome.Feedback = status.FeedbackFailed(errNotRead)
	case len(t.Rules.Feedback) == 0:
		t.Outcome.Feedback, t.Outcome.Values, t.Outcome.Fresh = status.NoFeedback(), nil, true
	case entry == nil && status.LeftOut(before):
		// It would not fit; reading again would not help.
	case t.Reading.leftOut != 0 && t.Reading.leftOut != work.Generation:
		// It may fit now.
		t.Reading.from = ""
	case entry == nil || digest.Of(entry.StatusFeedback.Values) != t.Reading.values:
		t.Reading.from = ""
	}
}

// leave notes of values that did not fit in the status which was written that
// they were left out: what is no longer known must not be called read. They are
// read again when the object changes, or the work.
func (i *Item) leave(written workv1.ManifestWorkStatus, generation int64) {
	if entry := status.Entry(written.ResourceStatus.Manifests, i.Meta); entry != nil && len(entry.StatusFeedback.Values) > 0 {
		return
	}
	if i.Reading.values != noValues && i.Reading.values != (digest.Sum{}) {
		i.Outcome.Feedback, i.Reading.values, i.Reading.leftOut = status.ValuesLeftOut(), noValues, generation
	}
}

// noValues digests the values of an object of which none could be read.
var noValues = digest.Of([]workv1.FeedbackValue(nil))

// errNotRead is why nothing is read of an object that the agent does not apply:
// whoever may not change it is not told about it either.
const errNotRead = "the manifest is not applied, so that nothing is read of its object; see the condition Applied"

// conceal takes back what was told of an object whose executor was denied.
func (t *Task) conceal(now time.Time) {
	if len(t.Rules.Feedback) > 0 {
		t.Outcome.Feedback = status.FeedbackFailed(errNotRead)
	}
	t.Outcome.Values, t.Outcome.Fresh, t.Outcome.Rules = nil, true, nil
	t.Reading = reading{asked: t.Reading.asked, at: now}
}

// judge asks the rules of the work about a live object; nil stands for none,
// of which nothing can be told, so that what was told before stays.
func (p *pass) judge(ctx context.Context, t *Task, live *unstructured.Unstructured) {
	if live == nil || t.Reading.asked == (digest.Sum{}) {
		return
	}
	found := find(t.Rules, live, shared(p.c.Feedback, len(p.plan.Tasks)))
	t.Outcome.Feedback = found.feedback
	now := p.c.Clock.Now()
	verdicts, late := p.rules.Evaluate(ctx, t.Rules.Conditions, live, p.former(t))
	if !late || t.Stand != resting {
		// What rests because it is complete must not be woken by a rule that waits.
		t.Outcome.Rules = verdicts
	}
	switch {
	case !late:
		t.Reading.late, t.Reading.judged = time.Time{}, t.Intent
	case t.Reading.late.IsZero():
		t.Reading.late = now
	}
	t.Outcome.Values, t.Outcome.Fresh = found.values, true
	t.Reading.from = live.GetResourceVersion()
	t.Reading.at, t.Reading.fails, t.Reading.values, t.Reading.leftOut = now, 0, digest.Of(found.values), 0
}

// finding is what feedback rules tell about one object.
type finding struct {
	// values and feedback are what the feedback rules gave.
	values   []workv1.FeedbackValue
	feedback status.Verdict
}

// find asks the feedback rules about a live object. It is pure.
func find(rules apply.Rules, live *unstructured.Unstructured, o feedback.Options) finding {
	f := finding{feedback: status.NoFeedback()}
	if len(rules.Feedback) > 0 {
		values, err := feedback.Evaluate(live, rules.Feedback, o)
		f.values, f.feedback = values, status.FeedbackSynced()
		if err != nil {
			f.feedback = status.FeedbackFailed(err.Error())
		}
	}
	return f
}

const (
	// maxFeedback bounds the feedback values of one work together, in bytes, so
	// that a status never grows towards the limit of one object; leastFeedback is
	// what each object may have all the same.
	maxFeedback   = 256 << 10
	leastFeedback = 256
)

// shared are the options for one of so many objects of a work.
func shared(o feedback.Options, objects int) feedback.Options {
	o.MaxBytes = max(maxFeedback/max(objects, 1), leastFeedback)
	return o
}

// askedOf digests rules; no rules are zero.
func askedOf(rules apply.Rules) digest.Sum {
	if rules.None() {
		return digest.Sum{}
	}
	return digest.Of(rules)
}
