// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/accept"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/addonhealth"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Name identifies the loop.
const Name = "cluster.gc"

// Config configures the loop.
type Config struct {
	// Client sends all writes.
	Client dynamic.Interface
	// Clock stamps conditions.
	Clock clock.PassiveClock
	// Clean is the gate ResourceCleanup. When it is off, clusters get no finalizer, and those
	// that have it lose it.
	Clean bool
	// Order is what is removed with a cluster, one resource after the other; empty means
	// add-ons, then works. Whoever configures other resources must grant the rights on them.
	Order []schema.GroupVersionResource
}

// ManifestWorkKind is the kind of works.
var ManifestWorkKind = workv1.GroupVersion.WithKind("ManifestWork")

// The watched resources; add-ons at their storage version, so that nothing depends on
// conversion.
var (
	addons = reconcile.ResourceOf(addonhealth.Kind)
	works  = reconcile.ResourceOf(ManifestWorkKind)
)

// Controller is the loop.
type Controller struct {
	config Config
	reader manager.Reader
	exec   *reconcile.Executor

	// complete reports whether the caches show all objects of a kind in a namespace.
	complete func(ctx context.Context, example reconcile.Object, namespace string) (bool, error)

	farewells farewells
}

// Register adds the loop to m.
func Register(m *manager.Manager, c Config) {
	if len(c.Order) == 0 {
		c.Order = []schema.GroupVersionResource{addons, works}
	}
	controller := &Controller{
		config: c, reader: m.Reader(), complete: m.Complete, exec: reconcile.NewExecutor(c.Client, Name, c.Clock),
		farewells: farewells{byName: map[string]farewell{}},
	}
	queue := reconcile.NewQueue(Name)
	add := func(cluster string) { queue.Add(reconcile.Key{Name: cluster}) }
	manager.Keep(m, manager.Metadata(accept.NamespaceKind))
	manager.Watch(m, &clusterv1.ManagedCluster{}, func(old, current *clusterv1.ManagedCluster) {
		switch {
		case current == nil:
			controller.farewells.recordGone(old.Name, old.UID)
			add(old.Name)
		case old == nil:
			controller.farewells.recordNew(current.Name, current.UID)
			if current.DeletionTimestamp != nil || c.Clean != slices.Contains(current.Finalizers, clusterv1.FinalizerResourceCleanup) {
				add(current.Name)
			}
		case current.DeletionTimestamp != nil || !reflect.DeepEqual(old.Finalizers, current.Finalizers):
			add(current.Name)
		}
	})
	manager.Watch(m, &addonhealth.AddOn{}, wakeFor[addonhealth.AddOn](add))
	manager.Watch(m, manager.Metadata(ManifestWorkKind), wakeFor[metav1.PartialObjectMetadata](add))
	m.Add(reconcile.Loop{Name: Name, Workers: 4, Reconcile: controller.Reconcile}, queue)
}

// wakeFor wakes the loop for an object that was added, is being deleted or is gone: what is
// added to a cluster being deleted is deleted too.
func wakeFor[T any, P interface {
	*T
	metav1.Object
}](add func(cluster string)) func(old, current P) {
	return func(old, current P) {
		if old == nil || current == nil || (old.GetDeletionTimestamp() == nil) != (current.GetDeletionTimestamp() == nil) {
			add(cmp.Or(current, old).GetNamespace())
		}
	}
}

// Reconcile removes what is next, or drops the cluster's finalizer.
func (c *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	known := c.farewells.get(key.Name)
	state, err := c.gather(ctx, key.Name, known)
	if err != nil {
		return reconcile.Result{}, err
	}
	nothing := state.isClear()
	before := state.Cluster
	switch {
	case before == nil:
		if known.gone && (!state.Owned || nothing) {
			c.farewells.forget(key.Name, known.cluster)
		}
		before = hub.Gone(key.Name)
	case before.DeletionTimestamp != nil:
		// Record it before the cluster is released: it may be gone the next moment.
		c.farewells.update(key.Name, before.UID, func(f *farewell) { f.clear = nothing })
	}
	result, err := c.exec.Execute(ctx, before, Decide(state))
	return result, errors.Join(state.Fault, err)
}

// ParseOrder parses entries of the form group/version/resource; an entry of the core group
// begins with a slash. Invalid entries are left out and returned as errors that say what is
// wrong.
func ParseOrder(entries []string) (order []schema.GroupVersionResource, bad []error) {
	for _, entry := range entries {
		parts := strings.Split(entry, "/")
		if len(parts) != 3 || parts[1] == "" || parts[2] == "" {
			bad = append(bad, fmt.Errorf("%q is not of the form group/version/resource, for example work.open-cluster-management.io/v1/manifestworks", entry))
			continue
		}
		r := schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}
		if r.GroupResource() == addons.GroupResource() {
			r = addons
		}
		if slices.Contains(order, r) {
			bad = append(bad, fmt.Errorf("%q is listed twice", entry))
			continue
		}
		order = append(order, r)
	}
	return order, bad
}
