// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/credential"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// Name is the id of this loop.
const Name = "registration.status"

// Config is what a Controller works with; all but Claims and Properties are required.
type Config struct {
	// Hub is the connection under the agent's identity.
	Hub dynamic.Interface
	// Cluster is the name of the ManagedCluster.
	Cluster string
	// Clusters holds that one ManagedCluster. Its owner runs it, and the other
	// collections, after New.
	Clusters *watch.Collection[*clusterv1.ManagedCluster]
	// Nodes and Claims are of the managed cluster; nil Claims reports none.
	Nodes  *watch.Collection[Node]
	Claims *watch.Collection[Claim]
	// Properties are the ClusterProperties of the managed cluster; nil reports
	// none.
	Properties *watch.Optional[Claim]
	// Prober belongs to the controller, which sets its OnChange; its owner runs
	// it, after New.
	Prober *Prober
	// Credential tells where the agent stands with its certificate.
	Credential func() credential.Report
	// MaxClaims and ReservedSuffixes are the settings of that name.
	MaxClaims        int
	ReservedSuffixes []string
	Clock            clock.PassiveClock
}

// Controller is the loop. Make it with New, run it once.
type Controller struct {
	config  Config
	queue   *reconcile.Queue
	execute *reconcile.Executor
	skewed  bool
}

// New prepares the loop.
func New(o Config) *Controller {
	c := &Controller{config: o, queue: reconcile.NewQueue(Name), execute: reconcile.NewExecutor(o.Hub, Name, o.Clock)}
	o.Clusters.OnChange(c.queue.Add)
	o.Prober.OnChange = c.Wake
	o.Nodes.OnChange(func(reconcile.Key) { c.Wake() })
	if o.Claims != nil {
		o.Claims.OnChange(func(reconcile.Key) { c.Wake() })
	}
	if o.Properties != nil {
		o.Properties.OnChange(c.Wake)
	}
	return c
}

// Wake brings a pass, when something that Options hold has changed.
func (c *Controller) Wake() { c.queue.Add(reconcile.Key{Name: c.config.Cluster}) }

// Run reports until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	var waiting sync.WaitGroup
	defer waiting.Wait()
	// A collection without objects tells of nothing when it is complete.
	for _, done := range []<-chan struct{}{c.config.Nodes.Synced(), c.claims()} {
		waiting.Go(func() {
			select {
			case <-done:
				c.Wake()
			case <-ctx.Done():
			}
		})
	}
	return reconcile.Loop{Name: Name, Reconcile: c.Reconcile}.Run(ctx, c.queue)
}

// claims is closed when the claims are complete.
func (c *Controller) claims() <-chan struct{} {
	if c.config.Claims != nil {
		return c.config.Claims.Synced()
	}
	none := make(chan struct{})
	close(none)
	return none
}

// Reconcile tells the hub how the cluster is.
func (c *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	cluster, ok := c.config.Clusters.Get(key)
	if !ok {
		return reconcile.Result{}, nil
	}
	c.clock(ctx, cluster)
	return reconcile.Run(ctx, c.execute, cluster, c.gather, Decide)
}

func (c *Controller) gather(_ context.Context, cluster *clusterv1.ManagedCluster) (State, error) {
	s := State{
		Now: c.config.Clock.Now(), Cluster: cluster, Health: c.config.Prober.Health(),
		Nodes: c.config.Nodes.List(), NodesKnown: closed(c.config.Nodes.Synced()), ClaimsKnown: closed(c.claims()),
		MaxClaims: c.config.MaxClaims, ReservedSuffixes: c.config.ReservedSuffixes, Credential: c.config.Credential(),
	}
	if c.config.Claims != nil {
		s.Claims = c.config.Claims.List()
	}
	if c.config.Properties != nil {
		properties, known := c.config.Properties.List()
		s.Properties, s.ClaimsKnown = properties, s.ClaimsKnown && known
	}
	return s, nil
}

// clock tells once that the hub finds the clocks apart.
func (c *Controller) clock(ctx context.Context, cluster *clusterv1.ManagedCluster) {
	skewed := apimeta.IsStatusConditionFalse(cluster.Status.Conditions, clusterv1.ConditionClockSynced)
	if skewed && !c.skewed {
		logr.FromContextOrDiscard(ctx).Info("The hub finds the clock of this cluster wrong; the status is reported all the same", "cluster", cluster.Name)
	}
	c.skewed = skewed
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
