// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"context"
	"reflect"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

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
	c.Index.Listen(membership.Listener{
		Object: controller.enqueue,
		Member: func(set, _ string) { controller.queue.AddAfter(reconcile.Key{Name: set}, settle) },
	})
	m.AddTask(func(ctx context.Context) error {
		controller.enqueue(clusterv1beta2.DefaultClusterSet)
		controller.enqueue(clusterv1beta2.GlobalClusterSet)
		<-ctx.Done()
		return nil
	})
	m.Add(reconcile.Loop{Name: Name, Reconcile: controller.Reconcile}, controller.queue)
}

func (c *Controller) enqueue(set string) { c.queue.Add(reconcile.Key{Name: set}) }

// lastWrite is when the count of a set was last written; recordWrite sets it, or forgets the set
// when the time is zero.
func (c *Controller) lastWrite(set string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.written[set]
}

func (c *Controller) recordWrite(set string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at.IsZero() {
		delete(c.written, set)
	} else {
		c.written[set] = at
	}
}

// Reconcile brings one set up to date.
func (c *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	state, err := c.gather(ctx, key.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	plan := Decide(state)
	before := state.Set
	if before == nil {
		c.recordWrite(key.Name, time.Time{})
		before = &clusterv1beta2.ManagedClusterSet{
			TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1beta2.GroupVersion.String(), Kind: "ManagedClusterSet"},
			ObjectMeta: metav1.ObjectMeta{Name: key.Name},
		}
	} else if set, ok := plan.Object.(*clusterv1beta2.ManagedClusterSet); ok && !reflect.DeepEqual(set.Status, before.Status) {
		c.recordWrite(key.Name, state.Now)
	}
	return c.exec.Execute(ctx, before, plan)
}
