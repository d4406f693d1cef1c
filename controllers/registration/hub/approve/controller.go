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

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/lease"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Name is the loop's id.
const Name = "cluster.approve"

const workers = 4

// retry while the leases are not all known yet, and when what was decided by is
// no longer so.
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

// A cluster with many requests is looked at once in a while, not for each of
// them: one that is flooded costs no more than its turn.
const (
	many  = 32
	pause = time.Second
)

// Controller is the loop. Its keys are names of clusters.
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
		config:   c,
		reader:   m.Reader(),
		exec:     reconcile.NewExecutor(c.Client, Name, c.Clock),
		requests: newRequests(),
		tokens:   newTokens(),
		uses:     newUses(),
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
		if old == nil && controller.requests.Total() > maxStrays {
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
		credential := controller.tokens.Observe(old, current, c.Clock.Now())
		if credential == "" {
			return
		}
		for _, cluster := range controller.requests.Sent(credential) {
			add(cluster)
		}
	})
	manager.Watch(m, &clusterv1.ManagedCluster{}, func(old, current *clusterv1.ManagedCluster) {
		controller.uses.observe(old, current)
		if current == nil && controller.requests.Total() > maxStrays {
			queue.AddAfter(strays, pause)
		}
		if current != nil && controller.concerns(old, current) {
			add(current.Name)
		}
	})
	// A lease that appears late may be that of an agent whose name another one asks for.
	c.Arrivals.OnPresence(func(cluster string) {
		if controller.requests.Count(cluster) > 0 {
			add(cluster)
		}
	})
	m.Add(reconcile.Loop{Name: Name, Workers: workers, Reconcile: controller.Reconcile}, queue)
}

// concerns tells whether a cluster that appears or changes is to be looked at. Of
// those that a hub finds when it starts most are not: nobody asks for anything, and
// nothing is said of somebody who did.
func (c *Controller) concerns(old, current *clusterv1.ManagedCluster) bool {
	if old == nil {
		return c.requests.Count(current.Name) > 0 || apimeta.IsStatusConditionTrue(current.Status.Conditions, clusterv1.ConditionDuplicateClusterName)
	}
	return !maps.Equal(old.Annotations, current.Annotations) || standing(old) != standing(current)
}

// standing is what of a cluster's status tells that its agent came or went: a
// request may wait for just that, and renewals of a lease wake nobody.
func standing(mc *clusterv1.ManagedCluster) (out [2]metav1.ConditionStatus) {
	for i, kind := range []string{clusterv1.ConditionJoined, clusterv1.ConditionAvailable} {
		if c := apimeta.FindStatusCondition(mc.Status.Conditions, kind); c != nil {
			out[i] = c.Status
		}
	}
	return out
}

// Reconcile answers the open requests of one cluster, or clears away those of
// clusters that do not exist.
func (c *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	select {
	case <-c.config.Arrivals.Synced():
	default:
		// Who is alive is not known yet, and nobody may be taken for dead.
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
		if !c.spend(key.Name, v.Spends) {
			return reconcile.Result{RequeueAfter: retry}, nil // another worker was faster
		}
	}
	var errs []error
	for _, v := range decision.Verdicts {
		errs = append(errs, c.answer(ctx, v))
	}
	result := reconcile.Result{RequeueAfter: decision.RequeueAfter}
	if state.Cluster != nil {
		result, err = c.exec.Execute(ctx, state.Cluster, decision.Plan)
		errs = append(errs, err)
	}
	for _, csr := range decision.Leftovers {
		errs = append(errs, c.remove(ctx, csr))
	}
	return result, errors.Join(errs...)
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

// remove deletes a request as it was judged: one that changed meanwhile, or is
// another one by now, stays.
func (c *Controller) remove(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) error {
	uid, version := csr.UID, csr.ResourceVersion
	err := c.config.Client.Resource(requests).Delete(ctx, csr.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
	})
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting the old certificate request %s: %w", csr.Name, err)
	}
	return nil
}
