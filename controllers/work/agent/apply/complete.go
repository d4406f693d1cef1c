// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/executor"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/status"
	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// A manifest whose condition Complete is True rests: its object is neither written nor
// created again, even when it is gone, because a Job that was removed after its time to
// live must not run a second time. It rests until its content changes, whatever else
// changes in the work; only its owner reference follows the options of the work while the
// object exists. Resting manifests are recorded on the AppliedManifestWork before the hub
// learns that they are complete, so that they also rest for an agent that restarts and
// for later generations of the work.

// messageGone is the message of a condition Complete of which only the status True is
// known.
const messageGone = "Manifest was complete when it was last seen"

// completes reports whether a rule makes the condition Complete.
func completes(rules []workv1.ConditionRule) bool {
	return slices.ContainsFunc(rules, func(r workv1.ConditionRule) bool { return r.Condition == workv1.ConditionComplete })
}

// complete returns the verdict Complete of an object, nil if there is none.
func (i *Item) complete() *status.Verdict {
	for k := range i.Outcome.Rules {
		if i.Outcome.Rules[k].Condition == workv1.ConditionComplete {
			return &i.Outcome.Rules[k].Verdict
		}
	}
	return nil
}

// isComplete reports whether the manifest is applied, and its object complete.
func (i *Item) isComplete() bool {
	v := i.complete()
	return v != nil && v.Status == metav1.ConditionTrue && i.Outcome.Applied.Status == metav1.ConditionTrue
}

// rests reports whether a manifest is complete: by the result of an earlier pass over the
// same content, else by the record, else by the status of the work at this generation.
func rests(s State, t *Task, known bool) bool {
	if t.Refusal != nil || !completes(t.Rules.Conditions) {
		return false
	}
	if known && t.complete() != nil {
		return t.isComplete()
	}
	if slices.Contains(s.marks(), t.mark()) {
		return true
	}
	entry := appliedEntry(s, t)
	if entry == nil {
		return false
	}
	complete := apimeta.FindStatusCondition(entry.Conditions, workv1.ConditionComplete)
	return complete != nil && complete.Status == metav1.ConditionTrue && status.Ruled(*complete, s.Work.Generation)
}

// appliedEntry returns the status entry of a manifest that was applied with this content,
// nil if there is none.
func appliedEntry(s State, t *Task) *workv1.ManifestCondition {
	entry := status.Entry(s.Work.Status.ResourceStatus.Manifests, t.Meta)
	if entry == nil {
		return nil
	}
	applied := apimeta.FindStatusCondition(entry.Conditions, workv1.ConditionApplied)
	if applied == nil || applied.Status != metav1.ConditionTrue || applied.ObservedGeneration != s.Work.Generation {
		return nil
	}
	return entry
}

// ended reports whether the object is being deleted and was complete before that: whoever
// deletes it (a Job's TTL controller, for example), the object will not be seen again.
// Its manifest rests from then on, if it was applied with this content.
func (p *pass) ended(ctx context.Context, t *Task, live *unstructured.Unstructured) bool {
	if live == nil || live.GetDeletionTimestamp() == nil || !completes(t.Rules.Conditions) || t.Rival != "" {
		return false
	}
	if t.Outcome.Applied.Status != metav1.ConditionTrue && appliedEntry(p.state, t) == nil {
		return false
	}
	p.evaluateRules(ctx, t, live)
	if v := t.complete(); v == nil || v.Status != metav1.ConditionTrue {
		return false
	}
	t.moveTo(resting)
	t.Outcome.Applied = status.Applied("")
	return true
}

// planRest plans that the object is left as it is, if its manifest is complete. The
// verdicts of rules stay, in case the object is gone; if it exists, the rules are
// evaluated again. known reports whether an earlier pass was over the same content.
func (t *Task) planRest(s State, known bool) {
	rested := t.Phase == resting
	if !rests(s, t, known) {
		if rested {
			t.moveTo(fresh)
		}
		return
	}
	if !rested {
		t.moveTo(resting)
	}
	if t.Fails == 0 {
		t.Outcome.Applied = status.Applied("")
	}
	if t.complete() != nil {
		return
	}
	if entry := status.Entry(s.Work.Status.ResourceStatus.Manifests, t.Meta); entry != nil {
		t.Outcome.Rules = keptVerdicts(t.Rules.Conditions, entry.Conditions)
	}
	if !t.isComplete() {
		t.Outcome.Rules = []status.RuleVerdict{{Condition: workv1.ConditionComplete, Verdict: status.Verdict{
			Status: metav1.ConditionTrue, Reason: workv1.ReasonConditionRuleEvaluated, Message: messageGone,
		}}}
	}
}

// tendResting keeps the owner reference of a resting object and evaluates its rules,
// while its executor may apply it. Otherwise nothing new is reported about it.
func (p *pass) tendResting(ctx context.Context, t *Task, live *unstructured.Unstructured) {
	if live == nil {
		t.moveTo(resting)
		return
	}
	err := p.admit(ctx, t, live)
	if err == nil {
		live, err = p.ownResting(ctx, t, live)
		p.evaluateRules(ctx, t, live)
	}
	if err != nil {
		t.Reading.at = p.c.Clock.Now()
		if live != nil {
			t.Reading.from = live.GetResourceVersion()
		}
	}
	if err == nil || errors.As(err, new(*executor.DeniedError)) {
		t.moveTo(resting)
		return
	}
	t.recordFailure(p.c.Clock.Now(), apply.RetryAfter(err))
}

// ownResting adds or removes the work's owner reference where the object's options
// require it, and returns the resulting object, nil if it is gone. Otherwise a resting
// object would outlive the work, or be deleted with it, against its options. A failure is
// shown in the message of Applied: the manifest stays complete, and the reference is
// tried again.
func (p *pass) ownResting(ctx context.Context, t *Task, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	t.Outcome.Applied = status.Applied("")
	if !writesOwner(t.Options) || live.GetDeletionTimestamp() != nil {
		return live, nil
	}
	result, err := p.applier.Apply(ctx, apply.Request{
		Resource: t.Resource, Object: t.Object, Options: t.Options,
		Owner: apply.OwnerOf(p.applied), Live: live, OwnerOnly: true, NeverCreate: true,
	})
	if err != nil && !errors.As(err, new(*apply.DeletingError)) {
		t.Outcome.Applied = status.Applied("its owner reference could not be written: " + apply.Message(err, t.secret()))
		return live, err
	}
	t.Result.Seen = result.Seen
	t.Outcome.Available = status.Exists(result.Live != nil)
	return result.Live, nil
}

// keptVerdicts returns the rule conditions in a status whose rules still exist.
func keptVerdicts(rules []workv1.ConditionRule, conditions []metav1.Condition) []status.RuleVerdict {
	var out []status.RuleVerdict
	for _, r := range rules {
		c := apimeta.FindStatusCondition(conditions, r.Condition)
		if c != nil && status.Ruled(*c, c.ObservedGeneration) {
			out = append(out, status.RuleVerdict{Condition: c.Type, Verdict: status.Verdict{Status: c.Status, Reason: c.Reason, Message: c.Message}})
		}
	}
	return out
}

// mark identifies a manifest by its content, however it is formatted.
func (t *Task) mark() string {
	sum := digest.Of([]any{t.ID, t.Object.Object})
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// recordedMarks returns the manifests that an AppliedManifestWork records as complete.
func recordedMarks(applied *workv1.AppliedManifestWork) []string {
	if applied == nil {
		return nil
	}
	return strings.Fields(applied.Annotations[workv1.AnnotationCompleteManifests])
}

// marks returns the manifests that are recorded as complete by this record or, where
// there is none yet, by the one that it succeeds.
func (s State) marks() []string {
	if s.Applied == nil {
		return s.Inherited
	}
	return recordedMarks(s.Applied)
}

// marks returns the manifests to record as complete. While a manifest cannot be resolved,
// the recorded marks stay; so does the mark of a refused manifest, since no rule is
// evaluated for it meanwhile, unless another manifest of the same object is applied in
// its place.
func marks(tasks []Task, recorded []string) []string {
	var out []string
	resolved := true
	written := map[apply.ID]bool{}
	for i := range tasks {
		t := &tasks[i]
		resolved = resolved && t.Phase.names()
		if !t.Phase.names() {
			continue
		}
		written[t.ID] = written[t.ID] || t.Refusal == nil
		if !completes(t.Rules.Conditions) {
			continue
		}
		mark := t.mark()
		if t.isComplete() || (!written[t.ID] && slices.Contains(recorded, mark)) {
			out = append(out, mark)
		}
	}
	if !resolved {
		out = append(out, recorded...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// completed reports whether other manifests are complete than those that are recorded.
func (p *pass) completed() bool {
	recorded := recordedMarks(p.applied)
	return !slices.Equal(marks(p.plan.Tasks, recorded), recorded)
}

// recordComplete records which manifests are complete.
func (p *pass) recordComplete(ctx context.Context) error {
	if !p.completed() {
		return nil
	}
	now := marks(p.plan.Tasks, recordedMarks(p.applied))
	return p.annotate(ctx, map[string]string{workv1.AnnotationCompleteManifests: strings.Join(now, " ")})
}

// annotate sets annotations of the AppliedManifestWork, and removes those whose value is
// empty.
func (p *pass) annotate(ctx context.Context, values map[string]string) error {
	applied, err := p.c.Applied.Annotate(ctx, p.applied, values)
	if err == nil {
		p.applied = applied
	}
	return err
}

// awake reports whether a resting object must be kept again, because it is no longer
// complete.
func (p *pass) awake() bool {
	return slices.ContainsFunc(p.record.items, func(i Item) bool { return i.Phase == resting && !i.isComplete() })
}
