// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/executor"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/status"
	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	"github.com/kubectl-ocm/kubectl-ocm/internal/discovery"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manifest"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// pendingEvery is when removals that wait are tried again without an event.
const pendingEvery = 10 * time.Second

// State is the input of a pass. Decide does not change it.
type State struct {
	// Now is the time of the pass.
	Now time.Time
	// Work is the work on the hub.
	Work *workv1.ManifestWork
	// Applied represents the work on this cluster, nil if it does not exist.
	Applied *workv1.AppliedManifestWork
	// Adopted is whether Applied carries our finalizer, our identity and the annotation
	// of the executor.
	Adopted bool
	// Inherited are the marks of complete manifests in the record that the work had at an
	// earlier address of the hub; only while Applied is nil.
	Inherited []string
	// Executor is who applies the manifests.
	Executor executor.Account
	// WentBack says in what way Work is older than what was last applied; empty where it
	// is not.
	WentBack string
	// Manifests are the manifests in the order of the spec.
	Manifests []Manifest
	// Removed is when removals were last tried, Read when objects were last read
	// for rules alone.
	Removed, Read time.Time
	// Inhabited gives the reason why namespaces that the work no longer declares stay.
	Inhabited map[string]string
	// Owed are objects that an earlier pass may have written and could not record,
	// because another agent took them off the record at that moment.
	Owed []workv1.AppliedManifestResourceMeta
}

// Manifest is one manifest and what is known of its object.
type Manifest struct {
	// Raw is the manifest as written in the work.
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
	// Rules are the feedback and condition rules for the object.
	Rules apply.Rules
	// Rival is an older work that declares the object with other content under the same
	// field manager; empty if there is none.
	Rival string
	// Before is the result of an earlier pass, nil if there is none; Shown is what the
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
	// Rules are the feedback and condition rules for the object.
	Rules apply.Rules
	// Action is what the pass does, Shown what the watch shows.
	Action action
	Shown  view
	// Refusal says why the object is not written.
	Refusal error
	// Rival is the older work whose content holds.
	Rival string
}

// action is what a pass does about the object of one manifest.
type action int

const (
	// leave the object alone.
	leave action = iota
	// read the object for the rules alone.
	read
	// look at the object, to see whether it exists: its manifest is refused.
	look
	// tend a resting object: read it, and maintain only its owner reference.
	tend
	// write the object, after reading it.
	write
	// repair the object: it was kept, and has changed.
	repair
)

// looks reports whether the pass reads the object to learn its state.
func (a action) looks() bool { return a >= look }

// writes reports whether the manifest is applied.
func (a action) writes() bool { return a >= write }

// Plan is what a pass does.
type Plan struct {
	// Hold puts the finalizer on the work; Create and Adopt concern the
	// AppliedManifestWork.
	Hold, Create, Adopt bool
	// Tasks are in the order of the spec.
	Tasks []Task
	// Remove are the recorded objects that the work no longer declares, and Pending those
	// whose removal is put off to the next pass.
	Remove  []apply.Removal
	Pending []workv1.AppliedManifestResourceMeta
	// Inhabited says why namespaces that the work no longer declares stay.
	Inhabited []string
	// Held are those whose removal a person has to confirm, and HeldFor says why. Mark
	// records that on the AppliedManifestWork; Unmark removes the note when nothing is
	// left to confirm.
	Held         []workv1.AppliedManifestResourceMeta
	HeldFor      string
	Mark, Unmark bool
	// RequeueAfter brings the work back when something was put off.
	RequeueAfter time.Duration
}

// Decide plans a pass.
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
		if task.Phase.names() && declared[task.ID] {
			task.Refusal = fmt.Errorf("%s is declared twice in the work; remove one of the two manifests", task.ID)
			task.Action, task.Outcome.Rules = look, nil
			task.moveTo(refused)
		}
		declared[task.ID] = task.Phase.names()
		p.Tasks = append(p.Tasks, task)
	}
	p.prune(s, declared)
	return p
}

// decideOne plans what a pass does about one manifest, and when to come back to it
// without an event.
func decideOne(s State, ordinal int) (Task, time.Duration) {
	m := s.Manifests[ordinal]
	task := Task{Object: m.Object, Rank: manifest.RankBroken, Refusal: m.Refusal, Rules: m.Rules, Rival: m.Rival}
	task.Meta = m.Head
	task.Meta.Ordinal = int32(ordinal) //nolint:gosec // bounded by the size of a work
	if m.Err != nil || m.MapErr != nil {
		return unresolvable(task, m, s.Now)
	}
	task.Rank = manifest.Rank(m.Object.GetKind())
	task.Resource = m.Mapping.Resource
	task.ID = apply.IDOf(task.Resource, m.Object.GetNamespace(), m.Object.GetName())
	task.Meta.Resource, task.Meta.Namespace = task.Resource.Resource, m.Object.GetNamespace()
	task.Options, task.Executor = m.Options, s.Executor
	task.Intent, task.Shown = intentOf(m), m.Shown
	known := m.Before != nil && m.Before.Intent == task.Intent && m.Before.Executor == task.Executor
	if known {
		meta := task.Meta
		task.Item = *m.Before
		task.Meta = meta
	}
	task.reread(s.Work)
	task.planRest(s, known)
	due, wait := task.due(m.Shown, ownerUID(s.Applied), s.Now)
	if due || !known {
		task.Action = task.approach()
		return task, 0
	}
	due, rest := task.readDue(m.Shown, s.Read, s.Now)
	if due {
		task.Action = read
	}
	return task, sooner(wait, rest)
}

// approach returns what a pass does about an object that is due.
func (t *Task) approach() action {
	switch {
	case t.Refusal != nil:
		return look
	case t.Phase == resting:
		return tend
	case t.Phase == kept:
		return repair
	}
	return write
}

// unresolvable is the task of a manifest that names no object. It is retried only if its
// kind may still appear.
func unresolvable(task Task, m Manifest, now time.Time) (Task, time.Duration) {
	cause := cmp.Or(m.Err, m.MapErr)
	task.Outcome = status.Outcome{
		Applied: status.Failed(apply.Message(cause, false)), Available: status.Unnamed(), Feedback: status.NoFeedback(),
	}
	if m.Err != nil {
		task.moveTo(broken)
		return task, 0
	}
	task.moveTo(unknown)
	if m.Before != nil && m.Before.Fails > 0 {
		task.Fails, task.Next = m.Before.Fails, m.Before.Next
	}
	if !now.Before(task.Next) {
		task.recordFailure(now, 0)
	}
	return task, task.Next.Sub(now)
}

// later requests a requeue after d, unless something else requests an earlier one.
func (p *Plan) later(d time.Duration) { p.RequeueAfter = sooner(p.RequeueAfter, d) }

// sooner returns the smaller of two waiting times; zero means no wait.
func sooner(a, b time.Duration) time.Duration {
	if a <= 0 || (b > 0 && b < a) {
		return max(b, 0)
	}
	return a
}

func ownerUID(applied *workv1.AppliedManifestWork) types.UID {
	if applied == nil {
		return ""
	}
	return applied.UID
}

// intentOf digests everything that decides how the object is written.
func intentOf(m Manifest) digest.Sum {
	refusal := ""
	if m.Refusal != nil {
		refusal = m.Refusal.Error()
	}
	return digest.Of([]any{m.Raw, m.Mapping, m.Options, m.Rival, refusal})
}
