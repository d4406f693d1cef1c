// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/settings"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/access"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/teardown"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// Name is the id of the loop.
const Name = "operator.agents"

// operatorDeployment is the Deployment in which an operator of Klusterlets runs alone.
const operatorDeployment = "klusterlet"

const (
	// workers is how many Klusterlets are reconciled concurrently; one may wait for its hub.
	workers = 4
	// syncCheck is how often to look whether everything has been read.
	syncCheck = 100 * time.Millisecond
	// endCheck is how often to look whether the processes of an agent have ended.
	endCheck = time.Second
)

// Config configures a Controller.
type Config struct {
	// Client is a client of the cluster that the loop runs on.
	Client dynamic.Interface
	// Own is the Klusterlet that this process serves in itself; empty for an operator.
	Own string
	// Namespace is where this process runs; Image is what it runs when its Deployment cannot be
	// found.
	Namespace, Image string
	// SyncLabels copies the labels of a Klusterlet to what is made for its agent, and NoAddOns
	// makes no namespace of add-ons.
	SyncLabels, NoAddOns bool
	// Klusterlets are those of NewKlusterlets; their owner runs the collection after New.
	Klusterlets *watch.Collection[settings.Seen]
	// Definitions are the CustomResourceDefinitions to apply (config/crd.Agent).
	Definitions []*unstructured.Unstructured
	// Version is the version of this program; UserAgent that of requests to hubs.
	Version, UserAgent string
	Clock              clock.WithTicker
	Log                logr.Logger
}

// Controller is the loop. Create it with New and run it once.
type Controller struct {
	config  Config
	queue   *reconcile.Queue
	execute *reconcile.Executor
	// changed holds one signal: that the Klusterlets changed.
	changed chan struct{}

	mu   sync.Mutex
	view *view
	// written holds the generation of each Deployment as this loop left it.
	written map[reconcile.Key]int64
	askers  map[string]*askers
	// remotes are the managed clusters of hosted agents, by Klusterlet.
	remotes shared.Held[*remote]
}

// askers ask the hub of one Klusterlet.
type askers struct{ bootstrap, hub access.Asker }

// New returns a Controller that is ready to run.
func New(o Config) *Controller {
	c := &Controller{
		config: o, queue: reconcile.NewQueue(Name), execute: reconcile.NewExecutor(o.Client, Name, o.Clock), changed: make(chan struct{}, 1),
		written: map[reconcile.Key]int64{}, askers: map[string]*askers{},
	}
	c.execute.OnWrite(func(at reconcile.Target, live *unstructured.Unstructured) {
		if at.Resource == deploymentsResource && live != nil {
			c.mu.Lock()
			c.written[reconcile.Key{Namespace: at.Namespace, Name: at.Name}] = live.GetGeneration()
			c.mu.Unlock()
		}
	})
	o.Klusterlets.OnChange(func(key reconcile.Key) {
		c.queue.Add(key)
		select {
		case c.changed <- struct{}{}:
		default:
		}
	})
	return c
}

// Run serves the Klusterlets until ctx is done. It watches nothing else while there are none.
func (c *Controller) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer c.remotes.End()
	defer running.Wait()
	running.Go(func() { c.follow(ctx) })
	return reconcile.Loop{Name: Name, Workers: workers, Reconcile: c.Reconcile}.Run(ctx, c.queue)
}

// follow keeps the view while there are Klusterlets.
func (c *Controller) follow(ctx context.Context) {
	end := func() {}
	defer func() { end() }()
	for {
		switch v := c.current(); {
		case c.config.Klusterlets.Len() > 0 && v == nil:
			end = c.look(ctx)
		case c.config.Klusterlets.Len() == 0 && v != nil:
			end()
			end = func() {}
		}
		select {
		case <-c.changed:
		case <-ctx.Done():
			return
		}
	}
}

// look starts a view; the returned function ends it.
func (c *Controller) look(ctx context.Context) func() {
	ctx, cancel := context.WithCancel(ctx)
	v := c.newView()
	var running sync.WaitGroup
	for _, one := range v.collections() {
		running.Go(func() { _ = one.Run(ctx) })
	}
	c.setView(v)
	c.wakeAll()
	return func() {
		c.setView(nil)
		cancel()
		running.Wait()
	}
}

func (c *Controller) current() *view {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.view
}

func (c *Controller) setView(v *view) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.view = v
}

func (c *Controller) wake(klusterlet string) { c.queue.Add(reconcile.Key{Name: klusterlet}) }

func (c *Controller) wakeAll() {
	for _, is := range c.config.Klusterlets.List() {
		c.wake(is.Klusterlet.Name)
	}
}

// Others returns the Klusterlets whose agents manage this cluster and that are not being deleted,
// except for the one with that name.
func Others(klusterlets *watch.Collection[settings.Seen], except string) []string {
	var out []string
	for _, is := range klusterlets.List() {
		if k := is.Klusterlet; k.DeletionTimestamp == nil && k.Name != except && !k.IsHosted() {
			out = append(out, is.Klusterlet.Name)
		}
	}
	return out
}

// Reconcile serves one Klusterlet, unless another process does.
func (c *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	is, ok := c.config.Klusterlets.Get(key)
	if !ok {
		c.mu.Lock()
		delete(c.askers, key.Name)
		c.mu.Unlock()
		c.remotes.Set(key.Name, nil)
		return reconcile.Result{}, nil
	}
	v := c.current()
	if v == nil {
		return reconcile.Result{}, nil
	}
	problem, known := shared.Problem(v.collections())
	if !known {
		return c.wait(ctx, is.Klusterlet, problem)
	}
	if !c.isElected(v) || slices.Contains(v.ownRun(), key.Name) {
		return reconcile.Result{}, nil
	}
	s, known, err := c.gather(ctx, v, is)
	if err != nil {
		return c.fail(ctx, is.Klusterlet, operatorv1.ReasonKlusterletApplyFailed, err)
	}
	if !known {
		return reconcile.Result{RequeueAfter: syncCheck}, nil
	}
	if s.Lease != "" {
		return reconcile.Result{RequeueAfter: leaseCheck}, nil
	}
	p := Decide(s)
	if p.Remove {
		return c.remove(ctx, s, p)
	}
	return c.carryOut(ctx, is.Klusterlet, p)
}

// wait reports that the loop cannot read what it needs to, for example without the rights.
func (c *Controller) wait(ctx context.Context, k *operatorv1.Klusterlet, problem string) (reconcile.Result, error) {
	if problem == "" {
		return reconcile.Result{RequeueAfter: syncCheck}, nil
	}
	s := State{Now: c.config.Clock.Now(), Klusterlet: k}
	result, err := c.execute.Execute(ctx, k, reconcile.Plan{
		Object: s.failed(operatorv1.ReasonKlusterletApplyFailed, "The operator cannot serve this Klusterlet: "+problem),
	})
	return result.Sooner(reconcile.Result{RequeueAfter: endCheck}), err
}

// fail tells an error that ends a pass; what runs stays as it is.
func (c *Controller) fail(ctx context.Context, k *operatorv1.Klusterlet, reason string, err error) (reconcile.Result, error) {
	s := State{Now: c.config.Clock.Now(), Klusterlet: k}
	_, told := c.execute.Execute(ctx, k, reconcile.Plan{Object: s.failed(reason, shared.Explain(err))})
	return reconcile.Result{}, errors.Join(err, told)
}

// carryOut writes the stages of a plan in their order; a stage that fails keeps the later ones
// back.
func (c *Controller) carryOut(ctx context.Context, k *operatorv1.Klusterlet, p Plan) (reconcile.Result, error) {
	var result reconcile.Result
	for _, stage := range p.Stages {
		next, err := c.carryOutStage(ctx, k, stage)
		if err != nil {
			return c.fail(ctx, k, stage.Reason, err)
		}
		result = result.Sooner(next)
	}
	next, err := c.execute.Execute(ctx, k, p.Plan)
	return result.Sooner(next), err
}

func (c *Controller) carryOutStage(ctx context.Context, k *operatorv1.Klusterlet, stage Stage) (reconcile.Result, error) {
	switch {
	case len(stage.tokens) > 0:
		return reconcile.Result{}, c.issue(ctx, k, stage.tokens)
	case stage.Managed:
		return c.onManaged(ctx, k, stage.Writes)
	}
	return c.execute.Execute(ctx, k, reconcile.Plan{Writes: stage.Writes})
}

// remove ends the processes of an agent, then removes everything else of it: first on the managed
// cluster of a hosted one.
func (c *Controller) remove(ctx context.Context, s State, p Plan) (reconcile.Result, error) {
	for _, d := range p.End {
		if err := teardown.EndDeployment(ctx, c.config.Client, d.Key.Namespace, d.Key.Name, d.UID); err != nil {
			return c.fail(ctx, s.Klusterlet, operatorv1.ReasonManagementClusterResourceApplyFailed, err)
		}
	}
	if p.Await {
		return reconcile.Result{RequeueAfter: endCheck}, nil
	}
	k := s.Klusterlet
	switch {
	case p.Managed:
		if err := c.cleanManaged(ctx, k); err != nil {
			s.Managed.Problem = "The managed cluster cannot be cleaned up: " + watch.Reason(err)
			p = Decide(s)
		}
	case !p.Left:
		if err := teardown.Operated(ctx, c.config.Client, k, p.Namespace); err != nil {
			return c.fail(ctx, k, operatorv1.ReasonManagementClusterResourceApplyFailed, err)
		}
	}
	return c.execute.Execute(ctx, k, p.Plan)
}
