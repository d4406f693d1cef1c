// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/status"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/discovery"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/manifest"
)

// pendingEvery is when removals that wait are tried again without an event.
const pendingEvery = 10 * time.Second

// State is what a pass knows. Decide does not change it.
type State struct {
	// Now is the time of the pass.
	Now time.Time
	// Work is the work as it stands on the hub.
	Work *workv1.ManifestWork
	// Applied stands for the work on this cluster, nil if it does not exist.
	Applied *workv1.AppliedManifestWork
	// Adopted is whether Applied carries our finalizer and identity.
	Adopted bool
	// Manifests are the manifests in the order of the spec.
	Manifests []Manifest
	// Removed is when removals were last tried.
	Removed time.Time
	// Owed are objects that an earlier pass may have written and could not
	// record, because another agent took them off the record at that moment.
	Owed []workv1.AppliedManifestResourceMeta
}

// Manifest is one manifest with what is known of its object.
type Manifest struct {
	// Raw is the manifest as it stands in the work.
	Raw []byte
	// Object is the decoded and cleaned manifest, nil if that failed with Err.
	Object *unstructured.Unstructured
	Err    error
	// Head names the object as far as the manifest could be read at all.
	Head workv1.ManifestResourceMeta
	// Mapping is the resource of its kind; MapErr says why there is none.
	Mapping discovery.Mapping
	MapErr  error
	// Options say how it is applied; Refusal says why it is not.
	Options apply.Options
	Refusal error
	// Rival is an older work that declares the object otherwise under the same
	// field manager; empty for none.
	Rival string
	// Before is what an earlier pass left, nil for nothing; Shown is what the
	// watch shows.
	Before *Item
	Shown  view
}

// Task is what a pass does about one manifest.
type Task struct {
	Item
	// Object is what to apply.
	Object *unstructured.Unstructured
	// Rank orders tasks.
	Rank int
	// Look reads the object; Write then applies it.
	Look, Write bool
	// Repair is set when the object was applied before and has changed.
	Repair bool
	// Refusal says why the object is not written.
	Refusal error
	// Rival is the older work whose content holds.
	Rival string
}

// Plan is what a pass does.
type Plan struct {
	// Hold puts the finalizer on the work; Create and Adopt see to the
	// AppliedManifestWork.
	Hold, Create, Adopt bool
	// Tasks are in the order of the spec.
	Tasks []Task
	// Remove are the recorded objects that the work no longer declares, and
	// Pending those whose removal is put off to the next pass.
	Remove  []apply.Removal
	Pending []workv1.AppliedManifestResourceMeta
	// RequeueAfter brings the work back when something was put off.
	RequeueAfter time.Duration
}

// Decide says what a pass does.
func Decide(s State) Plan {
	p := Plan{
		Hold:   !slices.Contains(s.Work.Finalizers, workv1.FinalizerManifestWork),
		Create: s.Applied == nil,
		Adopt:  s.Applied != nil && !s.Adopted,
	}
	declared := map[apply.ID]bool{}
	for ordinal := range s.Manifests {
		task, wait := decideOne(s, ordinal)
		p.later(wait)
		if task.Named && declared[task.ID] {
			task.Refusal = fmt.Errorf("%s stands twice in the work; remove one of the two manifests", task.ID)
			task.Write, task.Look = false, true
		}
		declared[task.ID] = task.Named
		p.Tasks = append(p.Tasks, task)
	}
	p.prune(s, declared)
	return p
}

// decideOne says what a pass does about one manifest, and when to come back to
// it without an event.
func decideOne(s State, ordinal int) (Task, time.Duration) {
	m := s.Manifests[ordinal]
	task := Task{Object: m.Object, Rank: manifest.RankBroken, Refusal: m.Refusal, Rival: m.Rival}
	task.Meta = m.Head
	task.Meta.Ordinal = int32(ordinal) //nolint:gosec // bounded by the size of a work
	if m.Err != nil || m.MapErr != nil {
		return broken(task, m, s.Now)
	}
	task.Rank = manifest.Rank(m.Object.GetKind())
	task.Named = true
	task.Resource = m.Mapping.Resource
	task.ID = apply.IDOf(task.Resource, m.Object.GetNamespace(), m.Object.GetName())
	task.Meta.Resource, task.Meta.Namespace = task.Resource.Resource, m.Object.GetNamespace()
	task.Options = m.Options
	task.Intent = intentOf(m)
	task.Outcome.Feedback = feedback(s.Work, task.ID)
	if m.Before == nil || m.Before.Intent != task.Intent {
		task.Look, task.Write = true, m.Refusal == nil
		return task, 0
	}
	meta, verdict := task.Meta, task.Outcome.Feedback
	task.Item = *m.Before
	task.Meta, task.Outcome.Feedback = meta, verdict
	look, wait := task.due(m.Shown, ownerUID(s.Applied), s.Now)
	task.Look, task.Write = look, look && m.Refusal == nil
	task.Repair = look && task.Fails == 0
	return task, wait
}

// broken is the task of a manifest that names no object. Only one whose kind
// may yet come is tried again.
func broken(task Task, m Manifest, now time.Time) (Task, time.Duration) {
	cause := m.Err
	if cause == nil {
		cause = m.MapErr
	}
	task.Outcome = status.Outcome{
		Applied: status.Failed(apply.Message(cause, false)), Available: status.Unnamed(), Feedback: status.NoFeedback(),
	}
	if m.Err != nil {
		return task, 0
	}
	task.Unknown = discovery.IsUnknownKind(m.MapErr)
	if m.Before != nil && m.Before.Fails > 0 {
		task.Fails, task.Next = m.Before.Fails, m.Before.Next
	}
	if !now.Before(task.Next) {
		task.failed(now)
	}
	return task, task.Next.Sub(now)
}

// prune finds the recorded objects that are declared no more. An object whose
// manifest cannot be resolved at the moment stays.
func (p *Plan) prune(s State, declared map[apply.ID]bool) {
	if s.Applied == nil {
		return
	}
	seen := map[apply.ID]bool{}
	for _, recorded := range slices.Concat(s.Owed, s.Applied.Status.AppliedResources) {
		id := apply.RecordedID(recorded)
		if seen[id] {
			continue
		}
		seen[id] = true
		if declared[id] || unresolved(s.Manifests, id) {
			continue
		}
		if rest := lookEvery - s.Now.Sub(s.Removed); rest > 0 {
			p.Pending = append(p.Pending, recorded)
			p.later(rest)
			continue
		}
		p.Remove = append(p.Remove, apply.Removal{
			Recorded: recorded, Owner: apply.OwnerOf(s.Applied), Keep: !apply.Owned(s.Work.Spec.DeleteOption, id),
		})
	}
}

// unresolved tells whether a manifest that could not be resolved may be about
// the object.
func unresolved(manifests []Manifest, id apply.ID) bool {
	return slices.ContainsFunc(manifests, func(m Manifest) bool {
		return (m.Err != nil || m.MapErr != nil) && m.Head.Group == id.Group && m.Head.Name == id.Name &&
			(m.Head.Namespace == id.Namespace || id.Namespace == "")
	})
}

// later asks to come back after d, unless something else asks for it sooner.
func (p *Plan) later(d time.Duration) {
	if d > 0 && (p.RequeueAfter == 0 || d < p.RequeueAfter) {
		p.RequeueAfter = d
	}
}

func ownerUID(applied *workv1.AppliedManifestWork) types.UID {
	if applied == nil {
		return ""
	}
	return applied.UID
}

// intentOf digests everything that decides how the object is written.
func intentOf(m Manifest) intent {
	refusal := ""
	if m.Refusal != nil {
		refusal = m.Refusal.Error()
	}
	raw, err := json.Marshal([]any{m.Raw, m.Mapping, m.Options, m.Rival, refusal})
	if err != nil {
		return intent{}
	}
	sum := sha256.Sum256(raw)
	return intent(sum[:len(intent{})])
}

// feedback is the verdict on the feedback rules of an object.
func feedback(work *workv1.ManifestWork, id apply.ID) status.Verdict {
	for _, c := range work.Spec.ManifestConfigs {
		if len(c.FeedbackRules) > 0 && apply.Matches(c.ResourceIdentifier, id) {
			return status.FeedbackFailed("feedback rules are not supported by this version of the agent")
		}
	}
	return status.NoFeedback()
}

// errExecutor is the refusal of works that name an executor: applying them with
// the agent's own rights would grant what the executor was meant to withhold.
var errExecutor = errors.New("spec.executor is not supported by this version of the agent, and the work is not applied without it; remove it, or use an agent that supports it")
