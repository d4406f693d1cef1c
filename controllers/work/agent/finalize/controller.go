// SPDX-License-Identifier: Apache-2.0

package finalize

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/go-logr/logr"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/drift"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/executor"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/ledger"
	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manifest"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

const (
	// maxSteps bounds the steps of one pass; there are six from a work to
	// nothing.
	maxSteps = 8
	// pendingFirst and pendingLast bound how soon objects that wait for their
	// finalizers are looked at again without an event.
	pendingFirst = 500 * time.Millisecond
	pendingLast  = time.Minute
	// unseenRetry is when to look again after the hub had a work that its watch did
	// not show; usually the watch does so before.
	unseenRetry = 10 * time.Second
	// tenantsGrace is how long a namespace that other works live in waits for them:
	// works that leave together do not all begin at once.
	tenantsGrace = 10 * time.Second
	// conflictRetry is when to come back after somebody else wrote first.
	conflictRetry = 50 * time.Millisecond
)

// Config is what a Controller works with.
type Config struct {
	// Works and Applied are the two sides of the works.
	Works   *ledger.Works
	Applied *ledger.Applied
	// Applier removes objects.
	Applier *apply.Applier
	// Rights tell what executors may do.
	Rights *executor.Checker
	// Track tells which objects shall wake the work when they go.
	Track func(work string, objects []drift.Object)
	// Event is called with a work when evictions are held up, and when a namespace of
	// its own stays.
	Event func(ctx context.Context, work string, event reconcile.Event)
	// Grace is how long the objects of a work that the hub forgot are kept.
	Grace time.Duration
	// Clock gives the time of passes.
	Clock clock.PassiveClock
}

// Controller ends works. One work must not be reconciled twice at a time.
type Controller struct {
	c Config

	mu sync.Mutex
	// held is when an eviction was last held up.
	held time.Time
}

// New makes a Controller.
func New(c Config) *Controller { return &Controller{c: c} }

// Reconcile takes the steps that can be taken for the AppliedManifestWork of
// that name.
func (c *Controller) Reconcile(ctx context.Context, name string) (reconcile.Result, error) {
	for range maxSteps {
		s, err := c.gather(ctx, name)
		if err != nil {
			return c.failed(name, err)
		}
		step, wait := Decide(s)
		if step == Rest {
			return reconcile.Result{RequeueAfter: wait}, nil
		}
		wait, err = c.take(ctx, step, s)
		if err != nil {
			return c.failed(name, err)
		}
		if wait > 0 {
			return reconcile.Result{RequeueAfter: wait}, nil
		}
	}
	return reconcile.Result{RequeueAfter: conflictRetry}, nil
}

func (c *Controller) failed(name string, err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	}
	return reconcile.Result{}, fmt.Errorf("ending appliedmanifestwork %s: %w", name, err)
}

// gather reads the two sides. A work that is being deleted is needed whole, for
// its delete option.
func (c *Controller) gather(ctx context.Context, name string) (State, error) {
	s := State{Now: c.c.Clock.Now(), Grace: c.c.Grace, Applied: c.c.Applied.Get(name)}
	if s.Applied != nil {
		s.Unconfirmed = s.Applied.Annotations[workv1.AnnotationRemovalHeld]
	}
	s.OtherAgent = s.Applied != nil && s.Applied.Spec.AgentID != c.c.Applied.Identity.AgentID
	work, ours := c.c.Applied.Identity.Work(name)
	if !ours {
		if s.Applied != nil {
			s.Successor = c.c.Applied.Successor(s.Applied)
			known, there := c.c.Works.Get(s.Applied.Spec.ManifestWorkName)
			s.Awaited = there && !known.Deleting && !recorded(s.Successor)
			if there {
				s.WentBack = ledger.WentBack(s.Applied, known.Sighting())
			}
		}
		return c.guard(s), nil
	}
	known, there := c.c.Works.Get(work)
	if !there {
		return c.guard(s), nil
	}
	body, err := c.c.Works.Body(ctx, known)
	if missing(err) {
		return c.guard(s), nil
	}
	if err != nil {
		return s, err
	}
	s.Work, s.WentBack = body, ledger.WentBack(s.Applied, ledger.SightingOf(body))
	return s, nil
}

// take takes one step; a duration ends the pass until then.
func (c *Controller) take(ctx context.Context, step Step, s State) (time.Duration, error) {
	var err error
	switch step {
	case MarkDeleting:
		return 0, c.markDeleting(ctx, s.Work, "", false)
	case Delete:
		err = c.end(ctx, s)
	case Empty:
		return c.empty(ctx, s)
	case Release:
		return c.release(ctx, s.Work)
	case Stamp:
		err = c.stamp(ctx, s)
	case Unstamp:
		_, err = c.c.Applied.Record(ctx, s.Applied, s.Applied.Status.AppliedResources, nil)
	case Hold:
		c.hold(ctx, s)
		return holdEvery, nil
	case Mark:
		return c.mark(ctx, s)
	case HoldDeletion:
		return holdEvery, c.holdDeletion(ctx, s)
	case Evict:
		return c.evict(ctx, s)
	}
	return 0, err
}

// end deletes the AppliedManifestWork, which keeps its finalizer.
func (c *Controller) end(ctx context.Context, s State) error {
	if err := c.letGo(ctx, s); err != nil {
		return err
	}
	_, err := c.c.Applied.Delete(ctx, s.Applied)
	return err
}

// stamp notes when the work was first missed.
func (c *Controller) stamp(ctx context.Context, s State) error {
	applied, err := c.suspect(ctx, s)
	if err != nil {
		return err
	}
	logr.FromContextOrDiscard(ctx).Info("Work is not on the hub and its objects are removed after the grace",
		"work", applied.Spec.ManifestWorkName, "grace", c.c.Grace.String(), "objects", len(applied.Status.AppliedResources))
	_, err = c.c.Applied.Record(ctx, applied, applied.Status.AppliedResources, &s.Now)
	return err
}

// markDeleting sets the condition Deleting, with why it cannot go on if there is
// a reason; held tells whether a person has to confirm that it does.
func (c *Controller) markDeleting(ctx context.Context, work *workv1.ManifestWork, cause string, held bool) error {
	message := workv1.MessageWorkDeleting
	if cause != "" {
		message += ", but " + cause
	}
	if had := apimeta.FindStatusCondition(work.Status.Conditions, workv1.ConditionDeleting); had != nil && had.Message == message {
		return nil
	}
	next := work.Status.DeepCopy()
	reconcile.SetCondition(&next.Conditions, metav1.Condition{
		Type: workv1.ConditionDeleting, Status: metav1.ConditionTrue, Reason: workv1.ReasonWorkDeleting,
		Message: message, ObservedGeneration: work.Generation,
	}, c.c.Clock.Now())
	apimeta.RemoveStatusCondition(&next.Conditions, workv1.ConditionRemovalHeld)
	if held {
		reconcile.SetCondition(&next.Conditions, metav1.Condition{
			Type: workv1.ConditionRemovalHeld, Status: metav1.ConditionTrue, Reason: workv1.ReasonHubWentBack, Message: cause, ObservedGeneration: work.Generation,
		}, c.c.Clock.Now())
	}
	_, err := c.c.Works.WriteStatus(ctx, work, *next)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// empty removes the objects, last rank first, and shortens the record to those
// that are still there; without any, the finalizer goes.
func (c *Controller) empty(ctx context.Context, s State) (time.Duration, error) {
	recorded := slices.Clone(s.Applied.Status.AppliedResources)
	slices.SortStableFunc(recorded, func(a, b workv1.AppliedManifestResourceMeta) int {
		return cmp.Compare(manifest.RankResource(b.Resource), manifest.RankResource(a.Resource))
	})
	var objects []drift.Object
	for _, r := range recorded {
		objects = append(objects, drift.Object{Resource: apply.Resource(r), Namespace: r.Namespace, Name: r.Name, Marked: true})
	}
	c.c.Track(s.Applied.Name, objects)
	var pending []workv1.AppliedManifestResourceMeta
	var errs []error
	cause, waited := "", s.Now.Sub(s.Applied.DeletionTimestamp.Time)
	for _, r := range recorded {
		removal := c.removal(s, r)
		if why := c.inhabited(s, removal); why != "" {
			if waited < tenantsGrace {
				pending, cause = append(pending, r), why
				continue
			}
			removal.Keep = true
			c.c.Event(ctx, s.Applied.Spec.ManifestWorkName, reconcile.Event{Type: "Warning", Reason: workv1.ReasonNamespaceKept, Action: "Delete", Message: why})
		}
		waits, err := c.remove(ctx, s, removal)
		if waits {
			pending = append(pending, r)
		}
		if err != nil {
			errs = append(errs, errors.New(apply.Message(err, r.Group == "" && r.Resource == "secrets")))
		}
	}
	if len(pending) == 0 {
		c.c.Track(s.Applied.Name, nil)
		return 0, c.c.Applied.Release(ctx, s.Applied)
	}
	if len(pending) != len(recorded) {
		if _, err := c.c.Applied.Record(ctx, s.Applied, inOrder(pending), nil); err != nil {
			errs = append(errs, err)
		}
	}
	if s.Work != nil && s.Work.DeletionTimestamp != nil {
		if len(errs) > 0 {
			cause = errs[0].Error()
		}
		if err := c.markDeleting(ctx, s.Work, cause, false); err != nil {
			errs = append(errs, err)
		}
	}
	return pendingAfter(waited), errors.Join(errs...)
}

// inhabited says why a namespace that would go stays: other works have objects in it.
func (c *Controller) inhabited(s State, r apply.Removal) string {
	if r.Keep || !apply.IsNamespace(apply.RecordedID(r.Recorded)) {
		return ""
	}
	tenants := c.c.Applied.Tenants(r.Recorded.Name, s.Applied.Spec.ManifestWorkName, c.c.Works.Ending)
	if len(tenants) == 0 {
		return ""
	}
	return ledger.Inhabited(r.Recorded.Name, tenants)
}

// letGo takes the references of the work off the objects that its delete option
// keeps, before anything is removed: from there on the work may vanish from the hub,
// as where somebody takes its finalizer off, and its option with it.
func (c *Controller) letGo(ctx context.Context, s State) error {
	for _, r := range s.Applied.Status.AppliedResources {
		removal := c.removal(s, r)
		if !removal.Keep {
			continue
		}
		if _, err := c.remove(ctx, s, removal); err != nil {
			cause := apply.Message(err, r.Group == "" && r.Resource == "secrets")
			return errors.Join(err, c.markDeleting(ctx, s.Work, cause, false))
		}
	}
	return nil
}

// remove takes one step to remove an object. Where the agent itself may not, the
// executor that could delete it when it was applied may.
func (c *Controller) remove(ctx context.Context, s State, removal apply.Removal) (pending bool, err error) {
	r, applier := removal.Recorded, c.c.Applier
	account, err := executorOf(s)
	switch {
	case err != nil:
		// Nothing was ever applied by an executor that is none.
		removal.Claimed = false
	case !account.IsAgent():
		if removal.Claimed {
			removal.Claimed, err = c.c.Rights.MayDelete(ctx, account, executor.Object{Resource: apply.Resource(r), Namespace: r.Namespace, Name: r.Name})
			if err != nil {
				return true, err
			}
		}
		client, err := c.c.Rights.As(account)
		if err != nil {
			return true, err
		}
		applier = applier.As(client)
	}
	return applier.Remove(ctx, removal)
}

// executorOf is who removes the objects where the agent may not: the executor of
// the work or, where that is gone, the one that the record notes.
func executorOf(s State) (executor.Account, error) {
	if s.Work == nil {
		return executor.OfUser(s.Applied.Annotations[workv1.AnnotationExecutor]), nil
	}
	return executor.Of(s.Work.Spec.Executor)
}

// removal says how one object goes, by the delete option as it stands.
func (c *Controller) removal(s State, r workv1.AppliedManifestResourceMeta) apply.Removal {
	// A record never takes objects along that another took over: the other may
	// have noted them down and not have put its mark on them yet.
	out := apply.Removal{Recorded: r, Owner: apply.OwnerOf(s.Applied), Keep: ledger.Holds(s.Successor, r)}
	if s.Work == nil || s.Work.DeletionTimestamp == nil {
		return out
	}
	id := apply.RecordedID(r)
	out.Keep = !apply.Owned(s.Work.Spec.DeleteOption, id)
	options, err := apply.OptionsFor(&s.Work.Spec, id)
	out.Claimed = !out.Keep && err == nil && restored(s.Work) && options.Strategy != workv1.UpdateStrategyTypeReadOnly
	return out
}

func inOrder(list []workv1.AppliedManifestResourceMeta) []workv1.AppliedManifestResourceMeta {
	slices.SortFunc(list, func(a, b workv1.AppliedManifestResourceMeta) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Resource, b.Resource),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// pendingAfter grows with the time that a work already waits.
func pendingAfter(waited time.Duration) time.Duration {
	return min(max(waited/4, pendingFirst), pendingLast)
}

// release drops the finalizer of a work whose AppliedManifestWork is gone; the
// absence that the watch shows is not enough.
func (c *Controller) release(ctx context.Context, work *workv1.ManifestWork) (time.Duration, error) {
	live, err := c.c.Applied.Live(ctx, c.c.Applied.Identity.Name(work.Name))
	if err != nil || live != nil {
		return 0, err
	}
	_, err = c.c.Works.Release(ctx, work)
	if apierrors.IsNotFound(err) {
		err = nil
	}
	return 0, err
}

// missing tells whether the hub says that there is no such work. A server that
// does not know the API at all, or stands in the hub's place, does not say that.
func missing(err error) bool { return apierrors.IsNotFound(err) && !apply.IsNotServed(err) }

// recorded tells whether a pass over the work has noted its objects down.
func recorded(record *workv1.AppliedManifestWork) bool {
	return record != nil && len(record.Status.AppliedResources) > 0
}

// evict deletes the AppliedManifestWork once the hub itself has said that there
// is no such work. One of an earlier address may go when the hub has the work
// and its objects are noted down at the address of now.
func (c *Controller) evict(ctx context.Context, s State) (time.Duration, error) {
	work, ours := c.c.Applied.Identity.Work(s.Applied.Name)
	if !ours {
		work = s.Applied.Spec.ManifestWorkName
	}
	if ours || !recorded(s.Successor) {
		_, err := c.c.Works.Live(ctx, work)
		switch {
		case err == nil:
			return unseenRetry, nil
		case !missing(err):
			return 0, err
		}
	}
	_, err := c.c.Applied.Delete(ctx, s.Applied)
	return 0, err
}
