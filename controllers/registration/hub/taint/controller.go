// SPDX-License-Identifier: Apache-2.0

package taint

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/manager"
)

// Name is the loop's id.
const Name = "cluster.taint"

const workers = 4

// Config of the loop.
type Config struct {
	// Client writes.
	Client dynamic.Interface
	// Clock tells the executor the time.
	Clock clock.PassiveClock
}

// Controller is the loop.
type Controller struct {
	reader client.Reader
	exec   *reconcile.Executor
}

// Register adds the loop to m.
func Register(m *manager.Manager, c Config) {
	controller := &Controller{reader: m.Reader(), exec: reconcile.NewExecutor(c.Client, Name, c.Clock)}
	queue := reconcile.NewQueue(Name)
	manager.Watch(m, &clusterv1.ManagedCluster{}, func(old, current *clusterv1.ManagedCluster) {
		if current == nil {
			return
		}
		changed := old == nil || Wanted(old.Status.Conditions) != Wanted(current.Status.Conditions) ||
			!reflect.DeepEqual(old.Spec.Taints, current.Spec.Taints)
		if changed && !right(current) {
			queue.Add(reconcile.Key{Name: current.Name})
		}
	})
	m.Add(reconcile.Loop{Name: Name, Workers: workers, Reconcile: controller.Reconcile}, queue)
}

// Reconcile brings the taints of one cluster in step.
func (c *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	mc := &clusterv1.ManagedCluster{}
	if err := c.reader.Get(ctx, key, mc); err != nil {
		if apierrors.IsNotFound(err) {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("reading managedcluster %s: %w", key.Name, err)
	}
	return reconcile.Run(ctx, c.exec, mc, gather, Decide)
}
