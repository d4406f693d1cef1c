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

// A manifest whose condition Complete is True rests: its object is neither
// written nor made again, also when it is gone, because a Job that was removed
// when its time was over must not run a second time. It rests until its content
// changes, whatever else changes in the work; only its owner reference follows
// the options of the work while it is there. What rests is recorded on the
// AppliedManifestWork before the hub is told that it is complete, so that it
// holds for an agent that starts anew and for later generations of the work.

// messageGone is the message of a condition Complete of which no more is known
// than that it was True.
const messageGone = "Manifest was complete when it was last seen"

// completes tells whether a rule makes the condition Complete.
func completes(rules []workv1.ConditionRule) bool {
	return slices.ContainsFunc(rules, func(r workv1.ConditionRule) bool { return r.Condition == workv1.ConditionComplete })
}

// complete is the verdict Complete of an object, nil for none.
func (i *Item) complete() *status.Verdict {
	for k := range i.Outcome.Rules {
		if i.Outcome.Rules[k].Condition == workv1.ConditionComplete {
			return &i.Outcome.Rules[k].Verdict
		}
	}
	return nil
}

// isComplete tells whether the manifest is applied, and its object complete.
func (i *Item) isComplete() bool {
	v := i.complete()
	return v != nil && v.Status == metav1.ConditionTrue && i.Outcome.Applied.Status == metav1.ConditionTrue
}

// rests tells whether a manifest is complete, by what an earlier pass over the
// same content found, else by what is recorded, else by the status of the work
// at this generation.
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

// appliedEntry is what the status says of a manifest that was applied as it
// stands, nil for nothing.
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

// ended tells whether the object is being deleted and was complete before that:
// whoever deletes it, as the time to live of a Job does, this is the last that is
// seen of it. Its manifest rests from then on, if it was applied as it stands.
func (p *pass) ended(ctx context.Context, t *Task, live *unstructured.Unstructured) bool {
	if live == nil || live.GetDeletionTimestamp() == nil || !completes(t.Rules.Conditions) || t.Rival != "" {
		return false
	}
	if t.Outcome.Applied.Status != metav1.ConditionTrue && appliedEntry(p.state, t) == nil {
		return false
	}
	p.judge(ctx, t, live)
	if v := t.complete(); v == nil || v.Status != metav1.ConditionTrue {
		return false
	}
	t.to(resting)
	t.Outcome.Applied = status.Applied("")
	return true
}

// rest plans that the object is left as it is, if its manifest is complete. What
// rules told of it stays, in case that it is gone; if it is there, they are asked
// again. Known tells whether an earlier pass was over the same content.
func (t *Task) rest(s State, known bool) {
	rested := t.Stand == resting
	if !rests(s, t, known) {
		if rested {
			t.to(fresh)
		}
		return
	}
	if !rested {
		t.to(resting)
	}
	if t.Fails == 0 {
		t.Outcome.Applied = status.Applied("")
	}
	if t.complete() != nil {
		return
	}
	if entry := status.Entry(s.Work.Status.ResourceStatus.Manifests, t.Meta); entry != nil {
		t.Outcome.Rules = told(t.Rules.Conditions, entry.Conditions)
	}
	if !t.isComplete() {
		t.Outcome.Rules = []status.RuleVerdict{{Condition: workv1.ConditionComplete, Verdict: status.Verdict{
			Status: metav1.ConditionTrue, Reason: workv1.ReasonConditionRuleEvaluated, Message: messageGone,
		}}}
	}
}

// own sees to the owner of an object that rests and asks the rules about it, while its
// executor may apply it. If not, nothing new is told of it.
func (p *pass) own(ctx context.Context, t *Task, live *unstructured.Unstructured) {
	if live == nil {
		t.to(resting)
		return
	}
	err := p.admit(ctx, t, live)
	if err == nil {
		live, err = p.ownResting(ctx, t, live)
		p.judge(ctx, t, live)
	}
	if err == nil {
		t.to(resting)
		return
	}
	t.Reading.at = p.c.Clock.Now()
	if live != nil {
		t.Reading.from = live.GetResourceVersion()
	}
	var denial *executor.DeniedError
	if errors.As(err, &denial) {
		t.to(resting)
		return
	}
	t.failed(p.c.Clock.Now(), apply.RetryAfter(err))
}

// ownResting adds or removes the reference of the work where the object's options
// want it otherwise, and gives the object as it is then, nil if it went. Without
// it, an object that rests would outlive the work, or go with it against its
// options. A failure stands in the message of Applied: the manifest stays
// complete, and the reference is tried again.
func (p *pass) ownResting(ctx context.Context, t *Task, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	t.Outcome.Applied = status.Applied("")
	if !writesOwner(t.Options) || live.GetDeletionTimestamp() != nil {
		return live, nil
	}
	result, err := p.applier.Apply(ctx, apply.Request{
		Resource: t.Resource, Object: t.Object, Options: t.Options,
		Owner: apply.OwnerOf(p.applied), Live: live, OwnerOnly: true, NeverCreate: true,
	})
	var deleting *apply.DeletingError
	switch {
	case errors.As(err, &deleting):
	case err != nil:
		t.Outcome.Applied = status.Applied("its owner reference could not be written: " + apply.Message(err, t.secret()))
		return live, err
	}
	t.Result.Seen = result.Seen
	t.Outcome.Available = status.Exists(result.Live != nil)
	return result.Live, nil
}

// told are the conditions in a status that rules made which are still asked.
func told(rules []workv1.ConditionRule, conditions []metav1.Condition) []status.RuleVerdict {
	var out []status.RuleVerdict
	for _, r := range rules {
		c := apimeta.FindStatusCondition(conditions, r.Condition)
		if c != nil && status.Ruled(*c, c.ObservedGeneration) {
			out = append(out, status.RuleVerdict{Condition: c.Type, Verdict: status.Verdict{Status: c.Status, Reason: c.Reason, Message: c.Message}})
		}
	}
	return out
}

// mark stands for a manifest with its content, however that is written down.
func (t *Task) mark() string {
	sum := digest.Of([]any{t.ID, t.Object.Object})
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// recordedMarks are the manifests that an AppliedManifestWork records as
// complete.
func recordedMarks(applied *workv1.AppliedManifestWork) []string {
	if applied == nil {
		return nil
	}
	return strings.Fields(applied.Annotations[workv1.AnnotationCompleteManifests])
}

// marks are the manifests that are recorded as complete, by this record or, where
// there is none yet, by one that it will succeed.
func (s State) marks() []string {
	if s.Applied == nil {
		return s.Inherited
	}
	return recordedMarks(s.Applied)
}

// marks are the manifests to record as complete. While a manifest cannot be
// resolved, what is recorded stays; and so does the mark of one that is refused,
// since no rule is asked about it meanwhile, unless another manifest of the same
// object is applied in its place.
func marks(tasks []Task, recorded []string) []string {
	var out []string
	resolved := true
	written := map[apply.ID]bool{}
	for i := range tasks {
		t := &tasks[i]
		resolved = resolved && t.Stand.names()
		if !t.Stand.names() {
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

// settle records which manifests are complete.
func (p *pass) settle(ctx context.Context) error {
	recorded := recordedMarks(p.applied)
	now := marks(p.plan.Tasks, recorded)
	if slices.Equal(now, recorded) {
		return nil
	}
	applied, err := p.c.Applied.Annotate(ctx, p.applied, map[string]string{workv1.AnnotationCompleteManifests: strings.Join(now, " ")})
	if err == nil {
		p.applied = applied
	}
	return err
}

// awake tells whether an object that rested has to be kept again, because it is
// no longer complete.
func (p *pass) awake() bool {
	return slices.ContainsFunc(p.record.items, func(i Item) bool { return i.Stand == resting && !i.isComplete() })
}
