// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/lease"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/manager"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Name is the loop's id.
const Name = "cluster.approve"

const workers = 4

// retry while the leases are not all known yet.
const retry = 500 * time.Millisecond

// Config of the loop.
type Config struct {
	// Client writes, and asks for reviews.
	Client dynamic.Interface
	// Clock tells the time of answers.
	Clock clock.PassiveClock
	// Arrivals tells which clusters are alive.
	Arrivals *lease.Arrivals
	// AutoApprove lists users whose first requests need no person; it is empty
	// unless the gate ManagedClusterAutoApproval is on.
	AutoApprove []string
}

// Controller is the loop. Its keys are names of clusters.
type Controller struct {
	config Config
	reader client.Reader
	exec   *reconcile.Executor
}

// Register adds the loop to m.
func Register(m *manager.Manager, c Config) {
	controller := &Controller{config: c, reader: m.Reader(), exec: reconcile.NewExecutor(c.Client, Name, c.Clock)}
	queue := reconcile.NewQueue(Name)
	add := func(cluster string) {
		if cluster != "" {
			queue.Add(reconcile.Key{Name: cluster})
		}
	}
	manager.Watch(m, &certificatesv1.CertificateSigningRequest{}, func(old, current *certificatesv1.CertificateSigningRequest) {
		if current == nil {
			current = old
		}
		add(current.Labels[clusterv1.LabelClusterName])
	})
	manager.Watch(m, &clusterv1.ManagedCluster{}, func(old, current *clusterv1.ManagedCluster) {
		if current != nil && (old == nil || !maps.Equal(old.Annotations, current.Annotations)) {
			add(current.Name)
		}
	})
	m.Add(reconcile.Loop{Name: Name, Workers: workers, Reconcile: controller.Reconcile}, queue)
}

// Reconcile answers the open requests of one cluster.
func (c *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	select {
	case <-c.config.Arrivals.Synced():
	default:
		// Who is alive is not known yet, and nobody may be taken for dead.
		return reconcile.Result{RequeueAfter: retry}, nil
	}
	state, err := c.gather(ctx, key.Name)
	if err != nil || state.Cluster == nil {
		return reconcile.Result{}, err
	}
	decision := Decide(state)
	var errs []error
	for _, v := range decision.Verdicts {
		errs = append(errs, c.answer(ctx, v))
	}
	result, err := c.exec.Execute(ctx, state.Cluster, decision.Plan)
	return result, errors.Join(append(errs, err)...)
}

var requests = certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests")

// answer writes one verdict. The request's version fences it: one that changed
// meanwhile comes again by its event.
func (c *Controller) answer(ctx context.Context, v Verdict) error {
	u, err := typed.ToUnstructured(v.CSR)
	if err != nil {
		return err
	}
	_, err = c.config.Client.Resource(requests).Update(ctx, u, metav1.UpdateOptions{FieldManager: c.exec.Manager()}, "approval")
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("answering certificate request %s: %w", v.CSR.Name, err)
	}
	return nil
}
