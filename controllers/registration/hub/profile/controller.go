// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"context"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/accept"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/membership"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	multiclusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/multicluster/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/teardown"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Name identifies the loop.
const Name = "cluster.profile"

// resource is the resource of the profiles.
var resource = multiclusterv1alpha1.GroupVersion.WithResource("clusterprofiles")

// Controller is the loop.
type Controller struct {
	reader manager.Reader
	index  *membership.Index
	exec   *reconcile.Executor
	// told holds the UIDs of the profiles of other managers that were reported and are in the way.
	told sync.Map
}

// Config configures the loop.
type Config struct {
	// Client sends all writes.
	Client dynamic.Interface
	// Clock is the executor's clock.
	Clock clock.PassiveClock
	// Index has the sets of clusters and the namespaces bound to them.
	Index *membership.Index
}

// Register adds the loop to m. The API must be served.
func Register(m *manager.Manager, c Config) {
	index := c.Index
	controller := &Controller{reader: m.Reader(), index: index, exec: reconcile.NewExecutor(c.Client, Name, c.Clock)}
	queue := reconcile.NewQueue(Name)
	add := func(namespaces, clusters []string) {
		for _, namespace := range namespaces {
			for _, cluster := range clusters {
				queue.Add(reconcile.Key{Namespace: namespace, Name: cluster})
			}
		}
	}
	manager.Watch(m, &clusterv1.ManagedCluster{}, func(old, current *clusterv1.ManagedCluster) {
		switch {
		case current == nil:
			add(index.Reaching(old.Name), []string{old.Name})
		case old == nil || old.UID != current.UID || shownChanged(old, current):
			add(index.Reaching(current.Name), []string{current.Name})
		}
	})
	manager.Watch(m, &multiclusterv1alpha1.ClusterProfile{}, func(old, current *multiclusterv1alpha1.ClusterProfile) {
		queue.Add(reconcile.KeyOf(cmp.Or(current, old)))
	})
	manager.Watch(m, manager.Metadata(accept.NamespaceKind), func(old, current *metav1.PartialObjectMetadata) {
		// A binding may be seen before its namespace.
		if old == nil {
			add([]string{current.Name}, index.Reached(current.Name))
		}
	})
	index.Listen(membership.Listener{
		Member:  func(set, cluster string) { add(index.Bound(set), []string{cluster}) },
		Binding: func(namespace, set string) { add([]string{namespace}, index.Members(set)) },
	})
	m.Add(reconcile.Loop{Name: Name, Workers: 4, Reconcile: controller.Reconcile}, queue)
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
		before = emptyProfile(key)
	}
	result, err := c.exec.Execute(ctx, before, Decide(state))
	switch {
	case err != nil:
	case state.isNameTaken():
		c.told.Store(key, state.Profile.UID)
	default:
		c.told.Delete(key)
	}
	return result, err
}

// gather reads one profile and its cluster from the caches.
func (c *Controller) gather(ctx context.Context, key reconcile.Key) (s State, err error) {
	s = State{Key: key, Reached: c.index.Reaches(key.Namespace, key.Name)}
	if s.Cluster, err = hub.FindCluster(ctx, c.reader, key.Name, manager.NotCopied); err != nil {
		return s, err
	}
	if s.Profile, err = hub.Find(ctx, c.reader, key, &multiclusterv1alpha1.ClusterProfile{}); err != nil {
		return s, err
	}
	if s.Profile != nil {
		told, _ := c.told.Load(key)
		s.Told = told == s.Profile.UID
	}
	namespace := reconcile.Key{Name: key.Namespace}
	ns, err := hub.Find(ctx, c.reader, namespace, manager.Metadata(accept.NamespaceKind), manager.NotCopied)
	s.Open = ns != nil && ns.DeletionTimestamp == nil
	return s, err
}

// removal is the id of the loop that removes profiles; it has one key.
const removal = "cluster.profile-removal"

// Remove adds to m a loop that deletes this project's profiles once, for when the gate is
// off. Failures are retried.
func Remove(m *manager.Manager, c dynamic.Interface) {
	queue := reconcile.NewQueue(removal)
	queue.Add(reconcile.Key{Name: "all"})
	m.Add(reconcile.Loop{Name: removal, Reconcile: func(ctx context.Context, _ reconcile.Key) (reconcile.Result, error) {
		return reconcile.Result{}, teardown.Profiles(ctx, c)
	}}, queue)
}
