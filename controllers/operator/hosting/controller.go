// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/teardown"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Name is the id of the loop.
const Name = "clustermanager.hosting"

const (
	// workers is how many hubs are served concurrently; one may not answer.
	workers = 4
	// patience is how long requests to a hub may take in one pass.
	patience = 30 * time.Second
	// syncCheck is how often to look whether everything has been read, hubCheck whether a hub can be
	// reached again, and endCheck whether something is gone.
	syncCheck, hubCheck, endCheck = 100 * time.Millisecond, 10 * time.Second, time.Second
)

// Config configures the loop.
type Config struct {
	// Client reads and writes the objects of this cluster.
	Client dynamic.Interface
	Clock  clock.PassiveClock
	// Version is the release of this process, and UserAgent that of requests to hubs.
	Version, UserAgent string
	// KeepAPIs is described at clustermanager.Config.
	KeepAPIs bool
	Log      logr.Logger
}

// Controller is the loop. Create it with New and run it once.
type Controller struct {
	config   Config
	managers *watch.Collection[managed]
	execute  *reconcile.Executor
	queue    *reconcile.Queue

	// here are the namespaces of the hubs, and hubs their clusters, by ClusterManager.
	here shared.Held[*here]
	hubs shared.Held[*remote]
}

// New returns a Controller that is ready to run.
func New(o Config) *Controller {
	c := &Controller{
		config: o, execute: reconcile.NewExecutor(o.Client, Name, o.Clock), queue: reconcile.NewQueue(Name),
	}
	c.managers = watch.New(watch.Options[managed]{
		Client: o.Client, Resource: managersResource, FieldSelector: "metadata.name!=" + hub.Name, Log: o.Log, Keep: keepManaged,
	})
	c.managers.OnChange(c.queue.Add)
	return c
}

// managed is what is cached of a ClusterManager; problem is why its spec cannot be read.
type managed struct {
	*operatorv1.ClusterManager
	problem string
}

func keepManaged(u *unstructured.Unstructured) (managed, bool) {
	u.SetManagedFields(nil)
	cm, problem, err := shared.Decode[operatorv1.ClusterManager](u)
	return managed{cm, problem}, err == nil
}

// keepManager keeps the ClusterManager of a hub, which the loop writes itself.
func keepManager(u *unstructured.Unstructured) (*operatorv1.ClusterManager, bool) {
	cm, err := typed.FromUnstructured[operatorv1.ClusterManager](u)
	if err != nil {
		return nil, false
	}
	cm.ManagedFields = nil
	return cm, true
}

// Run serves the ClusterManagers until ctx is done.
func (c *Controller) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer c.here.End()
	defer c.hubs.End()
	defer running.Wait()
	running.Go(func() { _ = c.managers.Run(ctx) })
	return reconcile.Loop{Name: Name, Workers: workers, Reconcile: c.Reconcile}.Run(ctx, c.queue)
}

// Reconcile serves one ClusterManager.
func (c *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	is, ok := c.managers.Get(key)
	if !ok {
		c.here.Set(key.Name, nil)
		c.hubs.Set(key.Name, nil)
		return reconcile.Result{}, nil
	}
	cm := is.ClusterManager
	s, known, err := c.gather(ctx, cm, is.problem)
	switch {
	case err != nil:
		return c.fail(ctx, s, err)
	case !known:
		return reconcile.Result{RequeueAfter: syncCheck}, nil
	}
	p := Decide(s)
	if p.End != nil {
		if err := teardown.EndDeployment(ctx, c.config.Client, cm.Name, hub.Name, p.End.UID); err != nil {
			return c.fail(ctx, s, err)
		}
	}
	if p.Clean {
		if s.Waiting, err = c.clean(ctx, cm.Name); err != nil {
			s.Hub.Problem = away + watch.Reason(err)
		}
		s.Cleaned = err == nil && s.Waiting == ""
		p = Decide(s)
	}
	return c.carryOut(ctx, s, p)
}

// fail tells an error that ends a pass; what runs stays as it is.
func (c *Controller) fail(ctx context.Context, s State, err error) (reconcile.Result, error) {
	_, told := c.execute.Execute(ctx, s.ClusterManager, reconcile.Plan{
		Object: s.failed(operatorv1.ReasonRuntimeResourceApplyFailed, shared.Explain(err)),
	})
	return reconcile.Result{}, errors.Join(err, told)
}

// carryOut writes the stages of a plan in their order; a stage that fails keeps the later ones
// back.
func (c *Controller) carryOut(ctx context.Context, s State, p Plan) (reconcile.Result, error) {
	var result reconcile.Result
	for _, stage := range p.Stages {
		next, err := c.carryOutStage(ctx, s, stage)
		if err != nil {
			_, told := c.execute.Execute(ctx, s.ClusterManager, reconcile.Plan{Object: s.failed(stage.Reason, shared.Explain(err))})
			return reconcile.Result{}, errors.Join(err, told)
		}
		result = result.Sooner(next)
	}
	next, err := c.execute.Execute(ctx, s.ClusterManager, p.Plan)
	return result.Sooner(next), err
}

func (c *Controller) carryOutStage(ctx context.Context, s State, stage Stage) (reconcile.Result, error) {
	name := s.ClusterManager.Name
	if !stage.Hub && stage.Token == nil {
		return c.execute.Execute(ctx, s.ClusterManager, reconcile.Plan{Writes: stage.Writes})
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r := c.hubs.Get(name)
	if stage.Token == nil {
		result, err := r.execute.Execute(ctx, s.ClusterManager, reconcile.Plan{Writes: stage.Writes, Order: reconcile.Strict})
		if stage.Await && apierrors.IsNotFound(err) {
			return reconcile.Result{RequeueAfter: syncCheck}, nil
		}
		return result, err
	}
	u, err := stage.Token.Request(ctx, r.link.Client, c.config.Clock.Now())
	if err != nil {
		return reconcile.Result{}, err
	}
	u.SetNamespace(name)
	u.SetName(tokenSecret)
	u.SetLabels(owned(name))
	return c.execute.Execute(ctx, s.ClusterManager, reconcile.Plan{Writes: []reconcile.Write{reconcile.Apply{Object: u}}})
}

// clean removes the hub as far as it can without waiting, and returns what it waits for.
func (c *Controller) clean(ctx context.Context, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return teardown.HubWithoutProcess(ctx, c.hubs.Get(name).link.Client, c.config.KeepAPIs)
}
