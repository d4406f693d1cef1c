// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// Name identifies this loop.
const Name = "registration.heartbeat"

// callTimeout bounds one request; a renewal that takes longer is retried.
const callTimeout = 10 * time.Second

var leasesResource = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// Config configures a Controller; all fields but Version are required.
type Config struct {
	// Hub is the client for the hub with the agent's identity.
	Hub dynamic.Interface
	// Cluster is the name of the ManagedCluster.
	Cluster string
	// Clusters holds only that ManagedCluster; its owner runs it, after New.
	Clusters *watch.Collection[*clusterv1.ManagedCluster]
	Clock    clock.PassiveClock
	// Random returns numbers from 0 to 1, for the jitter.
	Random func() float64
	// Version is the agent's version, shown in the lease; empty leaves it out.
	Version string
	// Outcome is called with the result of each renewal, and with nil when none is due any
	// more.
	Outcome func(error)
}

// Controller is the loop. Make it with New and run it once.
type Controller struct {
	config Config
	queue  *reconcile.Queue

	mu      sync.Mutex
	renewed time.Time

	lease    *unstructured.Unstructured
	jitter   float64
	duration int32
	// failures counts consecutive failed renewals.
	failures int
}

// New prepares the loop.
func New(o Config) *Controller {
	c := &Controller{config: o, queue: reconcile.NewQueue(Name)}
	o.Clusters.OnChange(c.queue.Add)
	return c
}

// Run renews the lease until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	return reconcile.Loop{Name: Name, Reconcile: c.Reconcile}.Run(ctx, c.queue)
}

// Renewed returns when the lease was last renewed; zero before the first time.
func (c *Controller) Renewed() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.renewed
}

// Reconcile renews the lease when it is due.
func (c *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	p := Decide(c.gather(key))
	if !p.Renew {
		if p.RequeueAfter == 0 {
			c.config.Outcome(nil)
		}
		return reconcile.Result{RequeueAfter: p.RequeueAfter}, nil
	}
	err := c.renew(ctx)
	if ctx.Err() == nil {
		c.config.Outcome(err)
	}
	if err != nil {
		if c.failures++; c.failures == 1 {
			logr.FromContextOrDiscard(ctx).Error(err, "Lease could not be renewed; retrying", "cluster", c.config.Cluster)
		}
		return reconcile.Result{RequeueAfter: retryDelay(c.failures, c.config.Random())}, nil
	}
	c.failures = 0
	return reconcile.Result{RequeueAfter: p.RequeueAfter}, nil
}

func (c *Controller) gather(key reconcile.Key) State {
	s := State{Now: c.config.Clock.Now(), Renewed: c.Renewed(), Jitter: c.jitter}
	s.Cluster, _ = c.config.Clusters.Get(key)
	if s.Cluster != nil && s.Cluster.Spec.LeaseDurationSeconds != c.duration {
		// A changed duration restarts the cycle.
		c.duration, s.Renewed = s.Cluster.Spec.LeaseDurationSeconds, time.Time{}
	}
	return s
}

// renew writes the lease: one PUT, preceded by a GET when the remembered version is stale.
func (c *Controller) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := c.putLease(ctx)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		c.lease = nil
		err = c.putLease(ctx)
	}
	return err
}

func (c *Controller) putLease(ctx context.Context) error {
	leases := c.config.Hub.Resource(leasesResource).Namespace(c.config.Cluster)
	if c.lease == nil {
		live, err := leases.Get(ctx, clusterv1.LeaseName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		live.SetManagedFields(nil)
		c.lease = live
	}
	if c.config.Version != "" {
		c.lease.SetAnnotations(labels.Merge(c.lease.GetAnnotations(), labels.Set{clusterv1.AnnotationAgentVersion: c.config.Version}))
	}
	now := c.config.Clock.Now()
	// A MicroTime has exactly six decimals.
	if err := unstructured.SetNestedField(c.lease.Object, now.UTC().Format(metav1.RFC3339Micro), "spec", "renewTime"); err != nil {
		return err
	}
	live, err := leases.Update(ctx, c.lease, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	live.SetManagedFields(nil)
	c.lease, c.jitter = live, c.config.Random()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.renewed = now
	return nil
}
