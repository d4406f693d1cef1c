// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/manager"
)

// Name is the loop's id.
const Name = "clusterset.members"

// Config of the loop.
type Config struct {
	// Client writes.
	Client dynamic.Interface
	// Clock tells the time of conditions.
	Clock clock.PassiveClock
	// Own is the gate DefaultClusterSet: keep the sets default and global.
	Own bool
}

// Controller is the loop.
type Controller struct {
	config Config
	reader client.Reader
	exec   *reconcile.Executor
	queue  *reconcile.Queue

	mu      sync.Mutex
	written map[string]time.Time
}

// Register adds the loop to m.
func Register(m *manager.Manager, c Config) {
	controller := &Controller{
		config: c, reader: m.Reader(), exec: reconcile.NewExecutor(c.Client, Name, c.Clock),
		queue: reconcile.NewQueue(Name), written: map[string]time.Time{},
	}
	manager.Watch(m, &clusterv1beta2.ManagedClusterSet{}, func(old, current *clusterv1beta2.ManagedClusterSet) {
		if current == nil {
			current = old
		}
		controller.add(current.Name)
	})
	manager.Watch(m, &clusterv1.ManagedCluster{}, func(old, current *clusterv1.ManagedCluster) {
		if old == nil || current == nil || !maps.Equal(old.Labels, current.Labels) {
			controller.addAll()
		}
	})
	m.AddTask(func(ctx context.Context) error {
		controller.add(clusterv1beta2.DefaultClusterSet)
		controller.add(clusterv1beta2.GlobalClusterSet)
		<-ctx.Done()
		return nil
	})
	m.Add(reconcile.Loop{Name: Name, Reconcile: controller.Reconcile}, controller.queue)
}

func (c *Controller) add(set string) { c.queue.Add(reconcile.Key{Name: set}) }

// addAll wakes every set, a moment later, so that many changes of clusters make
// one count. The key without a name stands for all sets.
func (c *Controller) addAll() { c.queue.AddAfter(reconcile.Key{}, settle) }

// settle is how long changes of clusters are gathered before sets are counted.
const settle = 100 * time.Millisecond

func (c *Controller) lastWrite(set string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.written[set]
}

// Reconcile brings one set, or for the empty key the counts of all, in step.
func (c *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	if key.Name == "" {
		return reconcile.Result{}, c.fanOut(ctx)
	}
	state, err := c.gather(ctx, key.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	before := state.Set
	if before == nil {
		before = &clusterv1beta2.ManagedClusterSet{
			TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1beta2.GroupVersion.String(), Kind: "ManagedClusterSet"},
			ObjectMeta: metav1.ObjectMeta{Name: key.Name},
		}
	}
	plan := Decide(state)
	if set, ok := plan.Object.(*clusterv1beta2.ManagedClusterSet); ok && !reflect.DeepEqual(set.Status, state.Set.Status) {
		c.mu.Lock()
		c.written[key.Name] = state.Now
		c.mu.Unlock()
	}
	return c.exec.Execute(ctx, before, plan)
}

func (c *Controller) fanOut(ctx context.Context) error {
	sets := &clusterv1beta2.ManagedClusterSetList{}
	if err := c.reader.List(ctx, sets, manager.NotCopied); err != nil {
		return fmt.Errorf("listing managedclustersets: %w", err)
	}
	for i := range sets.Items {
		c.add(sets.Items[i].Name)
	}
	return nil
}
