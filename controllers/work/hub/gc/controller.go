// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// Name is the loop's id.
const Name = "work.gc"

const workers = 4

// Config of the loop.
type Config struct {
	// Client watches and deletes.
	Client dynamic.Interface
	// Clock gives the time that the time to live is compared with.
	Clock clock.PassiveClock
}

// Controller is the loop. Its keys are ManifestWorks.
type Controller struct {
	clock    clock.PassiveClock
	exec     *reconcile.Executor
	finished *watch.Collection[Finished]
}

// Register adds the loop to m.
func Register(m *manager.Manager, c Config) {
	queue := reconcile.NewQueue(Name)
	controller := &Controller{clock: c.Clock, exec: reconcile.NewExecutor(c.Client, Name, c.Clock)}
	controller.finished = watch.New(watch.Options[Finished]{
		Client: c.Client, Resource: worksResource, LabelSelector: "!" + workv1alpha1.LabelManifestWorkReplicaSet,
		Keep: keep, Same: same,
	})
	controller.finished.OnChange(queue.Add)
	m.AddTask(controller.finished.Run)
	m.Add(reconcile.Loop{Name: Name, Workers: workers, Reconcile: controller.Reconcile}, queue)
}

// Reconcile deletes one ManifestWork when its time to live is over, or requeues it until
// then.
func (c *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	finished, ok := c.finished.Get(key)
	if !ok {
		return reconcile.Result{}, nil
	}
	work := &workv1.ManifestWork{
		TypeMeta:   metav1.TypeMeta{APIVersion: workv1.GroupVersion.String(), Kind: "ManifestWork"},
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: finished.UID, ResourceVersion: finished.Version},
	}
	return c.exec.Execute(ctx, work, Decide(State{Key: key, Work: finished, Now: c.clock.Now()}))
}
