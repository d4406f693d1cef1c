// SPDX-License-Identifier: Apache-2.0

package taint

import (
	"context"
	"reflect"

	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Name identifies the loop.
const Name = "cluster.taint"

// Register adds the loop to m; clk is the executor's clock.
func Register(m *manager.Manager, client dynamic.Interface, clk clock.PassiveClock) {
	exec, queue := reconcile.NewExecutor(client, Name, clk), reconcile.NewQueue(Name)
	manager.Watch(m, &clusterv1.ManagedCluster{}, func(old, current *clusterv1.ManagedCluster) {
		if current == nil {
			return
		}
		changed := old == nil || wantedTaint(old.Status.Conditions) != wantedTaint(current.Status.Conditions) ||
			!reflect.DeepEqual(old.Spec.Taints, current.Spec.Taints)
		if changed && !hasRightTaints(current) {
			queue.Add(reconcile.Key{Name: current.Name})
		}
	})
	pass := func(ctx context.Context, mc *clusterv1.ManagedCluster) (reconcile.Result, error) {
		return exec.Execute(ctx, mc, Decide(mc))
	}
	m.Add(reconcile.Loop{Name: Name, Workers: 4, Reconcile: manager.For(m.Reader(), pass, nil)}, queue)
}
