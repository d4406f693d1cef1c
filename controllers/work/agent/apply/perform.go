// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/drift"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/executor"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/ledger"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/rules"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/status"
	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// looksAtOnce bounds the concurrent GETs of one pass.
const looksAtOnce = 4

// pass is one pass over one work.
type pass struct {
	*Controller
	record  *record
	state   State
	plan    Plan
	work    *workv1.ManifestWork
	applied *workv1.AppliedManifestWork
	// applier writes as the executor, if the work has one.
	applier *apply.Applier
	// rules evaluates the condition rules of this pass.
	rules *rules.Round
	// bodies and lookErr hold the results of reads, by task.
	bodies  *bodies
	lookErr []error
	// pending are the recorded objects whose removal waits, and leftover says why some
	// could not be removed.
	pending  []workv1.AppliedManifestResourceMeta
	leftover string
}

// perform carries out the plan. It returns only errors of the bookkeeping on either side;
// without the record nothing is written.
func (p *pass) perform(ctx context.Context) (reconcile.Result, error) {
	if err := p.look(ctx); err != nil {
		return reconcile.Result{}, err
	}
	p.pending = slices.Concat(p.plan.Pending, p.plan.Held)
	for _, r := range p.plan.Remove {
		p.pending = append(p.pending, r.Recorded)
	}
	if err := p.prepare(ctx); err != nil {
		return reconcile.Result{}, err
	}
	if err := p.recordObjects(ctx); err != nil {
		return reconcile.Result{}, err
	}
	p.watch()
	p.send(ctx)
	removeErr := p.remove(ctx)
	p.record.owed = p.listed()
	if err := p.conclude(ctx); err != nil {
		return reconcile.Result{}, err
	}
	p.record.notes = notesOn(p.applied)
	p.record.settled = p.waiting() == 0 && !p.awake()
	return p.result(), removeErr
}

// conclude records what was written, and reports it. The names of the objects were recorded
// before they were written, so the hub may learn of them while their identities are recorded;
// what it must not learn of before it is recorded comes first.
func (p *pass) conclude(ctx context.Context) error {
	if !p.replaced() && !p.completed() && !p.unproven() {
		return p.recordAndReport(ctx)
	}
	applied, err := p.recordWritten(ctx, p.listed())
	if err != nil {
		return err
	}
	p.setRecorded(applied)
	p.remember()
	if err := p.recordComplete(ctx); err != nil {
		return err
	}
	return p.report(ctx)
}

// unproven reports whether an object was written that the work could not delete one day by what
// is recorded: it has no owner reference of the work, so that only its identity counts, or the
// record names the object that it replaced.
func (p *pass) unproven() bool {
	known := identities(p.applied.Status.AppliedResources)
	return slices.ContainsFunc(p.plan.Tasks, func(t Task) bool {
		seen, was := t.Result.Seen, known[t.ID]
		return t.Action.writes() && (!seen.OwnedBy(p.applied.UID) || (was != "" && was != seen.UID))
	})
}

// recordAndReport does both at once. If nothing could be recorded, the next pass takes
// nothing of this one as known.
func (p *pass) recordAndReport(ctx context.Context) error {
	p.remember()
	var recording sync.WaitGroup
	var applied *workv1.AppliedManifestWork
	var err error
	list := p.listed()
	recording.Go(func() { applied, err = p.recordWritten(ctx, list) })
	reportErr := p.report(ctx)
	recording.Wait()
	if err != nil {
		p.record.items = nil
		return err
	}
	p.setRecorded(applied)
	return reportErr
}

// look reads the objects that may have changed, and meanwhile puts the finalizer on the
// work.
func (p *pass) look(ctx context.Context) error {
	p.applied = p.state.Applied
	if err := p.authorize(ctx); err != nil {
		return err
	}
	if !p.plan.Hold {
		p.readLive(ctx)
		return nil
	}
	var held sync.WaitGroup
	var err error
	held.Go(func() { p.work, err = p.c.Works.Hold(ctx, p.state.Work) })
	p.readLive(ctx)
	held.Wait()
	return err
}

// prepare creates the AppliedManifestWork with the list of the objects, or adopts it.
func (p *pass) prepare(ctx context.Context) error {
	var err error
	switch {
	case p.plan.Create:
		p.applied, err = p.c.Applied.Create(ctx, p.work, p.listed())
	case p.plan.Adopt:
		p.applied, err = p.c.Applied.Adopt(ctx, p.applied, p.work)
	}
	if err != nil {
		return err
	}
	if p.applied == nil || p.applied.DeletionTimestamp != nil {
		return errDeleting
	}
	if p.plan.Mark {
		p.applied, err = p.c.Applied.Hold(ctx, p.applied, p.plan.HeldFor, ledger.SightingOf(p.work))
	}
	return err
}

// errDeleting ends a pass whose AppliedManifestWork is being deleted; it is created again
// when it is gone.
var errDeleting = errors.New("its AppliedManifestWork is being deleted")

// readLive reads the objects that may have changed.
func (p *pass) readLive(ctx context.Context) {
	p.bodies = newBodies(len(p.plan.Tasks))
	p.lookErr = make([]error, len(p.plan.Tasks))
	var running sync.WaitGroup
	slots := make(chan struct{}, looksAtOnce)
	for i := range p.plan.Tasks {
		t := &p.plan.Tasks[i]
		if t.Action == leave {
			continue
		}
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			p.lookErr[i] = p.readLiveOne(ctx, i)
		})
	}
	running.Wait()
	now := p.c.Clock.Now()
	for i := range p.plan.Tasks {
		if t := &p.plan.Tasks[i]; t.Action.looks() {
			t.recordLook(now)
		}
	}
}

// readLiveOne reads the object of one task.
func (p *pass) readLiveOne(ctx context.Context, i int) error {
	t := &p.plan.Tasks[i]
	live, err := p.applier.Observe(ctx, t.Resource, t.ID.Namespace, t.ID.Name)
	if err != nil {
		return err
	}
	p.bodies.keep(i, live)
	switch {
	case !t.Action.looks():
	case live == nil:
		t.Result = apply.Result{}
	default:
		t.Result.Seen = apply.See(live)
	}
	return nil
}

// liveOf returns the object that was read for a task. Where there was no room to store
// it, it is read again.
func (p *pass) liveOf(ctx context.Context, i int) (*unstructured.Unstructured, error) {
	if err := p.lookErr[i]; err != nil {
		return nil, err
	}
	t := &p.plan.Tasks[i]
	return p.bodies.take(i, func() (*unstructured.Unstructured, error) {
		return p.applier.Observe(ctx, t.Resource, t.ID.Namespace, t.ID.Name)
	})
}

// recordObjects records all objects that the work declares, with the identities that are
// known, and those whose removal waits.
func (p *pass) recordObjects(ctx context.Context) error {
	list := p.listed()
	if records(p.applied, list) {
		return nil
	}
	applied, err := p.c.Applied.Record(ctx, p.applied, list, nil)
	if err == nil {
		p.applied = applied
	}
	return err
}

// recordWritten records the same after the writes, and in the status even if all of it was
// known when the record was created. It returns the record.
func (p *pass) recordWritten(ctx context.Context, list []workv1.AppliedManifestResourceMeta) (*workv1.AppliedManifestWork, error) {
	if records(p.applied, list) && (len(list) == 0 || !ledger.OnlyIntends(p.applied)) {
		return p.applied, nil
	}
	return p.c.Applied.Record(ctx, p.applied, list, nil)
}

// setRecorded notes that what was written is recorded.
func (p *pass) setRecorded(applied *workv1.AppliedManifestWork) {
	p.applied, p.record.owed = applied, nil
	p.record.resources = sumOf(applied.Status.AppliedResources)
}

// records reports whether a record holds that list, and is not about to be evicted.
func records(applied *workv1.AppliedManifestWork, list []workv1.AppliedManifestResourceMeta) bool {
	return slices.Equal(list, applied.Status.AppliedResources) && applied.Status.EvictionStartTime == nil
}

// listed returns the current list for the record.
func (p *pass) listed() []workv1.AppliedManifestResourceMeta {
	var before []workv1.AppliedManifestResourceMeta
	if p.applied != nil {
		before = p.applied.Status.AppliedResources
	}
	return resources(p.plan.Tasks, before, p.pending, p.state.Manifests)
}

// resources returns the list for the record. An object whose manifest cannot be resolved
// stays as recorded.
func resources(tasks []Task, before, pending []workv1.AppliedManifestResourceMeta, manifests []Manifest) []workv1.AppliedManifestResourceMeta {
	var out []workv1.AppliedManifestResourceMeta
	known := identities(before)
	declared := map[apply.ID]bool{}
	for i := range tasks {
		t := &tasks[i]
		if !t.Phase.names() || declared[t.ID] {
			continue
		}
		declared[t.ID] = true
		out = append(out, workv1.AppliedManifestResourceMeta{
			Group: t.Resource.Group, Version: t.Resource.Version, Resource: t.Resource.Resource,
			Namespace: t.ID.Namespace, Name: t.ID.Name, UID: uidOf(t, known),
		})
	}
	for _, b := range before {
		if id := apply.RecordedID(b); !declared[id] && unresolved(manifests, id) {
			declared[id] = true
			out = append(out, b)
		}
	}
	out = append(out, pending...)
	ledger.Sort(out)
	return out
}

// identities returns the recorded UIDs of a list.
func identities(list []workv1.AppliedManifestResourceMeta) map[apply.ID]types.UID {
	out := make(map[apply.ID]types.UID, len(list))
	for _, r := range list {
		out[apply.RecordedID(r)] = r.UID
	}
	return out
}

// uidOf returns the UID to record. Objects that this pass did not read stay as recorded:
// another agent may know better than our memory.
func uidOf(t *Task, known map[apply.ID]types.UID) types.UID {
	if uid, recorded := known[t.ID]; recorded && !t.Action.looks() {
		return uid
	}
	return t.Result.Seen.UID
}

// sumOf digests a list for the record; nil equals an empty list.
func sumOf(list []workv1.AppliedManifestResourceMeta) digest.Sum {
	return digest.Of(append([]workv1.AppliedManifestResourceMeta{}, list...))
}

// watch makes sure that changes of the objects wake the work.
func (p *pass) watch() {
	var objects []drift.Object
	waits := false
	for i := range p.plan.Tasks {
		t := &p.plan.Tasks[i]
		waits = waits || t.Phase == unknown
		if t.Phase.names() {
			objects = append(objects, drift.Object{
				Resource: t.Resource, Namespace: t.ID.Namespace, Name: t.ID.Name,
				Marked: t.marked(p.bodies.found(i), p.applied.UID),
			})
		}
	}
	p.c.Watcher.Track(p.applied.Name, append(objects, drift.Recorded(p.pending)...))
	p.c.Watcher.Wait(p.applied.Name, waits)
}

// send carries out what the tasks need, in order.
func (p *pass) send(ctx context.Context) {
	for _, i := range turns(p.plan.Tasks) {
		t := &p.plan.Tasks[i]
		if t.Action == leave {
			continue
		}
		live, err := p.liveOf(ctx, i)
		now := p.c.Clock.Now()
		if t.Action == read {
			t.Reading.at, p.record.read = now, now
		}
		switch t.decideStep(live, err, now) {
		case tell:
			p.evaluateRules(ctx, t, live)
		case own:
			p.tendResting(ctx, t, live)
		case bring:
			err = p.applyManifest(ctx, t, live)
		case done:
		}
		if apply.IsNotServed(err) {
			p.c.Mapper.Reset()
		}
	}
}

// applyManifest applies the manifest of a task. The error is recorded, and reported to
// the mapper that resolves kinds.
func (p *pass) applyManifest(ctx context.Context, t *Task, live *unstructured.Unstructured) error {
	err := p.admit(ctx, t, live)
	if err != nil {
		t.setFailed(err, p.c.Clock.Now())
		return err
	}
	if p.ended(ctx, t, live) {
		return nil
	}
	result, err := p.applier.Apply(ctx, apply.Request{
		Resource: t.Resource, Object: t.Object, Options: t.Options,
		Owner: apply.OwnerOf(p.applied), Live: live, OwnerOnly: t.Rival != "", NeverReplace: p.plan.HeldFor != "",
	})
	if err != nil {
		p.evaluateRules(ctx, t, live)
		t.setFailed(executor.Refused(err, t.Executor, t.wanted()), p.c.Clock.Now())
		return err
	}
	p.evaluateRules(ctx, t, result.Live)
	if t.recordKept(result) && p.c.Repaired != nil {
		p.c.Repaired()
	}
	return nil
}

// remember keeps the state for the next pass, and for the claims of other works.
func (p *pass) remember() {
	p.claim()
	p.record.generation, p.record.owner = p.state.Work.Generation, p.applied.UID
	p.record.items = p.record.items[:0]
	for i := range p.plan.Tasks {
		item := p.plan.Tasks[i].Item
		item.Outcome.Values, item.Outcome.Fresh = nil, false
		p.record.items = append(p.record.items, item)
	}
}

// report writes the status once, if it says anything new.
func (p *pass) report(ctx context.Context) error {
	outcomes := make([]status.Outcome, 0, len(p.plan.Tasks))
	for i := range p.plan.Tasks {
		t := &p.plan.Tasks[i]
		t.Outcome.Meta = t.Meta
		outcomes = append(outcomes, t.Outcome)
	}
	before := p.work.Status
	for range statusTries {
		next := status.Build(p.work.Status, p.state.Work.Generation, outcomes, p.c.Clock.Now())
		p.setLeftoverMessage(&next)
		p.setHeldCondition(&next)
		next = status.Fit(next, p.work.Status, status.Room(p.work))
		if status.Same(next, p.work.Status) {
			break
		}
		if err := p.recordSuccessor(ctx); err != nil {
			return err
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
	p.markLeftOut()
	p.record.status = digest.Of(p.work.Status)
	p.announce(ctx, before)
	return nil
}

// markLeftOut records which values did not fit in the status.
func (p *pass) markLeftOut() {
	if !status.Crowded(p.work.Status) {
		return
	}
	for i := range p.record.items {
		p.record.items[i].markLeftOut(p.work.Status, p.state.Work.Generation)
	}
}

// statusTries is how often the status is built again because others wrote the work in
// between.
const statusTries = 4

// errReplaced ends a pass over a work that was deleted and created again meanwhile.
var errReplaced = errors.New("the work was replaced by another one of its name")

// result returns when to come back without an event.
func (p *pass) result() reconcile.Result {
	next := Plan{RequeueAfter: p.plan.RequeueAfter}
	now := p.c.Clock.Now()
	for i := range p.record.items {
		item := &p.record.items[i]
		if _, wait := item.due(p.view(*item), p.record.owner, now); item.Fails > 0 || item.Phase == blocked || item.Phase == denied || item.fought() {
			next.later(max(wait, firstRetry))
		}
		if read, wait := item.readDue(p.view(*item), p.record.read, now); read || wait > 0 {
			next.later(max(wait, firstRetry))
		}
	}
	if p.waiting() > 0 {
		next.later(pendingEvery)
	}
	if p.awake() {
		next.later(firstRetry)
	}
	return reconcile.Result{RequeueAfter: next.RequeueAfter}
}
