// SPDX-License-Identifier: Apache-2.0

package setbinding

import (
	"context"
	"reflect"

	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/membership"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Name identifies the loop.
const Name = "setbinding.bound"

// Register adds the loop to m; index has the bindings of sets.
func Register(m *manager.Manager, client dynamic.Interface, clk clock.PassiveClock, index *membership.Index) {
	exec, queue := reconcile.NewExecutor(client, Name, clk), reconcile.NewQueue(Name)
	manager.Watch(m, &clusterv1beta2.ManagedClusterSetBinding{}, func(old, current *clusterv1beta2.ManagedClusterSetBinding) {
		if current != nil && (old == nil || old.Generation != current.Generation || !reflect.DeepEqual(old.Status, current.Status)) {
			queue.Add(reconcile.KeyOf(current))
		}
	})
	index.Listen(membership.Listener{Presence: func(set string) {
		for _, namespace := range index.Bound(set) {
			queue.Add(reconcile.Key{Namespace: namespace, Name: set})
		}
	}})
	gather := func(ctx context.Context, binding *clusterv1beta2.ManagedClusterSetBinding) (State, error) {
		name := reconcile.Key{Name: binding.Spec.ClusterSet}
		set, err := hub.Find(ctx, m.Reader(), name, &clusterv1beta2.ManagedClusterSet{}, manager.NotCopied)
		return State{Binding: binding, Now: clk.Now(), Exists: set != nil, Deleting: set != nil && set.DeletionTimestamp != nil}, err
	}
	pass := func(ctx context.Context, binding *clusterv1beta2.ManagedClusterSetBinding) (reconcile.Result, error) {
		return reconcile.Run(ctx, exec, binding, gather, Decide)
	}
	m.Add(reconcile.Loop{Name: Name, Workers: 2, Reconcile: manager.For(m.Reader(), pass, nil)}, queue)
}
