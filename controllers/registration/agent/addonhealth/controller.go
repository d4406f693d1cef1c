// SPDX-License-Identifier: Apache-2.0

package addonhealth

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/addon"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// Name identifies this loop.
const Name = "addon.health"

var leasesResource = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// Config configures a Controller; all fields are required.
type Config struct {
	// Hub is the client for the hub with the agent's identity.
	Hub dynamic.Interface
	// Cluster is the name of the ManagedCluster.
	Cluster string
	// Clusters holds only that ManagedCluster, AddOns its add-ons. Their owner runs them,
	// after New.
	Clusters *watch.Collection[*clusterv1.ManagedCluster]
	AddOns   *addon.AddOns
	// Spoke is the managed cluster, Management the one the agent runs on.
	Spoke, Management dynamic.Interface
	Clock             clock.PassiveClock
}

// Controller is the loop. Make it with New and run it once.
type Controller struct {
	config  Config
	queue   *reconcile.Queue
	execute *reconcile.Executor

	// The fields below are used by the single worker only.
	pulses map[string]*pulse
}

// pulse is what is kept of an add-on: the watch on its lease, and the lease's last state.
type pulse struct {
	lease  *watch.One[time.Time]
	at     reconcile.Key
	hosted bool
	beat   *Beat
}

// New prepares the loop.
func New(o Config) *Controller {
	c := &Controller{
		config: o, queue: reconcile.NewQueue(Name), execute: reconcile.NewExecutor(o.Hub, Name, o.Clock), pulses: map[string]*pulse{},
	}
	o.AddOns.OnChange(c.queue.Add)
	o.Clusters.OnChange(func(reconcile.Key) {
		for _, a := range o.AddOns.List() {
			if a != nil {
				c.wake(a.Name)
			}
		}
	})
	return c
}

func (c *Controller) wake(addOn string) {
	c.queue.Add(reconcile.Key{Namespace: c.config.Cluster, Name: addOn})
}

// Run evaluates add-ons until ctx ends. It starts once the cluster is known too: an add-on of a
// lost cluster is the hub's to report.
func (c *Controller) Run(ctx context.Context) error {
	if err := errors.Join(c.config.AddOns.WaitSynced(ctx), c.config.Clusters.WaitSynced(ctx)); err != nil {
		c.queue.Close()
		return err
	}
	err := reconcile.Loop{Name: Name, Reconcile: c.Reconcile}.Run(ctx, c.queue)
	for name := range c.pulses {
		c.dropPulse(name)
	}
	return err
}

func (c *Controller) dropPulse(addOn string) {
	if p := c.pulses[addOn]; p != nil {
		p.lease.Close()
		delete(c.pulses, addOn)
	}
}

// Reconcile updates the health of one add-on.
func (c *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	a, ok := c.config.AddOns.Get(key)
	if !ok || a == nil || isIgnored(a) || len(validation.IsDNS1123Label(addon.Namespace(a))) > 0 {
		c.dropPulse(key.Name)
		return reconcile.Result{}, nil
	}
	return reconcile.Run(ctx, c.execute, a, c.gather, Decide)
}

// gather reads the add-on's lease and records when its renewal arrived.
func (c *Controller) gather(ctx context.Context, a *addonv1alpha1.ManagedClusterAddOn) (State, error) {
	s := State{Now: c.config.Clock.Now(), AddOn: a, Hosted: addon.Hosted(a), Lost: c.isLost()}
	p := c.pulseOf(ctx, a)
	client := c.config.Spoke
	if s.Hosted {
		client = c.config.Management
	}
	seen := p.lease.Look(ctx, client, p.at)
	s.Known = seen.Known
	p.recordSight(seen, s.Now)
	s.Beat = p.beat
	return s, nil
}

// pulseOf returns what is kept of an add-on; it starts afresh when the lease has moved.
func (c *Controller) pulseOf(ctx context.Context, a *addonv1alpha1.ManagedClusterAddOn) *pulse {
	at := reconcile.Key{Namespace: addon.Namespace(a), Name: a.Name}
	if p := c.pulses[a.Name]; p != nil && p.at == at && p.hosted == addon.Hosted(a) {
		return p
	}
	c.dropPulse(a.Name)
	name := a.Name
	p := &pulse{at: at, hosted: addon.Hosted(a), lease: watch.NewOne(watch.OneOptions[time.Time]{
		Resource: leasesResource, Log: logr.FromContextOrDiscard(ctx), Keep: renewTime, OnChange: func() { c.wake(name) },
	})}
	c.pulses[a.Name] = p
	return p
}

// recordSight records when a renewal was seen.
func (p *pulse) recordSight(seen watch.Sight[time.Time], now time.Time) {
	switch {
	case !seen.Found && !seen.Known:
	case !seen.Found:
		p.beat = nil
	case p.beat == nil:
		p.beat = &Beat{Renewed: seen.Item, Arrived: now, First: true}
	case !p.beat.Renewed.Equal(seen.Item):
		p.beat = &Beat{Renewed: seen.Item, Arrived: now}
	}
}

// renewTime extracts what is kept of a lease; one that cannot be parsed counts as never
// renewed.
func renewTime(u *unstructured.Unstructured) (time.Time, bool) {
	text, _, _ := unstructured.NestedString(u.Object, "spec", "renewTime")
	t, _ := time.Parse(time.RFC3339Nano, text)
	return t, true
}

// isLost reports whether the hub considers the cluster lost. The hub then sets the condition of
// every add-on itself, until the cluster next reports.
func (c *Controller) isLost() bool {
	cluster, ok := c.config.Clusters.Get(reconcile.Key{Name: c.config.Cluster})
	return ok && apimeta.IsStatusConditionPresentAndEqual(cluster.Status.Conditions, clusterv1.ConditionAvailable, metav1.ConditionUnknown)
}
