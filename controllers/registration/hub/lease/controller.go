// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"sync"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Name is the loop's id.
const Name = "cluster.lease"

// workers at once; a hub that lost its network judges many clusters together.
const workers = 4

// Config of the loop.
type Config struct {
	// Client writes.
	Client dynamic.Interface
	// REST reaches the API server for the watch on leases.
	REST *rest.Config
	// Clock judges, and turns the wheel.
	Clock clock.WithTicker
	// Arrivals of the clusters' leases; Register runs it.
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
	// told is when a cluster was last seen to be said to be away.
	told map[string]time.Time
	// missed is when the lease of a cluster was first missed.
	missed map[string]time.Time
}

// view is what a renewal needs to know of its cluster to tell whether it
// changes anything, without reading the cluster.
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
	manager.Watch(m, &clusterv1.ManagedCluster{}, controller.changed)
	c.Arrivals.OnBeat(controller.beat)
	c.Arrivals.OnPresence(controller.add)
	m.AddTask(func(ctx context.Context) error { return c.Arrivals.Run(ctx, c.REST) })
	m.AddTask(func(ctx context.Context) error { return controller.wheel.Run(ctx, controller.add) })
	m.Add(reconcile.Loop{Name: Name, Workers: workers, Reconcile: manager.For(m.Reader(), controller.Reconcile, nil)}, controller.queue)
}

func (c *Controller) add(cluster string) { c.queue.Add(reconcile.Key{Name: cluster}) }

// changed notes what renewals are compared with, and wakes the loop when that,
// or the end of a cluster, changed.
func (c *Controller) changed(old, current *clusterv1.ManagedCluster) {
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
		c.add(current.Name)
	}
}

func viewOf(mc *clusterv1.ManagedCluster) view {
	v := view{grace: Grace(mc), skip: mc.Annotations[clusterv1.AnnotationSkipClockSyncCheck] == "true"}
	if clock := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionClockSynced); clock != nil {
		v.synced = clock.Status
	}
	return v
}

func available(mc *clusterv1.ManagedCluster) metav1.ConditionStatus {
	if c := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionAvailable); c != nil {
		return c.Status
	}
	return ""
}

// beat re-arms the wheel for a renewal, and wakes the loop only if the renewal
// changes what is said of the cluster's clock.
func (c *Controller) beat(cluster string, b Beat) {
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
		c.add(cluster)
	}
}

// Reconcile judges one cluster and arms its timer.
func (c *Controller) Reconcile(ctx context.Context, mc *clusterv1.ManagedCluster) (reconcile.Result, error) {
	select {
	case <-c.config.Arrivals.Synced():
	default:
		return reconcile.Result{RequeueAfter: tick}, nil
	}
	c.arm(mc)
	return reconcile.Run(ctx, c.exec, mc, c.gather, Decide)
}

// arm sets the next time at which the cluster has to be judged: the end of its
// grace time, or the end of its certificate while it is away.
func (c *Controller) arm(mc *clusterv1.ManagedCluster) {
	b, ok := c.config.Arrivals.Get(mc.Name)
	if !ok {
		c.miss(mc)
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

// miss notes that a cluster which is said to be reachable has no lease, and sets
// the time at which that is no longer so.
func (c *Controller) miss(mc *clusterv1.ManagedCluster) {
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
