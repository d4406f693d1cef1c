// SPDX-License-Identifier: Apache-2.0

package accept

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/addonhealth"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/lease"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Name identifies the loop; Manager is the field manager of its applies.
const (
	Name    = "cluster.accept"
	Manager = "ocm." + Name
)

// workers is the concurrency: accepting a fleet is bound by the API server's latency.
const workers = 8

// Config configures the loop.
type Config struct {
	// Client sends all writes.
	Client dynamic.Interface
	// Clock stamps conditions.
	Clock clock.PassiveClock
	// Leases are the leases of all clusters.
	Leases *lease.Arrivals
	// AutoAccept lists the users whose clusters are accepted automatically; empty unless the
	// gate ManagedClusterAutoApproval is on.
	AutoAccept []string
	// Labels are put on the namespace and the RBAC objects of every cluster, and on the
	// shared roles, in addition to the labels that identify the owner.
	Labels map[string]string
}

// Controller is the loop.
type Controller struct {
	config Config
	reader manager.Reader
	exec   *reconcile.Executor
	sight  manager.Sight
	// complete reports whether the caches show all objects of a kind in a namespace.
	complete func(ctx context.Context, example reconcile.Object, namespace string) (bool, error)
}

// Register adds the loop to m.
func Register(m *manager.Manager, c Config) {
	controller := &Controller{config: c, reader: m.Reader(), complete: m.Complete, exec: reconcile.NewExecutor(c.Client, Name, c.Clock)}
	queue := reconcile.NewQueue(Name)
	add := func(cluster string) {
		if cluster != "" {
			queue.Add(reconcile.Key{Name: cluster})
		}
	}
	manager.Watch(m, &clusterv1.ManagedCluster{}, func(old, current *clusterv1.ManagedCluster) {
		switch {
		case current == nil:
			add(old.Name)
		case old == nil || relevant(old, current):
			add(current.Name)
		}
	})
	manager.Watch(m, manager.Metadata(NamespaceKind), func(old, current *metav1.PartialObjectMetadata) {
		if old == nil || current == nil || old.DeletionTimestamp != current.DeletionTimestamp || !reflect.DeepEqual(old.Labels, current.Labels) {
			add(cmp.Or(current, old).Name)
		}
	})
	manager.Watch(m, manager.Metadata(manifestWorkKind), func(old, current *metav1.PartialObjectMetadata) {
		if current == nil {
			add(old.Namespace)
		}
	})
	manager.Watch(m, &addonhealth.AddOn{}, func(old, current *addonhealth.AddOn) {
		if current == nil {
			add(old.Namespace)
		}
	})
	byLabel := func(old, current *metav1.PartialObjectMetadata) {
		add(cmp.Or(current, old).Labels[clusterv1.LabelClusterName])
	}
	manager.Watch(m, manager.Metadata(ClusterRoleKind), byLabel)
	manager.Watch(m, manager.Metadata(ClusterRoleBindingKind), byLabel)
	manager.Watch(m, manager.Metadata(RoleBindingKind), byLabel)
	c.Leases.OnPresence(add)
	m.Add(reconcile.Loop{Name: Name, Workers: workers, Reconcile: controller.Reconcile}, queue)
}

// relevant reports whether a change of a cluster concerns this loop; the agent's heartbeats
// and status reports do not.
func relevant(old, current *clusterv1.ManagedCluster) bool {
	return old.Generation != current.Generation ||
		!reflect.DeepEqual(old.DeletionTimestamp, current.DeletionTimestamp) ||
		!reflect.DeepEqual(old.Finalizers, current.Finalizers) ||
		!reflect.DeepEqual(old.Annotations, current.Annotations) ||
		hub.StatusOf(old, clusterv1.ConditionHubAccepted) != hub.StatusOf(current, clusterv1.ConditionHubAccepted) ||
		hub.StatusOf(old, clusterv1.ConditionJoined) != hub.StatusOf(current, clusterv1.ConditionJoined)
}

// Reconcile moves one cluster closer to its spec.
func (c *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	state, err := c.gather(ctx, key.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	before := state.Cluster
	if before == nil {
		before = hub.Gone(key.Name)
	}
	decision := Decide(state)
	result, err := c.exec.Execute(ctx, before, decision.Plan)
	if err = errors.Join(state.Fault, err); err != nil || !decision.CreateLease {
		return result, err
	}
	return result, c.createLease(ctx, key.Name)
}

var leases = coordinationv1.SchemeGroupVersion.WithResource("leases")

// createLease creates the cluster's lease, stamped with the current time; an existing lease
// is left alone.
func (c *Controller) createLease(ctx context.Context, cluster string) error {
	holder, now := clusterv1.LeaseName, metav1.NewMicroTime(c.config.Clock.Now())
	u, err := typed.ToUnstructured(&coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{APIVersion: coordinationv1.SchemeGroupVersion.String(), Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: clusterv1.LeaseName, Labels: labels(cluster)},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &now},
	})
	if err != nil {
		return err
	}
	_, err = c.config.Client.Resource(leases).Namespace(cluster).Create(ctx, u, metav1.CreateOptions{FieldManager: Manager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the lease of cluster %s: %w", cluster, err)
	}
	return nil
}
