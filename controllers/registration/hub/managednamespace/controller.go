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

const workers = 4

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
	reader manager.Reader
	index  *membership.Index
	exec   *reconcile.Executor
}

// entryTracker tracks the clusters that have entries, as last seen.
type entryTracker struct {
	mu       sync.Mutex
	clusters map[string]bool
}

func (t *entryTracker) record(cluster string, has bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if has {
		t.clusters[cluster] = true
	} else {
		delete(t.clusters, cluster)
	}
}

func (t *entryTracker) has(cluster string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.clusters[cluster]
}

// Register adds the loop to m.
func Register(m *manager.Manager, c Config) {
	controller := &Controller{reader: m.Reader(), index: c.Index, exec: reconcile.NewExecutor(c.Client, Name, c.Clock)}
	queue := reconcile.NewQueue(Name)
	add := func(cluster string) { queue.Add(reconcile.Key{Name: cluster}) }
	told := &entryTracker{clusters: map[string]bool{}}
	manager.Watch(m, &clusterv1.ManagedCluster{}, func(old, current *clusterv1.ManagedCluster) {
		if current == nil {
			told.record(old.Name, false)
			return
		}
		told.record(current.Name, len(current.Status.ManagedNamespaces) > 0)
		// Changes others made to the entries are reverted.
		var before []clusterv1.ClusterSetManagedNamespace
		if old != nil {
			before = old.Status.ManagedNamespaces
		}
		if !slices.EqualFunc(before, current.Status.ManagedNamespaces, sameEntry) || old == nil && len(c.Index.Managed(current.Name)) > 0 {
			add(current.Name)
		}
	})
	c.Index.Listen(membership.Listener{
		// Most sets manage no namespaces, and nearly all events at the start of a hub are
		// clusters joining sets.
		Member: func(_, cluster string) {
			if told.has(cluster) || len(c.Index.Managed(cluster)) > 0 {
				add(cluster)
			}
		},
		Namespaces: func(set string) {
			for _, cluster := range c.Index.Members(set) {
				add(cluster)
			}
		},
	})
	m.Add(reconcile.Loop{Name: Name, Workers: workers, Reconcile: manager.For(m.Reader(), controller.Reconcile, nil)}, queue)
}

// Reconcile brings the entries of one cluster up to date.
func (c *Controller) Reconcile(ctx context.Context, mc *clusterv1.ManagedCluster) (reconcile.Result, error) {
	plan := Decide(State{Cluster: mc, Wanted: c.index.Managed(mc.Name)})
	if plan.Object == nil {
		return reconcile.Result{}, nil
	}
	return c.exec.Execute(ctx, mc, plan)
}
