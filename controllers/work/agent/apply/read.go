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
	// at is when it was last read, fails how many reads in a row failed.
	at    time.Time
	fails int
	// values digests the feedback values that were read.
	values digest.Sum
	// judged is the intent for which condition rules were last evaluated.
	judged digest.Sum
	// late is since when some of its condition rules have been put off, zero if none are.
	late time.Time
	// leftOut is the generation of the work in whose status the values did not fit, zero
	// if they did.
	leftOut int64
}

// readDue reports whether the object has to be read again for the rules because it
// changed, or else when to come back without an event (zero: not at all). Two reads of
// one object are at least 500 ms apart, and so are two passes that read for one work, so
// that changes at the same time are reported in one write. last is the time of the
// previous such pass. An object is not read for an executor that was not found to have
// the rights, because the agent reads with its own.
func (i Item) readDue(v view, last, now time.Time) (read bool, wait time.Duration) {
	r := i.Reading
	unproven := !i.Executor.IsAgent() && !i.Granted && i.Phase != resting
	if unproven || r.asked == (digest.Sum{}) || i.Phase == denied || v.sight != drift.Present {
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
	return after(max(pause-now.Sub(own), lookEvery-now.Sub(last)))
}

// reread forgets earlier readings where the rules have changed, or where the status does
// not hold them.
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
	case t.Reading.leftOut != 0 && t.Reading.leftOut != work.Generation, // it may fit now
		entry == nil || digest.Of(entry.StatusFeedback.Values) != t.Reading.values:
		t.Reading.from = ""
	}
}

// markLeftOut marks values that did not fit in the written status as left out: values
// that are no longer known must not be reported as synced. They are read again when the
// object or the work changes.
func (i *Item) markLeftOut(written workv1.ManifestWorkStatus, generation int64) {
	if entry := status.Entry(written.ResourceStatus.Manifests, i.Meta); entry != nil && len(entry.StatusFeedback.Values) > 0 {
		return
	}
	if i.Reading.values != noValues && i.Reading.values != (digest.Sum{}) {
		i.Outcome.Feedback, i.Reading.values, i.Reading.leftOut = status.ValuesLeftOut(), noValues, generation
	}
}

// noValues digests the values of an object of which none could be read.
var noValues = digest.Of([]workv1.FeedbackValue(nil))

// errNotRead is why nothing is read of an object that the agent does not apply: whoever
// may not change it may not learn about it either.
const errNotRead = "the manifest is not applied, so that nothing is read of its object; see the condition Applied"

// conceal removes what was reported about an object whose executor was denied.
func (t *Task) conceal(now time.Time) {
	if len(t.Rules.Feedback) > 0 {
		t.Outcome.Feedback = status.FeedbackFailed(errNotRead)
	}
	t.Outcome.Values, t.Outcome.Fresh, t.Outcome.Rules = nil, true, nil
	t.Reading = reading{asked: t.Reading.asked, at: now}
}

// evaluateRules evaluates the rules of the work for a live object. If there is no object
// (nil), the earlier results stay.
func (p *pass) evaluateRules(ctx context.Context, t *Task, live *unstructured.Unstructured) {
	if live == nil || t.Reading.asked == (digest.Sum{}) {
		return
	}
	share := p.c.Feedback
	share.MaxBytes = max(maxFeedback/max(len(p.plan.Tasks), 1), leastFeedback)
	t.Outcome.Values, t.Outcome.Feedback = readFeedback(t.Rules.Feedback, live, share)
	t.Outcome.Fresh = true
	now := p.c.Clock.Now()
	verdicts, late := p.rules.Evaluate(ctx, t.Rules.Conditions, live, p.former(t))
	if !late || t.Phase != resting {
		// A manifest that rests because it is complete must not be woken by a rule that
		// is put off.
		t.Outcome.Rules = verdicts
	}
	switch {
	case !late:
		t.Reading.late, t.Reading.judged = time.Time{}, t.Intent
	case t.Reading.late.IsZero():
		t.Reading.late = now
	}
	t.Reading.from = live.GetResourceVersion()
	t.Reading.at, t.Reading.fails, t.Reading.values, t.Reading.leftOut = now, 0, digest.Of(t.Outcome.Values), 0
}

// readFeedback evaluates the feedback rules for a live object. It is pure.
func readFeedback(rules []workv1.FeedbackRule, live *unstructured.Unstructured, o feedback.Options) ([]workv1.FeedbackValue, status.Verdict) {
	if len(rules) == 0 {
		return nil, status.NoFeedback()
	}
	values, err := feedback.Evaluate(live, rules, o)
	if err != nil {
		return values, status.FeedbackFailed(err.Error())
	}
	return values, status.FeedbackSynced()
}

const (
	// maxFeedback bounds the feedback values of one work together, in bytes, so that a
	// status never grows towards the size limit of an object; leastFeedback is granted to
	// each object in any case.
	maxFeedback   = 256 << 10
	leastFeedback = 256
)

// askedOf digests rules; no rules give zero.
func askedOf(rules apply.Rules) digest.Sum {
	if len(rules.Feedback)+len(rules.Conditions) == 0 {
		return digest.Sum{}
	}
	return digest.Of(rules)
}
