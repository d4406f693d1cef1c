// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// Name identifies the loop.
const Name = "cluster.import"

// retry is the pause after a failed import, which nothing that is watched may end.
const retry = time.Minute

// provisioned are the clusters of Cluster API.
var provisioned = schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: "v1beta1", Resource: "clusters"}

// Config configures the loop.
type Config struct {
	// Client sends all requests to the hub.
	Client dynamic.Interface
	// Clock is the time of decisions.
	Clock clock.PassiveClock
	// Renderers are described at State.
	Renderers []string
	// Image of the agent; empty means that beside the image of the hub.
	Image string
	// Log reports why Clusters cannot be read.
	Log logr.Logger
}

// Controller is the loop.
type Controller struct {
	config Config
	exec   *reconcile.Executor
	queue  *reconcile.Queue
	// clusters holds the phase of each Cluster.
	clusters *watch.Collection[string]

	mu sync.Mutex
	// sight is how the Clusters were seen last.
	sight sight
	// waiting are the ManagedClusters to import, by their Cluster.
	waiting map[reconcile.Key]map[string]bool
}

// Register adds the loop to m.
func Register(m *manager.Manager, c Config) {
	controller := &Controller{
		config: c, exec: reconcile.NewExecutor(c.Client, Name, c.Clock), queue: reconcile.NewQueue(Name), waiting: map[reconcile.Key]map[string]bool{},
		clusters: watch.New(watch.Options[string]{
			Client: c.Client, Resource: provisioned, Log: c.Log,
			Keep: func(u *unstructured.Unstructured) (string, bool) {
				phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
				return phase, true
			},
			Same: func(before, now string) bool { return before == now },
		}),
	}
	manager.Watch(m, &clusterv1.ManagedCluster{}, controller.observe)
	controller.clusters.OnChange(func(key reconcile.Key) { controller.wake(func(k reconcile.Key) bool { return k == key }) })
	controller.clusters.OnOutcome(func(error) { controller.look() })
	controller.clusters.OnSynced(controller.look)
	m.AddTask(controller.clusters.Run)
	m.Add(reconcile.Loop{Name: Name, Workers: 4, Reconcile: manager.For(m.Reader(), controller.Reconcile, nil)}, controller.queue)
}

// observe keeps track of which ManagedClusters are to be imported.
func (c *Controller) observe(old, current *clusterv1.ManagedCluster) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old != nil {
		key := clusterOf(old)
		if delete(c.waiting[key], old.Name); len(c.waiting[key]) == 0 {
			delete(c.waiting, key)
		}
	}
	if current == nil || isSettled(current) {
		return
	}
	key := clusterOf(current)
	if c.waiting[key] == nil {
		c.waiting[key] = map[string]bool{}
	}
	c.waiting[key][current.Name] = true
	// A pass may have decided by a condition that the cache had before this one.
	if old == nil || old.UID != current.UID || clusterOf(old) != key || isSettled(old) || reasonOf(old) != reasonOf(current) {
		c.queue.Add(reconcile.KeyOf(current))
	}
}

// look queues every ManagedCluster if the Clusters are seen in another way than before: a list
// without objects changes no object, and yet answers for all that wait.
func (c *Controller) look() {
	now := c.sees()
	c.mu.Lock()
	changed := c.sight != now
	c.sight = now
	c.mu.Unlock()
	if changed {
		c.wake(func(reconcile.Key) bool { return true })
	}
}

// sees returns how the Clusters are seen now. Without their kind there are none.
func (c *Controller) sees() sight {
	err := c.clusters.Err()
	select {
	case <-c.clusters.Synced():
	default:
		if !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
			return unread
		}
	}
	if apierrors.IsForbidden(err) {
		return denied
	}
	return read
}

// wake queues the ManagedClusters of those Clusters that which selects.
func (c *Controller) wake(which func(reconcile.Key) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, names := range c.waiting {
		for name := range names {
			if which(key) {
				c.queue.Add(reconcile.Key{Name: name})
			}
		}
	}
}

// Reconcile imports one cluster if it is due.
func (c *Controller) Reconcile(ctx context.Context, mc *clusterv1.ManagedCluster) (reconcile.Result, error) {
	s := c.gather(mc)
	if s.isDue() {
		s.Failed = c.install(ctx, s)
	}
	return c.exec.Execute(ctx, mc, Decide(s))
}

// gather reads the caches.
func (c *Controller) gather(mc *clusterv1.ManagedCluster) State {
	s := State{Cluster: mc, Now: c.config.Clock.Now(), Renderers: c.config.Renderers, sight: c.sees()}
	s.Phase, s.Found = c.clusters.Get(clusterOf(mc))
	return s
}
