// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/internal/certs"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/teardown"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Name is the id of the loop. It is the same in both layouts, so that one takes over what the
// other applied.
const Name = "clustermanager.compact"

// fieldManager is the field manager of the loop's applies.
const fieldManager = "ocm." + Name

// definitionNames lists the CustomResourceDefinitions of the hub in the order in which they
// are applied.
var definitionNames = []string{
	"clustermanagementaddons.addon.open-cluster-management.io",
	"managedclusters.cluster.open-cluster-management.io",
	"managedclustersets.cluster.open-cluster-management.io",
	"manifestworks.work.open-cluster-management.io",
	"manifestworkreplicasets.work.open-cluster-management.io",
	"managedclusteraddons.addon.open-cluster-management.io",
	"managedclustersetbindings.cluster.open-cluster-management.io",
	"placements.cluster.open-cluster-management.io",
	"addondeploymentconfigs.addon.open-cluster-management.io",
	"addontemplates.addon.open-cluster-management.io",
	"placementdecisions.cluster.open-cluster-management.io",
	"addonplacementscores.cluster.open-cluster-management.io",
}

// Loops are the control loops of the hub.
type Loops interface {
	// Run starts the loops with these features, or restarts them if they run with different
	// ones.
	Run(f Features)
	// Stop stops the loops and waits until they have ended.
	Stop()
	// Err returns nil while the loops work, otherwise what prevents it.
	Err() error
	// OnChange registers a function that is called when Err changes.
	OnChange(func())
}

// Config configures the controller.
type Config struct {
	// Client reads and writes the objects of the hub.
	Client dynamic.Interface
	// Clock is the time source for certificates and conditions.
	Clock clock.PassiveClock
	// Version is the release of this process.
	Version string
	// Policy is the certificate policy.
	Policy certs.Policy
	// Serving returns nil once this process serves admission and conversion; OnServing
	// registers a function that is called when it does.
	Serving   func() error
	OnServing func(func())
	// Authority returns why the API of managed clusters answers nobody, although its gate is on: the
	// hub's API server cannot be recognized. known is false while the gate is off, and until that is
	// read. OnAuthority registers a function that is called when it may have changed.
	Authority   func() (problem error, known bool)
	OnAuthority func(func())
	// Split is nil in the compact layout.
	Split *Split
	// Hosted makes it the process of a hub that runs on another cluster: Services do not reach it,
	// and the operator there ends it before it removes the hub.
	Hosted bool
	// KeepAPIs leaves the APIs and all objects of users in place when the hub is removed; each
	// definition says so.
	KeepAPIs bool
	// Loops are the control loops that the controller starts and stops in the compact layout.
	Loops Loops
	// Labels and SyncLabels are described at State.
	Labels     map[string]string
	SyncLabels bool
}

// Controller keeps one hub as its ClusterManager specifies. Only the leader runs it.
type Controller struct {
	config      Config
	collections *Collections
	leading     *leading
	exec        *reconcile.Executor
	queue       *reconcile.Queue
	log         logr.Logger

	// Only the single worker accesses these fields.
	made *certs.Set
	// converter is the client of conversion, as far as intents depend on it.
	converter string
	sight     manager.Sight
	intents   map[string]string
	// conversions holds the parts of the definitions that depend on the CA bundle.
	conversions map[string]map[string]any
	installed   []operatorv1.RelatedResourceMeta
	assembly    *assembly
	// swept is true once nothing is left of the split layout.
	swept bool
	// removal is that of the ClusterManager that is being deleted; nil while none is.
	removal *teardown.HubRemoval
	kept    *parts
	unread  unread
}

// Lead runs the controller until ctx is done, then stops the loops. The collections must
// already be running.
func Lead(ctx context.Context, config Config, collections *Collections) error {
	if config.Split != nil {
		config.Loops = elsewhere{}
	}
	c := &Controller{
		config: config, collections: collections, leading: newLeading(config.Client, logr.FromContextOrDiscard(ctx)),
		exec: reconcile.NewExecutor(config.Client, Name, config.Clock), queue: reconcile.NewQueue(Name),
		log: logr.FromContextOrDiscard(ctx).WithName(Name), intents: map[string]string{}, conversions: map[string]map[string]any{},
	}
	var err error
	if c.installed, err = installedObjects(config); err != nil {
		return err
	}
	if c.kept, err = newParts(config, collections, c.log); err != nil {
		return err
	}
	if c.assembly, err = newAssembly(config, c.leading, collections, c.log); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wake := func() {
		c.queue.Add(reconcile.Key{Name: hub.Name})
		c.kept.wake()
		c.assembly.wake()
	}
	c.assembly.changed, c.kept.outcome.changed = wake, wake
	c.leading.onChange(func(reconcile.Key) { wake() })
	c.kept.onChange(wake)
	onOutcome(slices.Concat(c.leading.list(), c.assembly.inputs, c.kept.list()), wake)
	stopManager := collections.Subscribe(wake)
	defer stopManager()
	config.OnServing(wake)
	config.OnAuthority(wake)
	config.Loops.OnChange(wake)
	defer config.Loops.Stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for _, run := range slices.Concat(runsOf(c.leading.list()), c.kept.runs(), c.assembly.runs()) {
		wg.Go(func() { _ = run(ctx) })
	}
	if err := collections.managers.WaitSynced(ctx); err != nil {
		return ignoreStopped(ctx, err)
	}
	wake()
	return reconcile.Loop{Name: Name, Reconcile: c.Reconcile}.Run(ctx, c.queue)
}

// ignoreStopped drops an error that only reports that ctx is done.
func ignoreStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the error is that of the stop
	}
	return err
}

// Reconcile brings the hub closer to what its ClusterManager specifies.
func (c *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	live, ok := c.collections.managers.Get(key)
	if !ok {
		// Without a ClusterManager there is no hub to run.
		c.config.Loops.Stop()
		c.made = nil
		clear(c.intents)
		return reconcile.Result{}, nil
	}
	cm := live.ClusterManager.DeepCopy()
	if c.config.Hosted {
		cm.DeletionTimestamp = nil
	}
	if cm.DeletionTimestamp != nil {
		return c.remove(ctx, cm)
	}
	needed := slices.Concat(c.leading.list(), c.collections.list())
	wait, problem := c.unread.look(slices.Concat(needed, c.assembly.inputs, c.kept.list()), c.config.Clock.Now())
	switch {
	case !isRead(needed):
		return c.fail(ctx, cm, problem, reconcile.Result{RequeueAfter: readCheck})
	case live.blank:
		return c.fail(ctx, cm, errors.New(live.problem), reconcile.Result{})
	case live.problem != "":
		problem = errors.Join(errors.New(live.problem), problem)
	}
	state, err := c.gather(ctx, cm)
	if err != nil {
		_, told := c.fail(ctx, cm, err, reconcile.Result{})
		return reconcile.Result{}, errors.Join(err, told)
	}
	state.Faulty = errors.Join(state.Faulty, problem)
	decision := Decide(state)
	if decision.Run {
		c.config.Loops.Run(decision.Features)
	} else {
		c.config.Loops.Stop()
	}
	result, err := c.exec.Execute(ctx, cm, decision.Plan)
	return result.Sooner(reconcile.Result{RequeueAfter: wait}), err
}

// remove continues the removal of the hub. It does not wait for the caches: the right to read the
// hub's namespace goes with the namespace, and a process that starts after that has to finish the
// removal all the same.
func (c *Controller) remove(ctx context.Context, cm *operatorv1.ClusterManager) (reconcile.Result, error) {
	state, err := c.gather(ctx, cm)
	result, execErr := c.exec.Execute(ctx, cm, Decide(state).Plan)
	return result, errors.Join(err, execErr)
}

// fail tells why nothing can be done; what runs goes on. Without a problem it writes nothing.
func (c *Controller) fail(ctx context.Context, cm *operatorv1.ClusterManager, problem error, after reconcile.Result) (reconcile.Result, error) {
	if problem == nil {
		return after, nil
	}
	next := cm.DeepCopy()
	setFaulty(State{Now: c.config.Clock.Now(), Faulty: problem}, next)
	result, err := c.exec.Execute(ctx, cm, reconcile.Plan{Object: next})
	return result.Sooner(after), err
}

// runsOf returns what keeps the collections current.
func runsOf(list []followed) []func(context.Context) error {
	var out []func(context.Context) error
	for _, one := range list {
		out = append(out, one.Run)
	}
	return out
}

// runAll runs all functions until ctx is done.
func runAll(ctx context.Context, run []func(context.Context) error) error {
	var wg sync.WaitGroup
	errs := make([]error, len(run))
	for i, r := range run {
		wg.Go(func() { errs[i] = r(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
