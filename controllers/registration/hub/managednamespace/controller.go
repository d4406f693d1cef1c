// SPDX-License-Identifier: Apache-2.0

package managednamespace

import (
	"context"
	"slices"
	"sync"

	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/membership"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Name identifies the loop.
const Name = "cluster.managednamespace"

// Config configures the loop.
type Config struct {
	// Client sends all writes.
	Client dynamic.Interface
	// Clock is the executor's clock.
	Clock clock.PassiveClock
	// Index has the sets of clusters and the namespaces they want.
	Index *membership.Index
}

// Controller is the loop.
type Controller struct {
	index *membership.Index
	exec  *reconcile.Executor
}

// Register adds the loop to m.
func Register(m *manager.Manager, c Config) {
	index, queue := c.Index, reconcile.NewQueue(Name)
	controller := &Controller{index: index, exec: reconcile.NewExecutor(c.Client, Name, c.Clock)}
	add := func(cluster string) { queue.Add(reconcile.Key{Name: cluster}) }
	var told sync.Map // the clusters that have entries, as last seen
	manager.Watch(m, &clusterv1.ManagedCluster{}, func(old, current *clusterv1.ManagedCluster) {
		if current == nil {
			told.Delete(old.Name)
			return
		}
		if len(current.Status.ManagedNamespaces) > 0 {
			told.Store(current.Name, nil)
		} else {
			told.Delete(current.Name)
		}
		// Changes others made to the entries are reverted.
		var before []clusterv1.ClusterSetManagedNamespace
		if old != nil {
			before = old.Status.ManagedNamespaces
		}
		if !slices.EqualFunc(before, current.Status.ManagedNamespaces, sameEntry) || old == nil && len(index.Managed(current.Name)) > 0 {
			add(current.Name)
		}
	})
	index.Listen(membership.Listener{
		// Most sets manage no namespaces, and nearly all events at the start of a hub are
		// clusters joining sets.
		Member: func(_, cluster string) {
			if _, has := told.Load(cluster); has || len(index.Managed(cluster)) > 0 {
				add(cluster)
			}
		},
		Namespaces: func(set string) {
			for _, cluster := range index.Members(set) {
				add(cluster)
			}
		},
	})
	m.Add(reconcile.Loop{Name: Name, Workers: 4, Reconcile: manager.For(m.Reader(), controller.Reconcile, nil)}, queue)
}

// Reconcile brings the entries of one cluster up to date.
func (c *Controller) Reconcile(ctx context.Context, mc *clusterv1.ManagedCluster) (reconcile.Result, error) {
	return c.exec.Execute(ctx, mc, Decide(State{Cluster: mc, Wanted: c.index.Managed(mc.Name)}))
}
