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

// LoopName is the id of this loop.
const LoopName = "registration.status"

// Options of a Controller; all but Claims and Properties are required.
type Options struct {
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
	o       Options
	queue   *reconcile.Queue
	execute *reconcile.Executor
	skewed  bool
}

// New prepares the loop.
func New(o Options) *Controller {
	c := &Controller{o: o, queue: reconcile.NewQueue(LoopName), execute: reconcile.NewExecutor(o.Hub, LoopName, o.Clock)}
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
func (c *Controller) Wake() { c.queue.Add(reconcile.Key{Name: c.o.Cluster}) }

// Run reports until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	var waiting sync.WaitGroup
	defer waiting.Wait()
	// A collection without objects tells of nothing when it is complete.
	for _, done := range []<-chan struct{}{c.o.Nodes.Synced(), c.claims()} {
		waiting.Go(func() {
			select {
			case <-done:
				c.Wake()
			case <-ctx.Done():
			}
		})
	}
	return reconcile.Loop{Name: LoopName, Reconcile: c.reconcile}.Run(ctx, c.queue)
}

// claims is closed when the claims are complete.
func (c *Controller) claims() <-chan struct{} {
	if c.o.Claims != nil {
		return c.o.Claims.Synced()
	}
	none := make(chan struct{})
	close(none)
	return none
}

func (c *Controller) reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	cluster, ok := c.o.Clusters.Get(key)
	if !ok {
		return reconcile.Result{}, nil
	}
	c.clock(ctx, cluster)
	return reconcile.Run(ctx, c.execute, cluster, c.gather, Decide)
}

func (c *Controller) gather(_ context.Context, cluster *clusterv1.ManagedCluster) (State, error) {
	s := State{
		Now: c.o.Clock.Now(), Cluster: cluster, Health: c.o.Prober.Health(),
		Nodes: c.o.Nodes.List(), NodesKnown: closed(c.o.Nodes.Synced()), ClaimsKnown: closed(c.claims()),
		MaxClaims: c.o.MaxClaims, ReservedSuffixes: c.o.ReservedSuffixes, Credential: c.o.Credential(),
	}
	if c.o.Claims != nil {
		s.Claims = c.o.Claims.List()
	}
	if c.o.Properties != nil {
		properties, known := c.o.Properties.List()
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
