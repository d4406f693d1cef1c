// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Name identifies the loop.
const Name = "cluster.lease"

// workers is the concurrency; a hub that lost its network judges many clusters at once.
const workers = 4

// Config configures the loop.
type Config struct {
	// Client sends all writes.
	Client dynamic.Interface
	// REST is the configuration for the watch on leases.
	REST *rest.Config
	// Clock provides the time for decisions, and drives the wheel.
	Clock clock.WithTicker
	// Arrivals are the clusters' leases; Register runs it.
	Arrivals *Arrivals
}

// Controller is the loop.
type Controller struct {
	config Config
	reader manager.Reader
	exec   *reconcile.Executor
	queue  *reconcile.Queue
	wheel  *wheel

	mu    sync.Mutex
	views map[string]view
	// told is when each cluster last became Unknown.
	told map[string]time.Time
	// missed is when each cluster's lease was first missed.
	missed map[string]time.Time
}

// view is what a renewal is compared with to decide whether it changes anything, without
// reading the cluster.
type view struct {
	grace  time.Duration
	synced metav1.ConditionStatus
	skip   bool
}

// Register adds the loop and its tasks to m.
func Register(m *manager.Manager, c Config) {
	controller := &Controller{
		config: c, reader: m.Reader(), exec: reconcile.NewExecutor(c.Client, Name, c.Clock),
		queue: reconcile.NewQueue(Name), wheel: newWheel(c.Clock), views: map[string]view{}, told: map[string]time.Time{}, missed: map[string]time.Time{},
	}
	manager.Watch(m, &clusterv1.ManagedCluster{}, controller.observeCluster)
	c.Arrivals.OnBeat(controller.observeBeat)
	c.Arrivals.OnPresence(controller.enqueue)
	m.AddTask(func(ctx context.Context) error { return c.Arrivals.Run(ctx, c.REST) })
	m.AddTask(func(ctx context.Context) error { return controller.wheel.Run(ctx, controller.enqueue) })
	m.Add(reconcile.Loop{Name: Name, Workers: workers, Reconcile: manager.For(m.Reader(), controller.Reconcile, nil)}, controller.queue)
}

func (c *Controller) enqueue(cluster string) { c.queue.Add(reconcile.Key{Name: cluster}) }

// observeCluster stores what renewals are compared with, and wakes the loop when that changed, or
// when the cluster is added, changes availability or starts being deleted.
func (c *Controller) observeCluster(old, current *clusterv1.ManagedCluster) {
	if current == nil {
		c.mu.Lock()
		delete(c.views, old.Name)
		delete(c.told, old.Name)
		delete(c.missed, old.Name)
		c.mu.Unlock()
		c.wheel.Drop(old.Name)
		return
	}
	now := viewOf(current)
	c.mu.Lock()
	before, known := c.views[current.Name]
	c.views[current.Name] = now
	if old != nil && available(old) != available(current) && available(current) == metav1.ConditionUnknown {
		c.told[current.Name] = c.config.Clock.Now()
	}
	c.mu.Unlock()
	if !known || before != now || old == nil || (old.DeletionTimestamp == nil) != (current.DeletionTimestamp == nil) ||
		available(old) != available(current) {
		c.enqueue(current.Name)
	}
}

func viewOf(mc *clusterv1.ManagedCluster) view {
	skip := mc.Annotations[clusterv1.AnnotationSkipClockSyncCheck] == "true"
	return view{grace: Grace(mc), synced: hub.StatusOf(mc, clusterv1.ConditionClockSynced), skip: skip}
}

func available(mc *clusterv1.ManagedCluster) metav1.ConditionStatus {
	return hub.StatusOf(mc, clusterv1.ConditionAvailable)
}

// observeBeat re-arms the wheel after a renewal, and wakes the loop only for the first one or if the
// renewal changes the state of the cluster's clock.
func (c *Controller) observeBeat(cluster string, b Beat) {
	c.mu.Lock()
	v, known := c.views[cluster]
	c.mu.Unlock()
	if !known {
		return
	}
	c.wheel.Set(cluster, b.Last(v.grace).Add(v.grace))
	synced := metav1.ConditionTrue
	if !v.skip && !b.Renewed.IsZero() && b.Arrived.Sub(b.Renewed).Abs() >= v.grace {
		synced = metav1.ConditionFalse
	}
	if b.First || synced != v.synced {
		c.enqueue(cluster)
	}
}

// Reconcile evaluates one cluster and arms its timer.
func (c *Controller) Reconcile(ctx context.Context, mc *clusterv1.ManagedCluster) (reconcile.Result, error) {
	select {
	case <-c.config.Arrivals.Synced():
	default:
		return reconcile.Result{RequeueAfter: tick}, nil
	}
	c.arm(mc)
	return reconcile.Run(ctx, c.exec, mc, c.gather, Decide)
}

// gather adds what is known of the cluster's lease.
func (c *Controller) gather(_ context.Context, mc *clusterv1.ManagedCluster) (State, error) {
	s := State{Cluster: mc, Now: c.config.Clock.Now()}
	if b, ok := c.config.Arrivals.Get(mc.Name); ok {
		s.Beat = &b
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Told, s.Missed = c.told[mc.Name], c.missed[mc.Name]
	return s, nil
}

// arm sets when the cluster must be evaluated next: at the end of its grace period or, while
// it is away, at the expiry of its certificate.
func (c *Controller) arm(mc *clusterv1.ManagedCluster) {
	b, ok := c.config.Arrivals.Get(mc.Name)
	if !ok {
		c.recordMissing(mc)
		return
	}
	c.mu.Lock()
	delete(c.missed, mc.Name)
	c.mu.Unlock()
	now := c.config.Clock.Now()
	next := State{Cluster: mc, Beat: &b}.Expiry()
	if !next.After(now) {
		end, err := time.Parse(time.RFC3339, mc.Annotations[clusterv1.AnnotationCertificateExpires])
		if err != nil || !end.After(now) {
			return
		}
		next = end
	}
	c.wheel.Set(mc.Name, next)
}

// recordMissing records that a cluster which is not Unknown has no lease, and sets the time at which
// it becomes Unknown.
func (c *Controller) recordMissing(mc *clusterv1.ManagedCluster) {
	now := c.config.Clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if status := available(mc); status == "" || status == metav1.ConditionUnknown {
		delete(c.missed, mc.Name)
		return
	}
	if _, known := c.missed[mc.Name]; !known {
		c.missed[mc.Name] = now
	}
	if end := c.missed[mc.Name].Add(Grace(mc)); end.After(now) {
		c.wheel.Set(mc.Name, end)
	}
}
