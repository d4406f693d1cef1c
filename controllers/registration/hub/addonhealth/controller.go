// SPDX-License-Identifier: Apache-2.0

package addonhealth

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Names of the two loops.
const (
	Name     = "cluster.feature"
	nameAway = "addon.away"
)

// workers is the concurrency of each loop: a lost cluster affects all its add-ons, and a hub
// that lost its network those of all clusters.
const workers = 4

// Controller is both loops.
type Controller struct {
	client dynamic.Interface
	clock  clock.PassiveClock
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

// Config configures the loops.
type Config struct {
	// Client sends all writes, and reads an add-on whole before its status is written.
	Client dynamic.Interface
	// Clock is the executor's clock.
	Clock clock.PassiveClock
}

// Register adds the loops to m.
func Register(m *manager.Manager, c Config) {
	controller := &Controller{
		client: c.Client, clock: c.Clock, reader: m.Reader(), queue: reconcile.NewQueue(nameAway),
		labels: reconcile.NewExecutor(c.Client, Name, c.Clock), away: reconcile.NewExecutor(c.Client, nameAway, c.Clock),
		told: map[reconcile.Key]bool{}, said: map[reconcile.Key]time.Time{},
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
			controller.forget(reconcile.KeyOf(old))
			labels.Add(reconcile.Key{Name: old.Namespace})
		case old == nil || !reflect.DeepEqual(old.Status, current.Status) || (old.DeletionTimestamp == nil) != (current.DeletionTimestamp == nil):
			labels.Add(reconcile.Key{Name: current.Namespace})
			away.Add(reconcile.KeyOf(current))
		}
	})
	m.Add(reconcile.Loop{Name: Name, Workers: workers, Reconcile: manager.For(m.Reader(), controller.Reconcile, nil)}, labels)
	m.Add(reconcile.Loop{Name: nameAway, Workers: workers, Reconcile: controller.ReconcileAway}, away)
}

// view is the part of a cluster that concerns the loops.
type view struct {
	known    bool   // it has been heard from
	away     bool   // it is Unknown
	message  string // why
	features string // its feature labels
}

func viewOf(mc *clusterv1.ManagedCluster) view {
	if mc == nil {
		return view{}
	}
	var v view
	if c := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionAvailable); c != nil {
		v.known, v.away = true, c.Status == metav1.ConditionUnknown
		if v.away {
			v.message = c.Reason + " " + c.Message
		}
	}
	for _, key := range slices.Sorted(maps.Keys(mc.Labels)) {
		if strings.HasPrefix(key, clusterv1.LabelPrefixFeatureAddOn) {
			v.features += key + "=" + mc.Labels[key] + ","
		}
	}
	return v
}

// forget drops what is kept of an add-on that is gone.
func (c *Controller) forget(k reconcile.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.told, k)
	delete(c.said, k)
}

func (c *Controller) listAddOns(ctx context.Context, cluster string) ([]AddOn, error) {
	list := &AddOnList{}
	if err := c.reader.List(ctx, list, manager.InNamespace(cluster), manager.NotCopied); err != nil {
		return nil, fmt.Errorf("listing add-ons of cluster %s: %w", cluster, err)
	}
	return list.Items, nil
}

// Reconcile brings the labels of one cluster up to date.
func (c *Controller) Reconcile(ctx context.Context, mc *clusterv1.ManagedCluster) (reconcile.Result, error) {
	list, err := c.listAddOns(ctx, mc.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	plan := Decide(State{Cluster: mc, AddOns: list, Told: func(addon string) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.told[reconcile.Key{Namespace: mc.Name, Name: addon}]
	}})
	result, err := c.labels.Execute(ctx, mc, plan)
	if err == nil && result.RequeueAfter == 0 && len(plan.Events) > 0 {
		// The Events are sent now, and not again.
		c.mu.Lock()
		defer c.mu.Unlock()
		for i := range list {
			if _, ok := labelKey(list[i].Name); !ok {
				c.told[reconcile.Key{Namespace: mc.Name, Name: list[i].Name}] = true
			}
		}
	}
	return result, err
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
	condition, later := decideAway(state)
	if condition == nil {
		return reconcile.Result{RequeueAfter: later}, nil
	}
	// All conditions are sent, but the cache holds only one.
	live, err := c.client.Resource(reconcile.ResourceOf(Kind)).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading managedclusteraddon %s: %w", key, err)
	}
	before, err := typed.FromUnstructured[AddOn](live)
	if err != nil {
		return reconcile.Result{}, err
	}
	after := before.DeepCopy()
	reconcile.SetCondition(&after.Status.Conditions, *condition, state.Now)
	result, err := c.away.Execute(ctx, before, reconcile.Plan{Object: after})
	if err == nil && result.RequeueAfter == 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.said[key] = state.Now
	}
	return result, err
}

// gatherAway reads one add-on and its cluster.
func (c *Controller) gatherAway(ctx context.Context, key reconcile.Key) (s awayState, err error) {
	s.Now = c.clock.Now()
	if s.AddOn, err = hub.Find(ctx, c.reader, key, &AddOn{TypeMeta: metav1.TypeMeta{Kind: Kind.Kind}}); err != nil || s.AddOn == nil {
		return s, err
	}
	s.Cluster, err = hub.FindCluster(ctx, c.reader, key.Namespace)
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Said = c.said[key]
	return s, err
}
