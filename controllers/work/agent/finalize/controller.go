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
	"k8s.io/apimachinery/pkg/types"
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
	// maxSteps bounds the steps of one pass; a complete cleanup takes four.
	maxSteps = 8
	// pendingFirst and pendingLast bound how soon objects that wait for their finalizers
	// are read again without an event.
	pendingFirst = 500 * time.Millisecond
	pendingLast  = time.Minute
	// unseenRetry is when to check again after the hub had a work that its watch did not
	// show; usually the watch shows it before.
	unseenRetry = 10 * time.Second
	// tenantsGrace is how long a namespace with objects of other works waits for them to
	// be deleted: works deleted together do not all start at once.
	tenantsGrace = 10 * time.Second
	// takenRecently is how long after its record was created a work may have been deleted while
	// it was taken.
	takenRecently = time.Minute
	// conflictRetry is when to come back after others wrote first.
	conflictRetry = 50 * time.Millisecond
)

// Config holds the dependencies of a Controller.
type Config struct {
	// Works and Applied are the two sides of the works.
	Works   *ledger.Works
	Applied *ledger.Applied
	// Applier removes objects.
	Applier *apply.Applier
	// Rights checks what executors may do.
	Rights *executor.Checker
	// Track sets the objects whose removal wakes the work.
	Track func(work string, objects []drift.Object)
	// Event is called with a work when evictions are held, and when one of its namespaces
	// stays.
	Event func(ctx context.Context, work string, event reconcile.Event)
	// Grace is how long the objects of a work are kept after it vanished from the hub.
	Grace time.Duration
	// Clock gives the time of passes.
	Clock clock.PassiveClock
}

// Controller cleans up works. A work must not be reconciled by two callers at once.
type Controller struct {
	c Config

	mu sync.Mutex
	// held is when an eviction was last held.
	held time.Time
}

// New returns a Controller.
func New(c Config) *Controller { return &Controller{c: c} }

// pass is one pass over an AppliedManifestWork. It remembers what it did itself, which the
// watch may show later.
type pass struct {
	*Controller
	name string
	// deleted is the AppliedManifestWork whose deletion the API server accepted, gone the
	// one whose last finalizer it took.
	deleted, gone types.UID
}

// Reconcile takes the steps that are possible for the AppliedManifestWork of that name.
func (c *Controller) Reconcile(ctx context.Context, name string) (reconcile.Result, error) {
	p := &pass{Controller: c, name: name}
	for range maxSteps {
		wait, end, err := p.next(ctx)
		switch {
		case apierrors.IsConflict(err):
			// The watch may be late, and must not hold up the next pass, too.
			if _, err := c.c.Applied.Live(ctx, name); err != nil {
				return reconcile.Result{}, fmt.Errorf("ending appliedmanifestwork %s: %w", name, err)
			}
			return reconcile.Result{RequeueAfter: conflictRetry}, nil
		case err != nil:
			return reconcile.Result{}, fmt.Errorf("ending appliedmanifestwork %s: %w", name, err)
		case end || wait > 0:
			return reconcile.Result{RequeueAfter: wait}, nil
		}
	}
	return reconcile.Result{RequeueAfter: conflictRetry}, nil
}

// next takes the next step. A duration, or end, ends the pass.
func (p *pass) next(ctx context.Context) (wait time.Duration, end bool, err error) {
	s, err := p.gather(ctx)
	if err != nil {
		return 0, false, err
	}
	step, wait := Decide(s)
	if step == Rest {
		return wait, true, nil
	}
	wait, err = p.takeStep(ctx, step, s)
	return wait, false, err
}

// gather reads the two sides. A work that is being deleted is read whole, for its delete
// option.
func (p *pass) gather(ctx context.Context) (State, error) {
	c, name := p.Controller, p.name
	s := State{Now: c.c.Clock.Now(), Grace: c.c.Grace, Applied: p.applied()}
	if s.Applied != nil {
		s.Unconfirmed = s.Applied.Annotations[workv1.AnnotationRemovalHeld]
	}
	s.OtherAgent = s.Applied != nil && s.Applied.Spec.AgentID != c.c.Applied.Identity.AgentID
	work, ours := c.c.Applied.Identity.Work(name)
	if !ours && s.Applied != nil {
		work = s.Applied.Spec.ManifestWorkName
	}
	known, there := c.c.Works.Get(work)
	switch {
	case ours && there:
		body, err := c.c.Works.Body(ctx, known)
		if err == nil {
			s.Work, s.WentBack = body, ledger.WentBack(s.Applied, ledger.SightingOf(body))
			return s, nil
		}
		if !missing(err) {
			return s, err
		}
	case !ours && s.Applied != nil:
		s.Successor = c.c.Applied.Successor(s.Applied)
		if there {
			if err := c.gatherMoved(ctx, &s, known); err != nil {
				return s, err
			}
		}
	case !there:
		s.Unreported = c.unreported(s.Applied, work)
	}
	return c.guard(s), nil
}

// gatherMoved adds what the hub shows of the work of a record of an earlier address.
func (c *Controller) gatherMoved(ctx context.Context, s *State, known ledger.Work) (err error) {
	s.Awaited = !known.Deleting && !recorded(s.Successor)
	s.WentBack = ledger.WentBack(s.Applied, known.Sighting())
	if s.Successor == nil {
		return nil
	}
	if s.Moved, err = c.c.Works.Body(ctx, known); missing(err) {
		return nil
	}
	return err
}

// unreported reports whether a work that the hub does not show was deleted before this agent had
// reported anything about it. A record that is older may hold what has run for long.
func (c *Controller) unreported(applied *workv1.AppliedManifestWork, work string) bool {
	if applied == nil {
		c.c.Works.Forget(work)
		return false
	}
	last, _ := ledger.LastSeen(applied)
	return c.c.Clock.Since(applied.CreationTimestamp.Time) < takenRecently && c.c.Works.Unreported(work, last.UID)
}

// applied returns the AppliedManifestWork, deleting as soon as this pass has deleted it.
func (p *pass) applied() *workv1.AppliedManifestWork {
	known := p.c.Applied.Get(p.name)
	if known == nil || known.UID != p.deleted || known.DeletionTimestamp != nil {
		return known
	}
	known = known.DeepCopy()
	known.DeletionTimestamp = &metav1.Time{Time: p.c.Clock.Now()}
	return known
}

// takeStep takes one step; a duration ends the pass until then.
func (p *pass) takeStep(ctx context.Context, step Step, s State) (time.Duration, error) {
	switch c := p.Controller; step {
	case Delete:
		return 0, p.end(ctx, s)
	case Empty:
		return p.empty(ctx, s)
	case Release:
		return 0, p.release(ctx, s.Work)
	case Stamp:
		return 0, c.stamp(ctx, s)
	case Unstamp:
		_, err := c.c.Applied.Record(ctx, s.Applied, s.Applied.Status.AppliedResources, nil)
		return 0, err
	case Hold:
		c.reportHeld(ctx, s)
		return holdEvery, nil
	case Mark:
		return c.markWentBack(ctx, s)
	case HoldDeletion:
		return holdEvery, c.holdDeletion(ctx, s)
	default: // Evict
		return p.evict(ctx, s)
	}
}

// end deletes the AppliedManifestWork, which keeps its finalizer.
func (p *pass) end(ctx context.Context, s State) error {
	if err := p.letGo(ctx, s); err != nil {
		return err
	}
	return p.delete(ctx, s.Applied)
}

// delete deletes an AppliedManifestWork, which the next step sees as deleting.
func (p *pass) delete(ctx context.Context, applied *workv1.AppliedManifestWork) error {
	err := p.c.Applied.Delete(ctx, applied)
	if err == nil {
		p.deleted = applied.UID
	}
	return err
}

// stamp records when the work was first missed.
func (c *Controller) stamp(ctx context.Context, s State) error {
	applied, err := c.suspect(ctx, s)
	if err != nil {
		return err
	}
	logr.FromContextOrDiscard(ctx).Info("The work is not on the hub; its objects are removed after the grace period",
		"work", applied.Spec.ManifestWorkName, "grace", c.c.Grace.String(), "objects", len(applied.Status.AppliedResources))
	_, err = c.c.Applied.Record(ctx, applied, applied.Status.AppliedResources, &s.Now)
	return err
}

// markDeleting sets the condition Deleting, with the reason why the deletion cannot go
// on, if there is one; held reports whether a person has to confirm the removal.
func (c *Controller) markDeleting(ctx context.Context, work *workv1.ManifestWork, cause string, held bool) error {
	message := workv1.MessageWorkDeleting
	if cause != "" {
		message += ", but " + cause
	}
	if had := apimeta.FindStatusCondition(work.Status.Conditions, workv1.ConditionDeleting); had != nil && had.Message == message {
		return nil
	}
	next := work.Status.DeepCopy()
	set := func(kind, reason, message string) {
		reconcile.SetCondition(&next.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message, ObservedGeneration: work.Generation,
		}, c.c.Clock.Now())
	}
	set(workv1.ConditionDeleting, workv1.ReasonWorkDeleting, message)
	apimeta.RemoveStatusCondition(&next.Conditions, workv1.ConditionRemovalHeld)
	if held {
		set(workv1.ConditionRemovalHeld, workv1.ReasonHubWentBack, cause)
	}
	_, err := c.c.Works.WriteStatus(ctx, work, *next)
	return reconcile.IgnoreNotFound(err)
}

// empty removes the objects, last rank first, and shortens the record to those that still
// exist; when none is left, it drops the finalizer.
func (p *pass) empty(ctx context.Context, s State) (time.Duration, error) {
	c := p.Controller
	recorded := slices.Clone(s.Applied.Status.AppliedResources)
	slices.SortStableFunc(recorded, func(a, b workv1.AppliedManifestResourceMeta) int {
		return cmp.Compare(manifest.RankResource(b.Resource), manifest.RankResource(a.Resource))
	})
	c.c.Track(s.Applied.Name, drift.Recorded(recorded))
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
		return 0, p.drop(ctx, s.Applied)
	}
	if len(pending) != len(recorded) {
		ledger.Sort(pending)
		if _, err := c.c.Applied.Record(ctx, s.Applied, pending, nil); err != nil {
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

// drop takes the finalizer off an AppliedManifestWork whose objects are gone. By now the watch
// usually shows that it is being deleted, in the version that the API server expects.
func (p *pass) drop(ctx context.Context, applied *workv1.AppliedManifestWork) error {
	newest := p.c.Applied.Get(p.name)
	if newest == nil || newest.UID != applied.UID || newest.DeletionTimestamp == nil {
		var err error
		if newest, err = p.c.Applied.Live(ctx, p.name); newest == nil || newest.UID != applied.UID {
			return err
		}
	}
	gone, err := p.c.Applied.Release(ctx, newest)
	if gone {
		p.gone = newest.UID
	}
	return err
}

// pendingAfter grows with the time that a work has been waiting.
func pendingAfter(waited time.Duration) time.Duration {
	return min(max(waited/4, pendingFirst), pendingLast)
}

// inhabited returns why a namespace that would be deleted stays: other works have objects
// in it.
func (c *Controller) inhabited(s State, r apply.Removal) string {
	if r.Keep || !apply.IsNamespace(apply.RecordedID(r.Recorded)) {
		return ""
	}
	return c.c.Applied.Inhabited(r.Recorded.Name, s.Applied.Spec.ManifestWorkName, c.c.Works.Ending)
}

// letGo removes the owner references of the work from the objects that its delete option
// keeps, before anything is deleted: after that the work may vanish from the hub, and its
// delete option with it, for example when someone removes its finalizer.
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

// remove takes one step to remove an object. Where the agent itself may not, it acts as
// the executor that could delete the object when it was applied.
func (c *Controller) remove(ctx context.Context, s State, removal apply.Removal) (pending bool, err error) {
	r, applier := removal.Recorded, c.c.Applier
	removal.Wanted = c.c.Works.Claims.Wanted(s.Applied.Spec.ManifestWorkName, r)
	account, err := executorOf(s)
	switch {
	case err != nil:
		// An invalid executor never applied anything.
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

// executorOf returns the account that removes the objects where the agent may not: the
// executor of the work or, if the work is gone, the one in the record.
func executorOf(s State) (executor.Account, error) {
	if s.Work == nil {
		return executor.OfUser(s.Applied.Annotations[workv1.AnnotationExecutor]), nil
	}
	return executor.Of(s.Work.Spec.Executor)
}

// removal says how one object is removed, according to the current delete option.
func (c *Controller) removal(s State, r workv1.AppliedManifestResourceMeta) apply.Removal {
	// Objects that another record took over stay: it may have recorded them without
	// having set its owner reference yet, and may be unable to.
	out := apply.Removal{Recorded: r, Owner: apply.OwnerOf(s.Applied), Keep: ledger.Holds(s.Successor, r)}
	id := apply.RecordedID(r)
	if out.Keep && (s.Moved == nil || apply.Owned(s.Moved.Spec.DeleteOption, id)) {
		out.Heir = apply.OwnerOf(s.Successor)
	}
	if s.Work == nil || s.Work.DeletionTimestamp == nil {
		return out
	}
	out.Keep = !apply.Owned(s.Work.Spec.DeleteOption, id)
	options, err := apply.OptionsFor(&s.Work.Spec, id)
	out.Claimed = !out.Keep && err == nil && restored(s.Work) && options.Strategy != workv1.UpdateStrategyTypeReadOnly
	return out
}

// release drops the finalizer of a work whose AppliedManifestWork is gone. Its absence from
// the watch is not enough: this pass has taken its last finalizer, or a live read shows it.
func (p *pass) release(ctx context.Context, work *workv1.ManifestWork) error {
	if p.gone == "" {
		live, err := p.c.Applied.Live(ctx, p.name)
		if err != nil || live != nil {
			return err
		}
	}
	return reconcile.IgnoreNotFound(p.c.Works.Release(ctx, work))
}

// missing reports whether the hub answered that there is no such work. A server that does
// not serve the API, or runs in the hub's place, does not count.
func missing(err error) bool { return apierrors.IsNotFound(err) && !apply.IsNotServed(err) }

// recorded reports whether a pass over the work has recorded its objects.
func recorded(record *workv1.AppliedManifestWork) bool {
	return record != nil && len(record.Status.AppliedResources) > 0
}

// evict deletes the AppliedManifestWork once the hub itself has answered that there is no
// such work. One of an earlier address may be deleted when the hub has the work and its
// objects are recorded under the current address.
func (p *pass) evict(ctx context.Context, s State) (time.Duration, error) {
	c := p.Controller
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
	return 0, p.delete(ctx, s.Applied)
}
