// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/accept"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/membership"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	multiclusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/multicluster/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Name identifies the loop.
const Name = "cluster.profile"

const workers = 4

// resource is the resource of the profiles.
var resource = multiclusterv1alpha1.GroupVersion.WithResource("clusterprofiles")

// Config configures the loop.
type Config struct {
	// Client sends all writes.
	Client dynamic.Interface
	// Clock is the executor's clock.
	Clock clock.PassiveClock
	// Index has the sets of clusters and the namespaces bound to them.
	Index *membership.Index
}

// Controller is the loop.
type Controller struct {
	reader manager.Reader
	index  *membership.Index
	exec   *reconcile.Executor
	queue  *reconcile.Queue

	mu sync.Mutex
	// told are the profiles of other managers that were reported.
	told map[reconcile.Key]types.UID
}

// Register adds the loop to m. The API must be served.
func Register(m *manager.Manager, c Config) {
	controller := &Controller{
		reader: m.Reader(),
		index:  c.Index,
		exec:   reconcile.NewExecutor(c.Client, Name, c.Clock),
		queue:  reconcile.NewQueue(Name),
		told:   map[reconcile.Key]types.UID{},
	}
	manager.Watch(m, &clusterv1.ManagedCluster{}, func(old, current *clusterv1.ManagedCluster) {
		switch {
		case current == nil:
			controller.enqueueCluster(old.Name)
		case old == nil || old.UID != current.UID || shownChanged(old, current):
			controller.enqueueCluster(current.Name)
		}
	})
	manager.Watch(m, &multiclusterv1alpha1.ClusterProfile{}, func(old, current *multiclusterv1alpha1.ClusterProfile) {
		if current == nil {
			current = old
		}
		controller.queue.Add(reconcile.KeyOf(current))
	})
	manager.Watch(m, manager.Metadata(accept.NamespaceKind), func(old, current *metav1.PartialObjectMetadata) {
		// A binding may be seen before its namespace.
		if old == nil {
			controller.enqueueNamespace(current.Name)
		}
	})
	c.Index.Listen(membership.Listener{
		Member: func(set, cluster string) {
			for _, namespace := range c.Index.Bound(set) {
				controller.queue.Add(reconcile.Key{Namespace: namespace, Name: cluster})
			}
		},
		Binding: func(namespace, set string) {
			for _, cluster := range c.Index.Members(set) {
				controller.queue.Add(reconcile.Key{Namespace: namespace, Name: cluster})
			}
		},
	})
	m.Add(reconcile.Loop{Name: Name, Workers: workers, Reconcile: controller.Reconcile}, controller.queue)
}

// enqueueCluster enqueues the profiles of a cluster.
func (c *Controller) enqueueCluster(cluster string) {
	for _, namespace := range c.index.Reaching(cluster) {
		c.queue.Add(reconcile.Key{Namespace: namespace, Name: cluster})
	}
}

// enqueueNamespace enqueues the profiles in a namespace.
func (c *Controller) enqueueNamespace(name string) {
	for _, cluster := range c.index.Reached(name) {
		c.queue.Add(reconcile.Key{Namespace: name, Name: cluster})
	}
}

// shownChanged reports whether anything changed that a profile shows.
func shownChanged(old, current *clusterv1.ManagedCluster) bool {
	if (old.DeletionTimestamp == nil) != (current.DeletionTimestamp == nil) ||
		old.Labels[clusterv1.LabelClusterSet] != current.Labels[clusterv1.LabelClusterSet] {
		return true
	}
	a, b := &multiclusterv1alpha1.ClusterProfile{}, &multiclusterv1alpha1.ClusterProfile{}
	setStatus(a, old)
	setStatus(b, current)
	return !reflect.DeepEqual(a.Status, b.Status)
}

// Reconcile brings one profile up to date.
func (c *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	state, err := c.gather(ctx, key)
	if err != nil {
		return reconcile.Result{}, err
	}
	before := state.Profile
	if before == nil {
		before = &multiclusterv1alpha1.ClusterProfile{
			TypeMeta:   metav1.TypeMeta{APIVersion: multiclusterv1alpha1.GroupVersion.String(), Kind: "ClusterProfile"},
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		}
	}
	result, err := c.exec.Execute(ctx, before, Decide(state))
	if err == nil {
		c.recordTaken(state)
	}
	return result, err
}

// recordTaken records that another manager's profile was reported, while it is in the way.
func (c *Controller) recordTaken(s State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.isNameTaken() {
		c.told[s.Key] = s.Profile.UID
		return
	}
	delete(c.told, s.Key)
}

// gather reads one profile and its cluster from the caches.
func (c *Controller) gather(ctx context.Context, key reconcile.Key) (State, error) {
	s := State{Key: key, Reached: c.index.Reaches(key.Namespace, key.Name)}
	mc := &clusterv1.ManagedCluster{}
	err := c.reader.Get(ctx, reconcile.Key{Name: key.Name}, mc, manager.NotCopied)
	if reconcile.IgnoreNotFound(err) != nil {
		return s, fmt.Errorf("reading managedcluster %s: %w", key.Name, err)
	}
	if err == nil {
		s.Cluster = mc
	}
	profile := &multiclusterv1alpha1.ClusterProfile{}
	err = c.reader.Get(ctx, key, profile)
	if reconcile.IgnoreNotFound(err) != nil {
		return s, fmt.Errorf("reading clusterprofile %s: %w", key, err)
	}
	if err == nil {
		s.Profile = profile
		c.mu.Lock()
		s.Told = c.told[key] == profile.UID
		c.mu.Unlock()
	}
	ns := manager.Metadata(accept.NamespaceKind)
	err = c.reader.Get(ctx, reconcile.Key{Name: key.Namespace}, ns, manager.NotCopied)
	if reconcile.IgnoreNotFound(err) != nil {
		return s, fmt.Errorf("reading namespace %s: %w", key.Namespace, err)
	}
	s.Open = err == nil && ns.DeletionTimestamp == nil
	return s, nil
}
