// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/lease"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Name identifies the loop.
const Name = "cluster.approve"

// retry is the delay while not all leases are known yet, and after losing a race for a
// token's use.
const retry = 500 * time.Millisecond

// Config configures the loop.
type Config struct {
	// Client sends all writes and access reviews.
	Client dynamic.Interface
	// Clock stamps answers.
	Clock clock.PassiveClock
	// Arrivals shows which clusters are alive.
	Arrivals *lease.Arrivals
	// AutoApprove lists the users whose first requests are approved automatically; empty
	// unless the gate ManagedClusterAutoApproval is on.
	AutoApprove []string
}

// A cluster with many requests is reconciled once in a while, not once per request, so that
// flooding one cluster costs no more than its turn.
const (
	many  = 32
	pause = time.Second
)

// Controller is the loop. Its keys are cluster names.
type Controller struct {
	config   Config
	reader   manager.Reader
	exec     *reconcile.Executor
	requests *Requests
	tokens   *tokens
	uses     *uses
}

// Register adds the loop to m.
func Register(m *manager.Manager, c Config) {
	controller := &Controller{
		config: c, reader: m.Reader(), exec: reconcile.NewExecutor(c.Client, Name, c.Clock),
		requests: newRequests(), tokens: newTokens(), uses: newUses(),
	}
	queue := reconcile.NewQueue(Name)
	add := func(cluster string) {
		switch {
		case cluster == "":
		case controller.requests.Count(cluster) > many:
			queue.AddAfter(reconcile.Key{Name: cluster}, pause)
		default:
			queue.Add(reconcile.Key{Name: cluster})
		}
	}
	manager.Watch(m, &certificatesv1.CertificateSigningRequest{}, func(old, current *certificatesv1.CertificateSigningRequest) {
		controller.requests.Observe(old, current)
		if old == nil && controller.requests.Open() > maxStrays {
			queue.AddAfter(strays, pause)
		}
		for _, csr := range []*certificatesv1.CertificateSigningRequest{old, current} {
			if csr != nil {
				add(csr.Labels[clusterv1.LabelClusterName])
			}
		}
		for _, cluster := range controller.rivals(old, current) {
			add(cluster)
		}
	})
	manager.Watch(m, &corev1.Secret{}, func(old, current *corev1.Secret) {
		if credential := controller.tokens.Observe(old, current, c.Clock.Now()); credential != "" {
			for _, cluster := range controller.requests.With(credential, isOpen) {
				add(cluster)
			}
		}
	})
	manager.Watch(m, &clusterv1.ManagedCluster{}, func(old, current *clusterv1.ManagedCluster) {
		controller.uses.observe(old, current)
		if current == nil && controller.requests.Open() > maxStrays {
			queue.AddAfter(strays, pause)
		}
		if current != nil && controller.concerns(old, current) {
			add(current.Name)
		}
	})
	// A lease that appears late may belong to an agent whose name another agent requests.
	c.Arrivals.OnPresence(func(cluster string) {
		if controller.requests.Count(cluster) > 0 {
			add(cluster)
		}
	})
	m.Add(reconcile.Loop{Name: Name, Workers: 4, Reconcile: controller.Reconcile}, queue)
}

// concerns reports whether to reconcile a cluster that appears or changes. Most of those
// found at startup need none: they have no requests and no true condition about one.
func (c *Controller) concerns(old, current *clusterv1.ManagedCluster) bool {
	if old == nil {
		return c.requests.Count(current.Name) > 0 || apimeta.IsStatusConditionTrue(current.Status.Conditions, clusterv1.ConditionDuplicateClusterName)
	}
	return !maps.Equal(old.Annotations, current.Annotations) || agentConditions(old) != agentConditions(current)
}

// agentConditions is the part of a cluster's status that shows its agent coming or going: a request
// may be waiting for exactly that, and lease renewals do not wake the loop.
func agentConditions(mc *clusterv1.ManagedCluster) [2]metav1.ConditionStatus {
	return [2]metav1.ConditionStatus{hub.StatusOf(mc, clusterv1.ConditionJoined), hub.StatusOf(mc, clusterv1.ConditionAvailable)}
}

// Reconcile answers the open requests of one cluster, or cleans up those of clusters that do
// not exist.
func (c *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	select {
	case <-c.config.Arrivals.Synced():
	default:
		// It is not known yet which clusters are alive, and none may be taken for dead.
		return reconcile.Result{RequeueAfter: retry}, nil
	}
	if key == strays {
		return c.sweepStrays(ctx)
	}
	state, err := c.gather(ctx, key.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	decision := Decide(state)
	for _, v := range decision.Verdicts {
		if !c.reserveUses(key.Name, v.Spends) {
			return reconcile.Result{RequeueAfter: retry}, nil // another worker was faster
		}
	}
	var errs []error
	for _, v := range decision.Verdicts {
		errs = append(errs, c.writeAnswer(ctx, v))
	}
	result := reconcile.Result{RequeueAfter: decision.RequeueAfter}
	if state.Cluster != nil {
		result, err = c.exec.Execute(ctx, state.Cluster, decision.Plan)
		errs = append(errs, err)
	}
	for _, csr := range decision.Leftovers {
		errs = append(errs, c.deleteRequest(ctx, csr))
	}
	return result, errors.Join(errs...)
}

var requests = certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests")

// writeAnswer writes one verdict. The request's resourceVersion fences it: a request that has
// changed comes back with its event.
func (c *Controller) writeAnswer(ctx context.Context, v Verdict) error {
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

// deleteRequest deletes a request as it was evaluated; one that has changed or been replaced stays.
func (c *Controller) deleteRequest(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) error {
	seen := &metav1.Preconditions{UID: &csr.UID, ResourceVersion: &csr.ResourceVersion}
	err := c.config.Client.Resource(requests).Delete(ctx, csr.Name, metav1.DeleteOptions{Preconditions: seen})
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting the old certificate request %s: %w", csr.Name, err)
	}
	return nil
}
