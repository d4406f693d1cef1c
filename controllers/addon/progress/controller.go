// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"context"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/config"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/instance"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/selection"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Name is the id of the loop.
const Name = "addon.progress"

const workers = 2

// settle is how long changes of instances and works are collected before a pass, so that one
// status write covers what many clusters report at once.
const settle = 500 * time.Millisecond

// Config configures the loop.
type Config struct {
	// Client writes the statuses.
	Client dynamic.Interface
	// Clock is the time source for conditions and rollouts.
	Clock clock.PassiveClock
	// Instances and AddOns are the indexes of the add-on loops.
	Instances *instance.Index
	AddOns    *selection.Index
	// Contents caches the configurations.
	Contents *config.Contents
}

// Controller is the loop. Its keys are names of ClusterManagementAddOns.
type Controller struct {
	Config
	reader manager.Reader
	exec   *reconcile.Executor
}

// Register adds the loop to m.
func Register(m *manager.Manager, c Config) {
	queue := reconcile.NewQueue(Name)
	controller := &Controller{Config: c, reader: m.Reader(), exec: reconcile.NewExecutor(c.Client, Name, c.Clock)}
	c.Contents.OnChange(func(changed addonv1alpha1.AddOnConfig) {
		for _, name := range append(c.AddOns.Naming(changed), c.Instances.Naming(changed)...) {
			queue.Add(selection.Key(name))
		}
	})
	c.AddOns.OnConcern(func(name string) { queue.Add(selection.Key(name)) })
	c.Instances.OnChange(func(name string) { queue.AddAfter(selection.Key(name), settle) })
	m.Add(reconcile.Loop{Name: Name, Workers: workers, Reconcile: manager.For(m.Reader(), controller.Reconcile, nil)}, queue)
}

// Reconcile advances the rollouts of one add-on's configurations.
func (c *Controller) Reconcile(ctx context.Context, addOn *addonv1alpha1.ClusterManagementAddOn) (reconcile.Result, error) {
	for _, wait := range []func(context.Context) error{c.Instances.WaitSynced, c.Contents.WaitSynced} {
		if err := wait(ctx); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Run(ctx, c.exec, addOn, c.gather, Decide)
}

// gather reads placements, clusters, instances, their works and configurations from
// the caches.
func (c *Controller) gather(ctx context.Context, addOn *addonv1alpha1.ClusterManagementAddOn) (State, error) {
	s := State{AddOn: addOn, Contents: map[addonv1alpha1.AddOnConfig]config.Content{}, Now: c.Clock.Now()}
	named := config.Defaults(addOn.Spec)
	if selection.Managed(addOn) {
		var err error
		if s.Placements, err = selection.Read(ctx, c.reader, addOn); err != nil {
			return s, err
		}
		selected := map[string]bool{}
		for _, p := range s.Placements {
			named = append(named, p.Configs...)
			for _, cluster := range p.Clusters {
				selected[cluster] = true
			}
		}
		s.Clusters = c.AddOns.Clusters(selected)
		for _, a := range c.Instances.Of(addOn.Name) {
			named = append(named, a.Configs...)
			s.Instances = append(s.Instances, Instance{AddOn: a, Works: c.Instances.Works(a.Key())})
		}
	}
	for _, ref := range named {
		if content, ok := c.Contents.Get(ref); ok {
			s.Contents[ref] = content
		}
	}
	return s, nil
}
