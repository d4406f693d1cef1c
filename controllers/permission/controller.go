// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"cmp"
	"context"
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/permission/grant"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/accept"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	permissionv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/rbac/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Name is the loop's id.
const Name = "cluster.permission"

const workers = 4

// Config of the loop.
type Config struct {
	// Client reads and writes.
	Client dynamic.Interface
	// Clock tells the time of conditions.
	Clock clock.PassiveClock
}

// Controller is the loop. Its keys are ClusterPermissions.
type Controller struct {
	client   dynamic.Interface
	reader   manager.Reader
	clock    clock.PassiveClock
	exec     *reconcile.Executor
	queue    *reconcile.Queue
	works    *works
	accounts *accounts

	mu sync.Mutex
	// selecting are the ClusterPermissions with selectors of namespaces.
	selecting map[reconcile.Key]bool
	// sent is what was last sent for each ClusterPermission.
	sent map[reconcile.Key]Sent
}

// Register adds the loop to m. The API must be served.
func Register(m *manager.Manager, c Config) {
	queue := reconcile.NewQueue(Name)
	controller := &Controller{
		client: c.Client, reader: m.Reader(), clock: c.Clock, exec: reconcile.NewExecutor(c.Client, Name, c.Clock), queue: queue,
		works: newWorks(c.Client, queue.Add), selecting: map[reconcile.Key]bool{}, sent: map[reconcile.Key]Sent{},
	}
	controller.accounts = newAccounts(c.Client, controller.wake)
	manager.Watch(m, &permissionv1alpha1.ClusterPermission{}, controller.changed)
	manager.Watch(m, &clusterv1.ManagedCluster{}, func(old, current *clusterv1.ManagedCluster) {
		if old == nil || current == nil || old.UID != current.UID || (old.DeletionTimestamp == nil) != (current.DeletionTimestamp == nil) {
			controller.wake(cmp.Or(current, old).Name)
		}
	})
	manager.Watch(m, manager.Metadata(accept.NamespaceKind), func(old, current *metav1.PartialObjectMetadata) {
		if old == nil || current == nil || !maps.Equal(old.Labels, current.Labels) {
			controller.wakeSelecting()
		}
	})
	m.AddTask(controller.works.Run)
	m.AddTask(controller.accounts.Run)
	m.Add(reconcile.Loop{Name: Name, Workers: workers, Reconcile: manager.For(m.Reader(), controller.Reconcile, controller.forget)}, queue)
}

// changed records which ClusterPermissions select namespaces, and queues the one that changed.
// What changes in the status is from this loop.
func (c *Controller) changed(old, current *permissionv1alpha1.ClusterPermission) {
	key := reconcile.KeyOf(cmp.Or(current, old))
	c.mu.Lock()
	if current != nil && len(grant.Selecting(&current.Spec)) > 0 {
		c.selecting[key] = true
	} else {
		delete(c.selecting, key)
	}
	c.mu.Unlock()
	c.queue.Add(key)
}

// wake queues the ClusterPermissions of a cluster, or all if its name is empty.
func (c *Controller) wake(cluster string) {
	var list permissionv1alpha1.ClusterPermissionList
	if err := c.reader.List(context.Background(), &list, manager.InNamespace(cluster), manager.NotCopied); err != nil {
		return // only a kind that is not watched is an error
	}
	for i := range list.Items {
		c.queue.Add(reconcile.KeyOf(&list.Items[i]))
	}
}

func (c *Controller) wakeSelecting() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.selecting {
		c.queue.Add(key)
	}
}

func (c *Controller) forget(key reconcile.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sent, key)
}

// Reconcile brings one ClusterPermission up to date.
func (c *Controller) Reconcile(ctx context.Context, cp *permissionv1alpha1.ClusterPermission) (reconcile.Result, error) {
	if err := c.works.WaitSynced(ctx); err != nil {
		return reconcile.Result{}, err
	}
	if err := c.accounts.addOns.WaitSynced(ctx); err != nil {
		return reconcile.Result{}, err
	}
	state, err := c.gather(ctx, cp)
	if err != nil {
		return reconcile.Result{}, err
	}
	decision := Decide(state)
	result, err := c.exec.Execute(ctx, cp, decision.Plan)
	if err == nil && decision.Sent != (Sent{}) {
		c.mu.Lock()
		c.sent[reconcile.KeyOf(cp)] = decision.Sent
		c.mu.Unlock()
	}
	return result, err
}
