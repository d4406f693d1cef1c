// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"context"
	"reflect"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/membership"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Name identifies the loop.
const Name = "clusterset.members"

// settle is how long changes of clusters are batched before a set is counted.
const settle = 100 * time.Millisecond

// Config configures the loop.
type Config struct {
	// Client sends all writes.
	Client dynamic.Interface
	// Clock stamps conditions.
	Clock clock.PassiveClock
	// Index has the members of sets.
	Index *membership.Index
	// Own is the gate DefaultClusterSet: maintain the sets default and global.
	Own bool
}

// Controller is the loop.
type Controller struct {
	config Config
	reader manager.Reader
	exec   *reconcile.Executor
	// written holds when the count of each set was last written.
	written sync.Map
}

// Register adds the loop to m.
func Register(m *manager.Manager, c Config) {
	controller := &Controller{config: c, reader: m.Reader(), exec: reconcile.NewExecutor(c.Client, Name, c.Clock)}
	queue := reconcile.NewQueue(Name)
	add := func(set string) { queue.Add(reconcile.Key{Name: set}) }
	c.Index.Listen(membership.Listener{
		Object: add,
		Member: func(set, _ string) { queue.AddAfter(reconcile.Key{Name: set}, settle) },
	})
	m.AddTask(func(ctx context.Context) error {
		add(clusterv1beta2.DefaultClusterSet)
		add(clusterv1beta2.GlobalClusterSet)
		<-ctx.Done()
		return nil
	})
	m.Add(reconcile.Loop{Name: Name, Reconcile: controller.Reconcile}, queue)
}

// Reconcile brings one set up to date.
func (c *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	state, err := c.gather(ctx, key)
	if err != nil {
		return reconcile.Result{}, err
	}
	plan := Decide(state)
	if state.Set == nil {
		c.written.Delete(key.Name)
		return c.exec.Execute(ctx, ownSet(key.Name), plan)
	}
	if set, ok := plan.Object.(*clusterv1beta2.ManagedClusterSet); ok && !reflect.DeepEqual(set.Status, state.Set.Status) {
		c.written.Store(key.Name, state.Now)
	}
	return c.exec.Execute(ctx, state.Set, plan)
}

// gather reads one set from the cache and its size from the index.
func (c *Controller) gather(ctx context.Context, key reconcile.Key) (s State, err error) {
	own := key.Name == clusterv1beta2.DefaultClusterSet || key.Name == clusterv1beta2.GlobalClusterSet
	s = State{Name: key.Name, Own: c.config.Own && own, Now: c.config.Clock.Now()}
	if at, ok := c.written.Load(key.Name); ok {
		s.Written = at.(time.Time)
	}
	s.Set, err = hub.Find(ctx, c.reader, key, &clusterv1beta2.ManagedClusterSet{})
	s.Members, s.Invalid = c.config.Index.Size(key.Name)
	return s, err
}
