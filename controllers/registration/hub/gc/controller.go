// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"context"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/manager"
)

// Name is the loop's id.
const Name = "cluster.gc"

const workers = 4

// Config of the loop.
type Config struct {
	// Client writes.
	Client dynamic.Interface
	// Clock tells the time of conditions.
	Clock clock.PassiveClock
	// Clean is the gate ResourceCleanup. Without it clusters get no finalizer,
	// and those that have it lose it.
	Clean bool
}

// Controller is the loop.
type Controller struct {
	reader client.Reader
	clock  clock.PassiveClock
	clean  bool
	exec   *reconcile.Executor

	mu sync.Mutex
	// vanished are clusters that went while this process looked on, with their
	// finalizers stripped or not. Only what those leave is removed: works may
	// also stand in a namespace whose cluster has not come yet.
	vanished map[string]bool
}

// Register adds the loop to m.
func Register(m *manager.Manager, c Config) {
	controller := &Controller{reader: m.Reader(), clock: c.Clock, clean: c.Clean, exec: reconcile.NewExecutor(c.Client, Name, c.Clock), vanished: map[string]bool{}}
	queue := reconcile.NewQueue(Name)
	add := func(cluster string) { queue.Add(reconcile.Key{Name: cluster}) }
	manager.Watch(m, &clusterv1.ManagedCluster{}, func(old, current *clusterv1.ManagedCluster) {
		switch {
		case current == nil:
			controller.mark(old.Name, true)
			add(old.Name)
		case old == nil:
			controller.mark(current.Name, false)
			add(current.Name)
		case current.DeletionTimestamp != nil || !reflect.DeepEqual(old.Finalizers, current.Finalizers):
			add(current.Name)
		}
	})
	for _, kind := range order {
		manager.Watch(m, manager.Metadata(kind), func(old, current *metav1.PartialObjectMetadata) {
			// What is added to a cluster that goes, or is gone, goes too.
			if old == nil {
				add(current.Namespace)
			} else if current == nil || (old.DeletionTimestamp == nil) != (current.DeletionTimestamp == nil) {
				add(old.Namespace)
			}
		})
	}
	m.Add(reconcile.Loop{Name: Name, Workers: workers, Reconcile: controller.Reconcile}, queue)
}

// mark notes whether the cluster of that name went.
func (c *Controller) mark(name string, gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if gone {
		c.vanished[name] = true
	} else {
		delete(c.vanished, name)
	}
}

func (c *Controller) isVanished(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.vanished[name]
}

// Reconcile removes what is next, or lets the cluster go.
func (c *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	state, err := c.gather(ctx, key.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	before := state.Cluster
	if before == nil {
		if !state.Owned || empty(state.Groups) {
			// What comes from now on waits for the next cluster of the name.
			c.mark(key.Name, false)
		}
		before = &clusterv1.ManagedCluster{
			TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "ManagedCluster"},
			ObjectMeta: metav1.ObjectMeta{Name: key.Name},
		}
	}
	return c.exec.Execute(ctx, before, Decide(state))
}
