// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"context"
	"errors"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/internal/certs"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Name is the loop's id.
const Name = "clustermanager.compact"

// fieldManager is that of the loop's applies.
const fieldManager = "ocm." + Name

// definitionNames are the APIs of the hub in the order in which they are applied.
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
	// Run starts the loops with these features, or restarts them when they run
	// with others.
	Run(f Features)
	// Stop ends them and waits until they have ended.
	Stop()
	// Err is nil while they work, else it tells what keeps them from it.
	Err() error
	// OnChange registers a function to call when Err changes.
	OnChange(func())
}

// Config of the controller.
type Config struct {
	// Client writes.
	Client dynamic.Interface
	// Clock tells the time of certificates and conditions.
	Clock clock.PassiveClock
	// Version is the release of this process.
	Version string
	// Policy of the certificates.
	Policy certs.Policy
	// Serving is nil once this process serves admission and conversion;
	// OnServing registers a function to call when it does.
	Serving   func() error
	OnServing func(func())
	// Loops are started and stopped here.
	Loops Loops
	// Labels and SyncLabels are those of State.
	Labels     map[string]string
	SyncLabels bool
}

// Controller keeps one hub as its ClusterManager says. It belongs to the
// leader.
type Controller struct {
	config      Config
	collections *Collections
	leading     *leading
	exec        *reconcile.Executor
	queue       *reconcile.Queue
	log         logr.Logger

	// Only the one worker touches these.
	made    *certs.Set
	bundle  string
	sight   manager.Sight
	intents map[string]string
	// conversions are the parts of the definitions that depend on the authorities.
	conversions map[string]map[string]any
	installed   []operatorv1.RelatedResourceMeta
}

// Lead runs the controller until ctx ends, and stops the loops then. The
// collections must run already.
func Lead(ctx context.Context, config Config, collections *Collections) error {
	c := &Controller{
		config: config, collections: collections, leading: newLeading(config.Client, logr.FromContextOrDiscard(ctx)),
		exec: reconcile.NewExecutor(config.Client, Name, config.Clock), queue: reconcile.NewQueue(Name),
		log: logr.FromContextOrDiscard(ctx).WithName(Name), intents: map[string]string{}, conversions: map[string]map[string]any{},
	}
	c.config.Policy.Aliases = placementAliases()
	var err error
	if c.installed, err = installed(config.Version); err != nil {
		return err
	}
	kept, err := newParts(config, collections, c.log)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wake := func() {
		c.queue.Add(reconcile.Key{Name: hub.Name})
		kept.wake()
	}
	c.leading.onChange(func(reconcile.Key) { wake() })
	kept.onChange(wake)
	stopManager := collections.Subscribe(wake)
	defer stopManager()
	config.OnServing(wake)
	config.Loops.OnChange(wake)
	defer config.Loops.Stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for _, run := range append(c.leading.runs(), kept.runs()...) {
		wg.Go(func() { _ = run(ctx) })
	}
	for _, synced := range append(c.leading.waits(), collections.waits()...) {
		if err := synced(ctx); err != nil {
			return ended(ctx, err)
		}
	}
	wake()
	return reconcile.Loop{Name: Name, Reconcile: c.Reconcile}.Run(ctx, c.queue)
}

// ended hides errors that only say that the run was stopped.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the error is that of the stop
	}
	return err
}

// Reconcile brings the hub nearer to what its ClusterManager says.
func (c *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	live, ok := c.collections.managers.Get(key)
	if !ok {
		// Without a ClusterManager there is no hub to run.
		c.config.Loops.Stop()
		c.made = nil
		clear(c.intents)
		return reconcile.Result{}, nil
	}
	cm := live.DeepCopy()
	state, err := c.gather(ctx, cm)
	if err != nil && cm.DeletionTimestamp == nil {
		return reconcile.Result{}, err
	}
	decision := Decide(state)
	if decision.Run {
		c.config.Loops.Run(decision.Features)
	} else {
		c.config.Loops.Stop()
	}
	result, execErr := c.exec.Execute(ctx, cm, decision.Plan)
	return result, errors.Join(err, execErr)
}

// all runs everything until ctx ends.
func all(ctx context.Context, run []func(context.Context) error) error {
	var wg sync.WaitGroup
	errs := make([]error, len(run))
	for i, r := range run {
		wg.Go(func() { errs[i] = r(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
