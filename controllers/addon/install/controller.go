// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/instance"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/selection"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Name is the id of the loop, and Manager the field manager of its applies, derived from it.
const (
	Name    = "addon.install"
	Manager = "ocm." + Name
)

const workers = 2

// settle is how long changes of instances are collected before a pass: each is reported
// separately when an add-on is installed on a thousand clusters.
const settle = 200 * time.Millisecond

// Config configures the loop.
type Config struct {
	// Client writes the instances.
	Client dynamic.Interface
	// Clock is the time source of the executor.
	Clock clock.PassiveClock
	// Instances and AddOns are the indexes of the add-on loops. Instances must have been
	// created with Manager.
	Instances *instance.Index
	AddOns    *selection.Index
}

// Controller is the loop. Its keys are names of ClusterManagementAddOns.
type Controller struct {
	Config
	reader manager.Reader
	exec   *reconcile.Executor
	news   *news
}

// Register adds the loop to m.
func Register(m *manager.Manager, c Config) {
	controller := &Controller{Config: c, reader: m.Reader(), exec: reconcile.NewExecutor(c.Client, Name, c.Clock), news: newNews()}
	controller.exec.OnWrite(controller.news.recordWrite)
	queue := reconcile.NewQueue(Name)
	c.AddOns.OnConcern(func(name string) { queue.Add(selection.Key(name)) })
	c.Instances.OnChange(func(name string) { queue.AddAfter(selection.Key(name), settle) })
	reconciler := manager.For(m.Reader(), controller.Reconcile, func(key reconcile.Key) { controller.news.forget(key.Name) })
	m.Add(reconcile.Loop{Name: Name, Workers: workers, Reconcile: reconciler}, queue)
}

// Reconcile creates, updates and deletes the instances of one add-on.
func (c *Controller) Reconcile(ctx context.Context, addOn *addonv1alpha1.ClusterManagementAddOn) (reconcile.Result, error) {
	if err := c.Instances.WaitSynced(ctx); err != nil {
		return reconcile.Result{}, err
	}
	state, err := c.gather(ctx, addOn)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("gathering for %s: %w", addOn.Name, err)
	}
	c.news.dropSeen(addOn.Name, state.Instances)
	plan := Decide(state)
	result, failure := c.exec.Execute(ctx, addOn, plan)
	if events := c.news.events(addOn.Name, plan, failure); len(events) > 0 && ctx.Err() == nil {
		if _, err := c.exec.Execute(ctx, addOn, reconcile.Plan{Events: events}); err != nil {
			return reconcile.Result{}, err
		}
	}
	return result, failure
}

// gather reads placements, decisions, clusters and instances from the caches.
func (c *Controller) gather(ctx context.Context, addOn *addonv1alpha1.ClusterManagementAddOn) (State, error) {
	s := State{AddOn: addOn, Instances: c.Instances.Of(addOn.Name)}
	var err error
	if s.Placements, err = selection.Read(ctx, c.reader, addOn); err != nil {
		return s, err
	}
	names := map[string]bool{}
	for _, p := range s.Placements {
		for _, cluster := range p.Clusters {
			names[cluster] = true
		}
	}
	for _, a := range s.Instances {
		names[a.Cluster] = true
	}
	s.Clusters = c.AddOns.Clusters(names)
	return s, nil
}
