// SPDX-License-Identifier: Apache-2.0

package finalize

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/go-logr/logr"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/drift"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/ledger"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/manifest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

const (
	// maxSteps bounds the steps of one pass; there are six from a work to
	// nothing.
	maxSteps = 8
	// pendingFirst and pendingLast bound how soon objects that wait for their
	// finalizers are looked at again without an event (work.md section 6.5).
	pendingFirst = 500 * time.Millisecond
	pendingLast  = time.Minute
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
	// Track tells which objects shall wake the work when they go.
	Track func(work string, objects []drift.Object)
	// Grace is how long the objects of a work that the hub forgot are kept.
	Grace time.Duration
	// Clock gives the time of passes.
	Clock clock.PassiveClock
}

// Controller ends works. One work must not be reconciled twice at a time.
type Controller struct{ c Config }

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
	s.OtherAgent = s.Applied != nil && s.Applied.Spec.AgentID != c.c.Applied.Identity.AgentID
	work, ours := c.c.Applied.Identity.Work(name)
	if !ours {
		return s, nil
	}
	known, there := c.c.Works.Get(work)
	if !there {
		return s, nil
	}
	body, err := c.c.Works.Body(ctx, known)
	if missing(err) {
		return s, nil
	}
	s.Work = body
	return s, err
}

// take takes one step; a duration ends the pass until then.
func (c *Controller) take(ctx context.Context, step Step, s State) (time.Duration, error) {
	var err error
	switch step {
	case MarkDeleting:
		return 0, c.markDeleting(ctx, s.Work)
	case Delete:
		_, err = c.c.Applied.Delete(ctx, s.Applied)
	case Empty:
		return c.empty(ctx, s)
	case Release:
		return c.release(ctx, s.Work)
	case Stamp:
		logr.FromContextOrDiscard(ctx).Info("Work is not on the hub and its objects are removed after the grace",
			"work", s.Applied.Spec.ManifestWorkName, "grace", c.c.Grace.String(), "objects", len(s.Applied.Status.AppliedResources))
		_, err = c.c.Applied.Record(ctx, s.Applied, s.Applied.Status.AppliedResources, &s.Now)
	case Unstamp:
		_, err = c.c.Applied.Record(ctx, s.Applied, s.Applied.Status.AppliedResources, nil)
	case Evict:
		return c.evict(ctx, s)
	}
	return 0, err
}

func (c *Controller) markDeleting(ctx context.Context, work *workv1.ManifestWork) error {
	next := work.Status.DeepCopy()
	reconcile.SetCondition(&next.Conditions, metav1.Condition{
		Type: workv1.ConditionDeleting, Status: metav1.ConditionTrue, Reason: workv1.ReasonWorkDeleting,
		Message: workv1.MessageWorkDeleting, ObservedGeneration: work.Generation,
	}, c.c.Clock.Now())
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
	for _, r := range recorded {
		waits, err := c.c.Applier.Remove(ctx, c.removal(s, r))
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
	return pendingAfter(s.Now.Sub(s.Applied.DeletionTimestamp.Time)), errors.Join(errs...)
}

// removal says how one object goes, by the delete option as it stands.
func (c *Controller) removal(s State, r workv1.AppliedManifestResourceMeta) apply.Removal {
	out := apply.Removal{Recorded: r, Owner: apply.OwnerOf(s.Applied)}
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

// evict deletes the AppliedManifestWork once the hub itself has said that there
// is no such work. Works of another hub address are not asked for.
func (c *Controller) evict(ctx context.Context, s State) (time.Duration, error) {
	if work, ours := c.c.Applied.Identity.Work(s.Applied.Name); ours {
		_, err := c.c.Works.Live(ctx, work)
		switch {
		case err == nil:
			return conflictRetry, nil
		case !missing(err):
			return 0, err
		}
	}
	_, err := c.c.Applied.Delete(ctx, s.Applied)
	return 0, err
}
