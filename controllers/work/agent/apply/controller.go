// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/drift"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/ledger"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/discovery"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// conflictRetry is when to come back after somebody else wrote or removed the
// work or its AppliedManifestWork; the watch has usually shown that by then.
const conflictRetry = 50 * time.Millisecond

// Watcher shows what watches have seen; drift.Tracker implements it.
type Watcher interface {
	Track(work string, objects []drift.Object)
	Wait(work string, waits bool)
	Look(resource schema.GroupVersionResource, namespace, name string) (apply.Seen, drift.Sight)
}

// Config is what a Controller works with.
type Config struct {
	// Works and Applied are the two sides of the works.
	Works   *ledger.Works
	Applied *ledger.Applied
	// Mapper resolves kinds, Applier writes objects, Watcher shows drift.
	Mapper  *discovery.Mapper
	Applier *apply.Applier
	Watcher Watcher
	// Event is called when a work fails or recovers.
	Event func(ctx context.Context, work *workv1.ManifestWork, event reconcile.Event)
	// Clock gives the time of passes.
	Clock clock.PassiveClock
}

// Controller applies works. One work must not be reconciled twice at a time.
type Controller struct {
	c Config

	mu      sync.Mutex
	records map[string]*record
}

// New makes a Controller that remembers nothing.
func New(c Config) *Controller { return &Controller{c: c, records: map[string]*record{}} }

// record is what is remembered of a work between passes.
type record struct {
	uid        types.UID
	generation int64
	owner      types.UID
	items      []Item
	// status is the digest of the status that the last pass left on the hub,
	// resources the list that it left on the AppliedManifestWork.
	status    ledger.Sum
	resources []workv1.AppliedManifestResourceMeta
	// owed is what the last pass wrote and could not record.
	owed []workv1.AppliedManifestResourceMeta
	// epoch is that of the claims which the last pass knew.
	epoch uint64
	// settled is set when the last pass reached its end and nothing waits to be
	// removed; removed is when removals were last tried.
	settled bool
	removed time.Time
}

// Reconcile brings the objects of a work that is not being deleted nearer to
// what it declares. A manifest that fails is no error; it stands in the status
// and is tried again by itself.
func (c *Controller) Reconcile(ctx context.Context, work ledger.Work) (reconcile.Result, error) {
	r := c.record(work)
	if wait, quiet := c.quiet(work, r); quiet {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	r.settled = false
	r.epoch = c.c.Works.Claims.Epoch(work.Name)
	body, err := c.c.Works.Body(ctx, work)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("applying manifestwork %s: %w", work.Name, err)
	}
	if body.UID != work.UID || body.DeletionTimestamp != nil {
		return reconcile.Result{RequeueAfter: firstRetry}, nil
	}
	pass := &pass{Controller: c, record: r, work: body, state: c.gather(ctx, body, r)}
	pass.plan = Decide(pass.state)
	result, err := pass.perform(ctx)
	if apierrors.IsConflict(err) || (apierrors.IsNotFound(err) && !apply.IsNotServed(err)) {
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("applying manifestwork %s: %w", work.Name, err)
	}
	return result, nil
}

// Forget drops what is remembered of a work, when it is gone or going.
func (c *Controller) Forget(work string) {
	c.mu.Lock()
	delete(c.records, work)
	c.mu.Unlock()
	c.c.Watcher.Wait(c.c.Applied.Identity.Name(work), false)
}

// record is the memory of a work; that of another work of the same name is
// dropped.
func (c *Controller) record(work ledger.Work) *record {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.records[work.Name]
	if r == nil || r.uid != work.UID {
		r = &record{uid: work.UID}
		c.records[work.Name] = r
	}
	return r
}

// quiet tells whether everything is as the last pass left it, and when to come
// back without an event. It makes no request.
func (c *Controller) quiet(work ledger.Work, r *record) (time.Duration, bool) {
	applied := c.c.Applied.Get(c.c.Applied.Identity.Name(work.Name))
	switch {
	case !r.settled, !work.Held, r.generation != work.Generation, r.status != work.Status:
		return 0, false
	case applied == nil, r.owner != applied.UID, applied.DeletionTimestamp != nil, !c.c.Applied.Adopted(applied):
		return 0, false
	case applied.Status.EvictionStartTime != nil, !sameResources(r.resources, applied.Status.AppliedResources):
		return 0, false
	case r.epoch != c.c.Works.Claims.Epoch(work.Name):
		return 0, false
	}
	now := c.c.Clock.Now()
	var next Plan
	for _, i := range r.items {
		if i.Unknown {
			return 0, false
		}
		look, wait := i.due(c.view(i), r.owner, now)
		if look {
			return 0, false
		}
		next.later(wait)
	}
	return next.RequeueAfter, true
}

func (c *Controller) view(i Item) view {
	if !i.Named {
		return view{}
	}
	seen, sight := c.c.Watcher.Look(i.Resource, i.ID.Namespace, i.ID.Name)
	return view{seen, sight}
}
