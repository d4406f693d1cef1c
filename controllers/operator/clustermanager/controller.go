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
	// Split is nil in the compact layout.
	Split *Split
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
	c.config.Policy.Aliases = servingAliases()
	var err error
	if c.installed, err = installedObjects(config); err != nil {
		return err
	}
	kept, err := newParts(config, collections, c.log)
	if err != nil {
		return err
	}
	if c.assembly, err = newAssembly(config, c.leading, collections, c.log); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wake := func() {
		c.queue.Add(reconcile.Key{Name: hub.Name})
		kept.wake()
		c.assembly.wake()
	}
	if c.assembly != nil {
		c.assembly.changed = wake
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
	for _, run := range slices.Concat(c.leading.runs(), kept.runs(), c.assembly.runs()) {
		wg.Go(func() { _ = run(ctx) })
	}
	for _, synced := range append(c.leading.waits(), collections.waits()...) {
		if err := synced(ctx); err != nil {
			return ignoreStopped(ctx, err)
		}
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
