// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/drift"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/executor"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/ledger"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/rules"
	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	"github.com/kubectl-ocm/kubectl-ocm/internal/discovery"
	"github.com/kubectl-ocm/kubectl-ocm/internal/feedback"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// conflictRetry is when to come back after others wrote or removed the work or its
// AppliedManifestWork; the watch has usually shown that by then.
const conflictRetry = 50 * time.Millisecond

// Watcher returns what watches have seen; drift.Tracker implements it.
type Watcher interface {
	Track(work string, objects []drift.Object)
	Wait(work string, waits bool)
	Look(resource schema.GroupVersionResource, namespace, name string) (apply.Seen, drift.Sight)
}

// Config holds the dependencies of a Controller.
type Config struct {
	// Works and Applied are the two sides of the works.
	Works   *ledger.Works
	Applied *ledger.Applied
	// Mapper resolves kinds, Applier writes objects, Watcher shows drift.
	Mapper  *discovery.Mapper
	Applier *apply.Applier
	Watcher Watcher
	// Feedback selects the values that feedback rules return; its MaxBytes is not used,
	// because the limit for a work is shared among its objects.
	Feedback feedback.Options
	// Rights checks what executors may do, and writes as them.
	Rights *executor.Checker
	// Rules evaluates condition rules.
	Rules *rules.Evaluator
	// Repaired is called for each object that was repaired; may be nil.
	Repaired func()
	// Event is called when a work fails or recovers.
	Event func(ctx context.Context, work *workv1.ManifestWork, event reconcile.Event)
	// SealAfter is how long all works have to be at rest before the seal of one alone is
	// recorded.
	SealAfter time.Duration
	// Clock gives the time of passes.
	Clock clock.PassiveClock
}

// Controller applies works. A work must not be reconciled by two callers at once.
type Controller struct {
	c Config

	mu      sync.Mutex
	records map[string]*record
	stands  map[string]Standing
	// passed is when the last pass over a work that had changed ended, sealNext when the
	// next seal may be recorded.
	passed, sealNext time.Time
}

// Standing is the state in which the last pass left a work.
type Standing struct {
	// Generation is the one that was reconciled last.
	Generation int64
	// Failing is set while one of its manifests is not applied, or if the pass failed.
	Failing bool
}

// Standing returns the state in which the last pass left a work; zero means that there
// was no pass.
func (c *Controller) Standing(work string) Standing {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stands[work]
}

// recordStanding records the state in which a pass left a work.
func (c *Controller) recordStanding(work string, s Standing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stands[work], c.passed = s, c.c.Clock.Now()
}

// New returns a Controller with an empty memory.
func New(c Config) *Controller {
	return &Controller{c: c, records: map[string]*record{}, stands: map[string]Standing{}}
}

// record is what is remembered of a work between passes.
type record struct {
	uid        types.UID
	generation int64
	owner      types.UID
	// items are what is remembered of the manifests; between passes they are folded where
	// possible. began is when the record was made.
	items   []Item
	folded  []folded
	options apply.Options
	began   time.Time
	// status is the digest of the status that the last pass left on the hub, resources
	// that of the list it left on the AppliedManifestWork.
	status    digest.Sum
	resources digest.Sum
	// notes digests what else the last pass left there.
	notes digest.Sum
	// owed is what the last pass wrote and could not record.
	owed []workv1.AppliedManifestResourceMeta
	// epoch is that of the claims at the last pass.
	epoch uint64
	// settled is set when the last pass ran to its end and no removal is waiting; removed
	// is when removals were last tried.
	settled bool
	removed time.Time
	// read is when a pass last read objects for rules alone.
	read time.Time
	// sealAt is when the seal is to be recorded; zero if it is. sealTurn is set when that
	// is its turn among others.
	sealAt   time.Time
	sealTurn bool
}

// Reconcile brings the objects of a work that is not being deleted closer to what it
// declares. A failing manifest is not an error: the failure is shown in the status, and
// the manifest is retried by itself.
func (c *Controller) Reconcile(ctx context.Context, work ledger.Work) (reconcile.Result, error) {
	r := c.record(work)
	if wait, quiet := c.quiet(work, r); quiet {
		return reconcile.Result{RequeueAfter: sooner(wait, c.sealDue(ctx, work.Name, r))}, nil
	}
	r.settled, r.sealAt, r.sealTurn = false, time.Time{}, false
	r.unfold(c.c.Applied.Get(c.c.Applied.Identity.Name(work.Name)))
	r.epoch = c.c.Works.Claims.Epoch(work.Name)
	body, err := c.c.Works.Body(ctx, work)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("applying manifestwork %s: %w", work.Name, err)
	}
	if body.UID != work.UID || body.DeletionTimestamp != nil {
		return reconcile.Result{RequeueAfter: firstRetry}, nil
	}
	if fault := unrecordable(body.Name, c.c.Applied.Identity); fault != nil {
		return reconcile.Result{}, c.refuse(ctx, body, r, fault)
	}
	pass := &pass{Controller: c, record: r, work: body, rules: c.c.Rules.Round(c.c.Clock), state: c.gather(ctx, body, r)}
	if !c.restore(&pass.state, r) {
		return reconcile.Result{RequeueAfter: watchCheck}, nil
	}
	if stale, err := c.stale(ctx, pass.state); stale || err != nil {
		return reconcile.Result{RequeueAfter: conflictRetry}, err
	}
	pass.plan = Decide(pass.state)
	result, err := pass.perform(ctx)
	trace(ctx, body, err)
	if apierrors.IsConflict(err) || (apierrors.IsNotFound(err) && !apply.IsNotServed(err)) {
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	}
	if err != nil {
		c.recordStanding(work.Name, Standing{Generation: r.generation, Failing: true})
		if rest := apply.RetryAfter(err); rest > 0 {
			logr.FromContextOrDiscard(ctx).Info("The API server is busy", "work", work.Name, "wait", rest, "error", err.Error())
			return reconcile.Result{RequeueAfter: rest}, nil
		}
		return reconcile.Result{}, fmt.Errorf("applying manifestwork %s: %w", work.Name, err)
	}
	c.recordStanding(work.Name, Standing{
		Generation: r.generation, Failing: apimeta.IsStatusConditionFalse(pass.work.Status.Conditions, workv1.ConditionApplied),
	})
	result.RequeueAfter = sooner(result.RequeueAfter, pass.recordApplied(ctx, r.fold(pass.applied)))
	return result, nil
}

// Forget drops what is remembered of a work that is gone or being deleted.
func (c *Controller) Forget(work string) {
	c.mu.Lock()
	delete(c.records, work)
	delete(c.stands, work)
	c.mu.Unlock()
	name := c.c.Applied.Identity.Name(work)
	c.c.Watcher.Wait(name, false)
	c.c.Rights.Forget(name)
}

// record returns the memory of a work; that of another work of the same name is dropped.
func (c *Controller) record(work ledger.Work) *record {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.records[work.Name]
	if r == nil || r.uid != work.UID {
		r = &record{uid: work.UID, began: c.c.Clock.Now()}
		c.records[work.Name] = r
	}
	return r
}

// quiet reports whether everything is as the last pass left it, and when to come back
// without an event. It makes no request.
func (c *Controller) quiet(work ledger.Work, r *record) (time.Duration, bool) {
	applied := c.c.Applied.Get(c.c.Applied.Identity.Name(work.Name))
	if !r.settled || !work.Held || r.generation != work.Generation || r.status != work.Status || r.epoch != c.c.Works.Claims.Epoch(work.Name) ||
		applied == nil || !c.asRecorded(applied, r) || !ledger.Noted(applied, work.Sighting()) {
		return 0, false
	}
	now := c.c.Clock.Now()
	var next Plan
	for i := range r.each(applied) {
		if i.Phase == unknown {
			return 0, false
		}
		shown := c.view(i)
		look, wait := i.due(shown, r.owner, now)
		read, rest := i.readDue(shown, r.read, now)
		if look || read {
			return 0, false
		}
		next.later(wait)
		next.later(rest)
	}
	return next.RequeueAfter, true
}

// asRecorded reports whether an AppliedManifestWork is as the last pass left it.
func (c *Controller) asRecorded(applied *workv1.AppliedManifestWork, r *record) bool {
	return r.owner == applied.UID && applied.DeletionTimestamp == nil && c.c.Applied.Adopted(applied) &&
		applied.Status.EvictionStartTime == nil && r.resources == sumOf(applied.Status.AppliedResources) && r.notes == notesOn(applied)
}

func (c *Controller) view(i Item) view {
	if !i.Phase.names() {
		return view{}
	}
	seen, sight := c.c.Watcher.Look(i.Resource, i.ID.Namespace, i.ID.Name)
	return view{seen, sight, c.c.Rights.Epoch(i.Executor, i.ID.Namespace)}
}
