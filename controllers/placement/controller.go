// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Name is the loop's id; the field manager of the objects it creates is derived from it.
const Name = "cluster.placement"

// workers is how many placements have their decisions written at once; the decisions
// themselves are made one after the other.
const workers = 4

// settle is how long changes of clusters, sets and scores are gathered before the
// placements that they affect are decided again: many clusters often change together.
const settle = 100 * time.Millisecond

// costlyRetry is when a placement with costly expressions is reconciled again.
const costlyRetry = 10 * time.Millisecond

// Config of the loop.
type Config struct {
	// Client writes.
	Client dynamic.Interface
	// Clock tells the time of conditions, tolerations and scores.
	Clock clock.PassiveClock
	// Metrics record how long decisions and writes take; may be nil.
	Metrics *Metrics
}

// Controller is the loop. Its keys are placements.
type Controller struct {
	clock   clock.PassiveClock
	exec    *reconcile.Executor
	queue   *reconcile.Queue
	fleet   *fleet
	metrics *Metrics
}

// Register adds the loop to m.
func Register(m *manager.Manager, c Config) {
	if c.Metrics == nil {
		c.Metrics = NewMetrics()
	}
	controller := &Controller{clock: c.Clock, queue: reconcile.NewQueue(Name), metrics: c.Metrics}
	controller.fleet = newFleet(controller.queue, func(f func(*clusterv1.ManagedCluster)) error {
		return manager.Each(m.Reader(), &clusterv1.ManagedCluster{}, f)
	})
	controller.fleet.scheduler.Measure(schedule.Stopwatch{Now: c.Clock.Now, Took: c.Metrics.observeStep})
	controller.exec = reconcile.NewExecutor(adopting{c.Client, controller.fleet.recordFound}, Name, c.Clock)
	controller.exec.OnWrite(controller.fleet.recordWrite)
	manager.Watch(m, &clusterv1.ManagedCluster{}, controller.fleet.clusterChanged)
	manager.Watch(m, &clusterv1beta2.ManagedClusterSet{}, controller.fleet.setChanged)
	manager.Watch(m, &clusterv1beta2.ManagedClusterSetBinding{}, controller.fleet.bindingChanged)
	manager.Watch(m, &clusterv1alpha1.AddOnPlacementScore{}, controller.fleet.scoreChanged)
	manager.Watch(m, &clusterv1beta1.Placement{}, controller.fleet.placementChanged)
	manager.Watch(m, &clusterv1beta1.PlacementDecision{}, controller.fleet.decisionChanged)
	m.AddTask(controller.start)
	m.Add(reconcile.Loop{Name: Name, Workers: workers, Reconcile: controller.Reconcile}, controller.queue)
}

// start queues all placements, once everything that exists is known.
func (c *Controller) start(ctx context.Context) error {
	if err := c.fleet.start(); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// Reconcile decides on one placement and writes what differs.
func (c *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	began := c.clock.Now()
	state, ok := c.fleet.decide(key, began)
	if !ok {
		return reconcile.Result{}, nil
	}
	switch state.Result.Skip {
	case schedule.SkipNone:
	case schedule.SkipMore:
		return reconcile.Result{RequeueAfter: costlyRetry}, nil
	default:
		return reconcile.Result{}, nil
	}
	c.metrics.scheduling.Observe(c.clock.Since(began).Seconds())
	plan := Decide(state)
	c.fleet.recordUnchanged(state, plan)
	if after, ok := plan.Object.(*clusterv1beta1.Placement); ok {
		c.fleet.begin(key, &after.Status)
		defer c.fleet.end(key)
	}
	if len(plan.Writes) == 0 {
		return c.exec.Execute(ctx, state.Placement, plan)
	}
	logr.FromContextOrDiscard(ctx).V(1).Info("Decisions change", "placement", key.String(), "selected", state.Result.Selected,
		"unscheduled", state.Result.Unscheduled, "candidates", state.Result.Candidates, "groups", len(state.Result.Groups), "writes", len(plan.Writes))
	writing := c.clock.Now()
	result, err := c.exec.Execute(ctx, state.Placement, plan)
	c.metrics.bind.Observe(c.clock.Since(writing).Seconds())
	return result, err
}
