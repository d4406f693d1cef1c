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

// Config configures the loop.
type Config struct {
	// Client sends all writes.
	Client dynamic.Interface
	// Clock is the executor's clock.
	Clock clock.PassiveClock
}

// Controller is the loop.
type Controller struct{ exec *reconcile.Executor }

// Register adds the loop to m.
func Register(m *manager.Manager, c Config) {
	controller, queue := &Controller{reconcile.NewExecutor(c.Client, Name, c.Clock)}, reconcile.NewQueue(Name)
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
	m.Add(reconcile.Loop{Name: Name, Workers: 4, Reconcile: manager.For(m.Reader(), controller.Reconcile, nil)}, queue)
}

// Reconcile brings the taints of one cluster up to date.
func (c *Controller) Reconcile(ctx context.Context, mc *clusterv1.ManagedCluster) (reconcile.Result, error) {
	return c.exec.Execute(ctx, mc, Decide(mc))
}
