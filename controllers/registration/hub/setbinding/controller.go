// SPDX-License-Identifier: Apache-2.0

package setbinding

import (
	"context"
	"reflect"

	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/membership"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Name identifies the loop.
const Name = "setbinding.bound"

// Config configures the loop.
type Config struct {
	// Client sends all writes.
	Client dynamic.Interface
	// Clock is the executor's clock.
	Clock clock.PassiveClock
	// Index has the bindings of sets.
	Index *membership.Index
}

// Controller is the loop.
type Controller struct {
	reader manager.Reader
	clock  clock.PassiveClock
	exec   *reconcile.Executor
}

// Register adds the loop to m.
func Register(m *manager.Manager, c Config) {
	controller := &Controller{reader: m.Reader(), clock: c.Clock, exec: reconcile.NewExecutor(c.Client, Name, c.Clock)}
	queue := reconcile.NewQueue(Name)
	manager.Watch(m, &clusterv1beta2.ManagedClusterSetBinding{}, func(old, current *clusterv1beta2.ManagedClusterSetBinding) {
		if current != nil && (old == nil || old.Generation != current.Generation || !reflect.DeepEqual(old.Status, current.Status)) {
			queue.Add(reconcile.KeyOf(current))
		}
	})
	c.Index.Listen(membership.Listener{Presence: func(set string) {
		for _, namespace := range c.Index.Bound(set) {
			queue.Add(reconcile.Key{Namespace: namespace, Name: set})
		}
	}})
	m.Add(reconcile.Loop{Name: Name, Workers: 2, Reconcile: manager.For(m.Reader(), controller.Reconcile, nil)}, queue)
}

// Reconcile brings the condition of one binding up to date.
func (c *Controller) Reconcile(ctx context.Context, binding *clusterv1beta2.ManagedClusterSetBinding) (reconcile.Result, error) {
	return reconcile.Run(ctx, c.exec, binding, c.gather, Decide)
}

func (c *Controller) gather(ctx context.Context, binding *clusterv1beta2.ManagedClusterSetBinding) (State, error) {
	name := reconcile.Key{Name: binding.Spec.ClusterSet}
	set, err := hub.Find(ctx, c.reader, name, &clusterv1beta2.ManagedClusterSet{}, manager.NotCopied)
	return State{Binding: binding, Now: c.clock.Now(), Exists: set != nil, Deleting: set != nil && set.DeletionTimestamp != nil}, err
}
