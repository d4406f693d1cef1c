// SPDX-License-Identifier: Apache-2.0

package addonhealth

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Names of the two loops.
const (
	Name     = "cluster.feature"
	nameAway = "addon.away"
)

// workers is the concurrency of each loop: a lost cluster affects all its add-ons, and a hub
// that lost its network those of all clusters.
const workers = 4

// Config configures the loops.
type Config struct {
	// Client sends all writes, and reads an add-on whole before its status is written.
	Client dynamic.Interface
	// Clock stamps conditions.
	Clock clock.PassiveClock
}

// Controller is both loops.
type Controller struct {
	config Config
	reader manager.Reader
	labels *reconcile.Executor
	away   *reconcile.Executor
	queue  *reconcile.Queue // of the second loop

	mu sync.Mutex
	// told are the add-ons already reported as unable to have a label.
	told map[reconcile.Key]bool
	// said is when each add-on was last set Unknown.
	said map[reconcile.Key]time.Time
}

// Register adds the loops to m.
func Register(m *manager.Manager, c Config) {
	controller := &Controller{
		config: c,
		reader: m.Reader(),
		labels: reconcile.NewExecutor(c.Client, Name, c.Clock),
		away:   reconcile.NewExecutor(c.Client, nameAway, c.Clock),
		queue:  reconcile.NewQueue(nameAway),
		told:   map[reconcile.Key]bool{}, said: map[reconcile.Key]time.Time{},
	}
	labels, away := reconcile.NewQueue(Name), controller.queue
	manager.Watch(m, &clusterv1.ManagedCluster{}, func(old, current *clusterv1.ManagedCluster) {
		if current == nil {
			return
		}
		before, now := viewOf(old), viewOf(current)
		// Add-ons enqueue their cluster themselves; one without any is only reconciled for
		// labels that are left.
		if before.features != now.features || old != nil && before.known != now.known {
			labels.Add(reconcile.Key{Name: current.Name})
		}
		if now.away && old != nil && before.message != now.message {
			away.Add(reconcile.Key{Namespace: current.Name}) // all add-ons of the cluster
		}
	})
	manager.Watch(m, &AddOn{}, func(old, current *AddOn) {
		switch {
		case current == nil:
			key := reconcile.Key{Namespace: old.Namespace, Name: old.Name}
			controller.forget(key)
			labels.Add(reconcile.Key{Name: key.Namespace})
		case old == nil || !reflect.DeepEqual(old.Status, current.Status) || (old.DeletionTimestamp == nil) != (current.DeletionTimestamp == nil):
			labels.Add(reconcile.Key{Name: current.Namespace})
			away.Add(reconcile.Key{Namespace: current.Namespace, Name: current.Name})
		}
	})
	m.Add(reconcile.Loop{Name: Name, Workers: workers, Reconcile: manager.For(m.Reader(), controller.Reconcile, nil)}, labels)
	m.Add(reconcile.Loop{Name: nameAway, Workers: workers, Reconcile: controller.ReconcileAway}, away)
}

func (c *Controller) listAddOns(ctx context.Context, cluster string) ([]AddOn, error) {
	list := &AddOnList{}
	if err := c.reader.List(ctx, list, manager.InNamespace(cluster), manager.NotCopied); err != nil {
		return nil, fmt.Errorf("listing add-ons of cluster %s: %w", cluster, err)
	}
	return list.Items, nil
}

func (c *Controller) forget(k reconcile.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.told, k)
	delete(c.said, k)
}

// Reconcile brings the labels of one cluster up to date.
func (c *Controller) Reconcile(ctx context.Context, mc *clusterv1.ManagedCluster) (reconcile.Result, error) {
	state, err := c.gather(ctx, mc)
	if err != nil {
		return reconcile.Result{}, err
	}
	plan := Decide(state)
	result, err := c.labels.Execute(ctx, mc, plan)
	if err == nil && result.RequeueAfter == 0 && len(plan.Events) > 0 {
		// The Events are sent now, and not again.
		c.mu.Lock()
		for _, name := range unlabelled(state.AddOns) {
			c.told[reconcile.Key{Namespace: mc.Name, Name: name}] = true
		}
		c.mu.Unlock()
	}
	return result, err
}

// readCluster reads a ManagedCluster; nil when it does not exist.
func (c *Controller) readCluster(ctx context.Context, name string) (*clusterv1.ManagedCluster, error) {
	mc := &clusterv1.ManagedCluster{}
	err := c.reader.Get(ctx, reconcile.Key{Name: name}, mc)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading managedcluster %s: %w", name, err)
	}
	return mc, nil
}

// ReconcileAway sets one add-on Unknown while its cluster is away; a key without a name
// stands for all add-ons of a cluster.
func (c *Controller) ReconcileAway(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	if key.Name == "" {
		list, err := c.listAddOns(ctx, key.Namespace)
		for i := range list {
			c.queue.Add(reconcile.Key{Namespace: key.Namespace, Name: list[i].Name})
		}
		return reconcile.Result{}, err
	}
	state, err := c.gatherAway(ctx, key)
	if err != nil || state.AddOn == nil {
		return reconcile.Result{}, err
	}
	word := decideAway(state)
	if word.Condition == nil {
		return reconcile.Result{RequeueAfter: word.Later}, nil
	}
	// The whole status is sent, but the cache holds only part of it.
	live, err := c.config.Client.Resource(reconcile.ResourceOf(Kind)).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading managedclusteraddon %s: %w", key, err)
	}
	plan, err := conditionPlan(live, *word.Condition, state.Now)
	if err != nil {
		return reconcile.Result{}, err
	}
	result, err := c.away.Execute(ctx, live, plan)
	if err == nil && result.RequeueAfter == 0 {
		c.mu.Lock()
		c.said[key] = state.Now
		c.mu.Unlock()
	}
	return result, err
}
