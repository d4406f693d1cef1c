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

// Name identifies this loop.
const Name = "registration.status"

// Config configures a Controller; all fields but Claims and Properties are required.
type Config struct {
	// Hub is the client for the hub with the agent's identity.
	Hub dynamic.Interface
	// Cluster is the name of the ManagedCluster.
	Cluster string
	// Clusters holds only that ManagedCluster. Its owner runs it, and the other collections,
	// after New.
	Clusters *watch.Collection[*clusterv1.ManagedCluster]
	// Nodes and Claims are those of the managed cluster; nil Claims reports none.
	Nodes  *watch.Collection[Node]
	Claims *watch.Collection[Claim]
	// Properties are the ClusterProperties of the managed cluster; nil reports none.
	Properties *watch.Optional[Claim]
	// Prober belongs to the controller, which sets its OnChange; its owner runs it, after
	// New.
	Prober *Prober
	// Credential returns the state of the agent's certificate.
	Credential func() credential.Report
	// MaxClaims and ReservedSuffixes are the settings of the same name.
	MaxClaims        int
	ReservedSuffixes []string
	Clock            clock.PassiveClock
}

// Controller is the loop. Make it with New and run it once.
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

// Wake triggers a pass; it is called when something in Config has changed.
func (c *Controller) Wake() { c.queue.Add(reconcile.Key{Name: c.config.Cluster}) }

// Run reports until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	var waiting sync.WaitGroup
	defer waiting.Wait()
	synced := []<-chan struct{}{c.config.Nodes.Synced()}
	if c.config.Claims != nil {
		synced = append(synced, c.config.Claims.Synced())
	}
	// A collection without objects sends no event when it is complete.
	for _, done := range synced {
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

// Reconcile reports the state of the cluster to the hub.
func (c *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	cluster, ok := c.config.Clusters.Get(key)
	if !ok {
		return reconcile.Result{}, nil
	}
	c.logSkew(ctx, cluster)
	return reconcile.Run(ctx, c.execute, cluster, c.gather, Decide)
}

func (c *Controller) gather(_ context.Context, cluster *clusterv1.ManagedCluster) (State, error) {
	s := State{
		Now: c.config.Clock.Now(), Cluster: cluster, Health: c.config.Prober.Health(),
		Nodes: c.config.Nodes.List(), NodesKnown: isClosed(c.config.Nodes.Synced()), ClaimsKnown: true,
		MaxClaims: c.config.MaxClaims, ReservedSuffixes: c.config.ReservedSuffixes, Credential: c.config.Credential(),
	}
	if c.config.Claims != nil {
		s.Claims, s.ClaimsKnown = c.config.Claims.List(), isClosed(c.config.Claims.Synced())
	}
	if c.config.Properties != nil {
		properties, known := c.config.Properties.List()
		s.Properties, s.ClaimsKnown = properties, s.ClaimsKnown && known
	}
	return s, nil
}

// logSkew logs once that the hub considers this cluster's clock wrong.
func (c *Controller) logSkew(ctx context.Context, cluster *clusterv1.ManagedCluster) {
	skewed := apimeta.IsStatusConditionFalse(cluster.Status.Conditions, clusterv1.ConditionClockSynced)
	if skewed && !c.skewed {
		logr.FromContextOrDiscard(ctx).Info("The hub considers the clock of this cluster wrong; the status is still reported", "cluster", cluster.Name)
	}
	c.skewed = skewed
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
