// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/drift"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/ledger"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/status"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/manifest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// looksAtOnce bounds the GETs of one pass that are under way together.
const looksAtOnce = 4

// pass is one pass over one work.
type pass struct {
	*Controller
	record  *record
	state   State
	plan    Plan
	work    *workv1.ManifestWork
	applied *workv1.AppliedManifestWork
	// live and lookErr hold what looks found, by task.
	live    []*unstructured.Unstructured
	lookErr []error
	// pending are the recorded objects whose removal waits.
	pending []workv1.AppliedManifestResourceMeta
}

// perform carries out the plan. An error is one of the bookkeeping on either
// side; without the record nothing is written.
func (p *pass) perform(ctx context.Context) (reconcile.Result, error) {
	if err := p.prepare(ctx); err != nil {
		return reconcile.Result{}, err
	}
	p.look(ctx)
	p.pending = p.plan.Pending
	for _, r := range p.plan.Remove {
		p.pending = append(p.pending, r.Recorded)
	}
	if err := p.note(ctx); err != nil {
		return reconcile.Result{}, err
	}
	p.watch()
	p.write(ctx)
	removeErr := p.remove(ctx)
	p.record.owed = p.listed()
	if err := p.note(ctx); err != nil {
		return reconcile.Result{}, err
	}
	p.record.owed = nil
	p.remember()
	if err := p.report(ctx); err != nil {
		return reconcile.Result{}, err
	}
	p.record.settled = len(p.pending) == 0
	return p.result(), removeErr
}

// prepare puts the finalizer on the work and sees to the AppliedManifestWork.
func (p *pass) prepare(ctx context.Context) error {
	var err error
	p.applied = p.state.Applied
	if p.plan.Hold {
		if p.work, err = p.c.Works.Hold(ctx, p.work); err != nil {
			return err
		}
	}
	switch {
	case p.plan.Create:
		p.applied, err = p.c.Applied.Create(ctx, p.work)
	case p.plan.Adopt:
		p.applied, err = p.c.Applied.Adopt(ctx, p.applied)
	}
	if err != nil {
		return err
	}
	if p.applied == nil || p.applied.DeletionTimestamp != nil {
		return errDeleting
	}
	return nil
}

// errDeleting ends a pass whose AppliedManifestWork is on its way out; it is
// made anew when it is gone.
var errDeleting = errors.New("its AppliedManifestWork is being deleted")

// look reads the objects that may have changed.
func (p *pass) look(ctx context.Context) {
	p.live = make([]*unstructured.Unstructured, len(p.plan.Tasks))
	p.lookErr = make([]error, len(p.plan.Tasks))
	var running sync.WaitGroup
	slots := make(chan struct{}, looksAtOnce)
	for i := range p.plan.Tasks {
		t := &p.plan.Tasks[i]
		if !t.Look {
			continue
		}
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			p.live[i], p.lookErr[i] = p.c.Applier.Observe(ctx, t.Resource, t.ID.Namespace, t.ID.Name)
		})
	}
	running.Wait()
	now := p.c.Clock.Now()
	for i := range p.plan.Tasks {
		t := &p.plan.Tasks[i]
		if !t.Look {
			continue
		}
		t.Looked = now
		switch {
		case p.lookErr[i] != nil:
		case p.live[i] == nil:
			t.Result = apply.Result{}
		default:
			t.Result.Seen = apply.See(p.live[i])
		}
	}
}

// note records all objects that the work declares, with the identities that are
// known, and those whose removal waits.
func (p *pass) note(ctx context.Context) error {
	list := p.listed()
	if sameResources(list, p.applied.Status.AppliedResources) && p.applied.Status.EvictionStartTime == nil {
		p.record.resources = list
		return nil
	}
	applied, err := p.c.Applied.Record(ctx, p.applied, list, nil)
	if err != nil {
		return err
	}
	p.applied, p.record.resources = applied, list
	return nil
}

// listed is the list for the record as things stand.
func (p *pass) listed() []workv1.AppliedManifestResourceMeta {
	return resources(p.plan.Tasks, p.applied.Status.AppliedResources, p.pending, p.state.Manifests)
}

// resources is the list for the record. An object that stands under a manifest
// that cannot be resolved stays as it is recorded.
func resources(tasks []Task, before, pending []workv1.AppliedManifestResourceMeta, manifests []Manifest) []workv1.AppliedManifestResourceMeta {
	var out []workv1.AppliedManifestResourceMeta
	declared := map[apply.ID]bool{}
	for i := range tasks {
		t := &tasks[i]
		if !t.Named || declared[t.ID] {
			continue
		}
		declared[t.ID] = true
		out = append(out, workv1.AppliedManifestResourceMeta{
			Group: t.Resource.Group, Version: t.Resource.Version, Resource: t.Resource.Resource,
			Namespace: t.ID.Namespace, Name: t.ID.Name, UID: uidOf(t, before),
		})
	}
	for _, b := range before {
		if id := apply.RecordedID(b); !declared[id] && unresolved(manifests, id) {
			declared[id] = true
			out = append(out, b)
		}
	}
	out = append(out, pending...)
	slices.SortFunc(out, compareResources)
	return out
}

// uidOf is the identity to record. What this pass did not look at stays as it is
// recorded: another agent may know better than our memory.
func uidOf(t *Task, before []workv1.AppliedManifestResourceMeta) types.UID {
	if t.Look {
		return t.Result.Seen.UID
	}
	for _, b := range before {
		if apply.RecordedID(b) == t.ID {
			return b.UID
		}
	}
	return t.Result.Seen.UID
}

func compareResources(a, b workv1.AppliedManifestResourceMeta) int {
	return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Version, b.Version),
		strings.Compare(a.Resource, b.Resource), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

func sameResources(a, b []workv1.AppliedManifestResourceMeta) bool { return slices.Equal(a, b) }

// watch makes sure that changes of the objects wake the work.
func (p *pass) watch() {
	var objects []drift.Object
	waits := false
	for i := range p.plan.Tasks {
		t := &p.plan.Tasks[i]
		waits = waits || t.Unknown
		if t.Named {
			objects = append(objects, drift.Object{
				Resource: t.Resource, Namespace: t.ID.Namespace, Name: t.ID.Name,
				Marked: t.Write && t.Options.Owned && writesOwner(t.Options),
			})
		}
	}
	for _, r := range p.pending {
		objects = append(objects, drift.Object{Resource: apply.Resource(r), Namespace: r.Namespace, Name: r.Name, Marked: true})
	}
	p.c.Watcher.Track(p.applied.Name, objects)
	p.c.Watcher.Wait(p.applied.Name, waits)
}

func writesOwner(o apply.Options) bool { return o.Strategy != workv1.UpdateStrategyTypeReadOnly }

// write applies the tasks in the order of their ranks.
func (p *pass) write(ctx context.Context) {
	order := make([]int, len(p.plan.Tasks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return p.plan.Tasks[a].Rank - p.plan.Tasks[b].Rank })
	for _, i := range order {
		if t := &p.plan.Tasks[i]; t.Look {
			p.writeOne(ctx, t, p.live[i], p.lookErr[i])
		}
	}
}

func (p *pass) writeOne(ctx context.Context, t *Task, live *unstructured.Unstructured, lookErr error) {
	before := t.Outcome.Applied
	t.Outcome.Available = status.Exists(live != nil)
	secret := manifest.IsSecret(t.Object.GetAPIVersion(), t.Object.GetKind())
	switch {
	case lookErr != nil:
		t.Outcome.Available = status.Unreadable(apply.Message(lookErr, secret))
		if t.Refusal == nil {
			p.fail(t, lookErr, secret)
			return
		}
		fallthrough
	case t.Refusal != nil:
		t.Outcome.Applied = refused(t.Refusal)
		t.Fails = 0
		return
	}
	result, err := p.c.Applier.Apply(ctx, apply.Request{
		Resource: t.Resource, Object: t.Object, Options: t.Options,
		Owner: apply.OwnerOf(p.applied), Live: live, OwnerOnly: t.Rival != "",
	})
	if err != nil {
		p.fail(t, err, secret)
		return
	}
	t.succeed(result, before)
}

// refused is the verdict on a manifest that the agent does not apply.
func refused(err error) status.Verdict {
	var ignore *apply.IgnoreFieldsError
	if errors.As(err, &ignore) {
		return status.IgnoreFieldsFailed(ignore.Error())
	}
	return status.Failed(err.Error())
}

// succeed notes an object that is as the work declares it.
func (t *Task) succeed(result apply.Result, before status.Verdict) {
	if t.Repair && before.Status == status.Applied("").Status && result.Seen.Version != t.Result.Seen.Version {
		t.Repairs++
	} else if !t.hot(t.Looked) {
		t.Repairs = 0
	}
	t.Result, t.Fails, t.Waits = result, 0, false
	t.Outcome.Available = status.Exists(result.Seen.UID != "")
	note := ""
	switch {
	case t.Rival != "":
		t.Outcome.Applied = status.Failed(errRival(t.Rival).Error())
		return
	case result.Merged != "":
		note = "server-side apply refused the manifest (" + result.Merged + "), so a three-way merge patch was used"
	case t.hot(t.Looked):
		note = "somebody else keeps changing the object, it is repaired at most every 10 s"
	}
	t.Outcome.Applied = status.Applied(note)
}

// fail notes an object that could not be applied, and how it will be tried
// again: when it changes, or after a while.
func (p *pass) fail(t *Task, err error, secret bool) {
	var conflict *apply.ConflictError
	var deleting *apply.DeletingError
	t.Outcome.Applied = status.Failed(apply.Message(err, secret))
	switch {
	case errors.As(err, &conflict), errors.As(err, &deleting):
		t.Waits, t.Fails = true, 0
	case apply.IsNotServed(err):
		p.c.Mapper.Reset()
		fallthrough
	default:
		t.failed(p.c.Clock.Now())
	}
}

// remove deletes what the work declares no more, last rank first.
func (p *pass) remove(ctx context.Context) error {
	if len(p.plan.Remove) == 0 {
		return nil
	}
	p.record.removed = p.c.Clock.Now()
	p.pending = p.plan.Pending
	removals := slices.Clone(p.plan.Remove)
	slices.SortStableFunc(removals, func(a, b apply.Removal) int {
		return manifest.RankResource(b.Recorded.Resource) - manifest.RankResource(a.Recorded.Resource)
	})
	var errs []error
	for _, r := range removals {
		pending, err := p.c.Applier.Remove(ctx, r)
		if pending {
			p.pending = append(p.pending, r.Recorded)
		}
		if err != nil {
			errs = append(errs, errors.New(apply.Message(err, r.Recorded.Group == "" && r.Recorded.Resource == "secrets")))
		}
	}
	return errors.Join(errs...)
}

// remember keeps what the next pass decides on.
func (p *pass) remember() {
	p.record.generation, p.record.owner = p.state.Work.Generation, p.applied.UID
	p.record.items = p.record.items[:0]
	for i := range p.plan.Tasks {
		item := p.plan.Tasks[i].Item
		item.Outcome.Meta = item.Meta
		p.record.items = append(p.record.items, item)
	}
}

// report writes the status once, if it says anything new.
func (p *pass) report(ctx context.Context) error {
	outcomes := make([]status.Outcome, 0, len(p.record.items))
	for _, i := range p.record.items {
		outcomes = append(outcomes, i.Outcome)
	}
	before := p.work.Status
	for range statusTries {
		next := status.Build(p.work.Status, p.state.Work.Generation, outcomes, p.c.Clock.Now())
		if status.Same(next, p.work.Status) {
			break
		}
		written, err := p.c.Works.WriteStatus(ctx, p.work, next)
		if err == nil {
			p.work = written
			break
		}
		if !apierrors.IsConflict(err) {
			return err
		}
		if p.work, err = p.c.Works.Live(ctx, p.work.Name); err != nil {
			return err
		}
		if p.work.UID != p.record.uid {
			return errReplaced
		}
	}
	p.record.status = ledger.SumOf(p.work.Status)
	p.announce(ctx, before)
	return nil
}

// statusTries is how often the status is made anew because somebody else wrote
// the work in between.
const statusTries = 4

// errReplaced ends a pass over a work that was deleted and made anew meanwhile.
var errReplaced = errors.New("the work was replaced by another one of its name")

// result is when to come back without an event.
func (p *pass) result() reconcile.Result {
	next := Plan{RequeueAfter: p.plan.RequeueAfter}
	now := p.c.Clock.Now()
	for i := range p.record.items {
		item := &p.record.items[i]
		if _, wait := item.due(p.view(*item), p.record.owner, now); item.Fails > 0 || item.Waits {
			next.later(max(wait, firstRetry))
		}
	}
	if len(p.pending) > 0 {
		next.later(pendingEvery)
	}
	return reconcile.Result{RequeueAfter: next.RequeueAfter}
}
