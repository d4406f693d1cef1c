// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/heartbeat"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/namespaces"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/status"
	work "github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent"
	"github.com/kubectl-ocm/kubectl-ocm/internal/feedback"
	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Times between looks whether the hub has accepted the cluster. Before it has,
// the agent may not watch, so this is the one thing that is asked for again and
// again.
const (
	firstLook, lastLook = 50 * time.Millisecond, 10 * time.Second
	// lookGrowth keeps the wait at a seventh of the time that has passed.
	lookGrowth = 8.0 / 7
	// firstRestart and lastRestart bound the pause after works stopped with an
	// error.
	firstRestart, lastRestart = time.Second, time.Minute
)

var (
	clustersResource = schema.GroupVersionResource{Group: clusterv1.GroupVersion.Group, Version: "v1", Resource: "managedclusters"}
	worksResource    = schema.GroupVersionResource{Group: workv1.GroupVersion.Group, Version: "v1", Resource: "manifestworks"}
	appliedResource  = schema.GroupVersionResource{Group: workv1.GroupVersion.Group, Version: "v1", Resource: "appliedmanifestworks"}
	claimsResource   = schema.GroupVersionResource{Group: clusterv1.GroupVersion.Group, Version: "v1alpha1", Resource: "clusterclaims"}
)

// session is what runs while there is access to a hub.
type session struct {
	agent.Session
	process *process
	log     logr.Logger

	clusters *watch.Collection[*clusterv1.ManagedCluster]
	nodes    *watch.Collection[status.Node]
	claims   *watch.Collection[status.Claim]
	// properties is nil unless the gate ClusterProperty is on.
	properties *watch.Optional[status.Claim]
	namespaces *namespaces.Controller
	prober     *status.Prober
	heartbeat  *heartbeat.Controller
	status     *status.Controller
	contact    *agent.Contact
	// addOns is nil when the gate AddonManagement is off.
	addOns *addOns
	// pulse beats when the hub took a renewal of the lease.
	pulse *watch.Pulse
}

// What a session does on the hub anyway, by which it knows whether the hub is
// there.
const (
	renewing = "renewing the lease"
	watching = "watching the ManagedCluster"
	finding  = "looking at the ManagedCluster"
)

// serve runs a session until ctx ends; the loops start when the hub has
// accepted the cluster.
func (p *process) serve(ctx context.Context, s agent.Session) {
	log := p.log.WithValues("cluster", s.Identity.Cluster)
	ctx = logr.NewContext(ctx, log)
	var priming sync.WaitGroup
	priming.Go(func() { p.prime(ctx) })
	defer priming.Wait()
	if !p.awaitAccepted(ctx, s) {
		return
	}
	p.see(s.Link.Config.Host, false)
	one := p.newSession(s, log)
	p.current.Store(one)
	defer func() {
		p.current.Store(nil)
		p.setAccepted(false)
	}()
	if err := runAll(ctx, one.sessionLoops()); err != nil {
		log.Error(err, "Session ended by a loop that must not end")
	}
}

// prime asks the own API server once for what the session will watch there. An
// API server sets up the storage of a definition when it is first asked for,
// and turns watches away for a second meanwhile; that second would be the first
// work's.
func (p *process) prime(ctx context.Context) {
	for _, gvr := range []schema.GroupVersionResource{appliedResource, claimsResource} {
		if _, err := p.client.Resource(gvr).List(ctx, metav1.ListOptions{Limit: 1}); err != nil && ctx.Err() == nil {
			logr.FromContextOrDiscard(ctx).V(1).Info("Storage could not be set up in advance", "resource", gvr.Resource, "error", err.Error())
		}
	}
}

func (p *process) newSession(s agent.Session, log logr.Logger) *session {
	one := &session{Session: s, process: p, log: log, contact: agent.NewContact(p.clock, p.reported), pulse: &watch.Pulse{}}
	one.clusters = watch.New(watch.Options[*clusterv1.ManagedCluster]{
		Client: s.Link.Client, Resource: clustersResource, FieldSelector: "metadata.name=" + s.Identity.Cluster, Pulse: one.pulse, Log: log,
		Keep: func(u *unstructured.Unstructured) (*clusterv1.ManagedCluster, bool) {
			status.KeepOwnFields(u)
			c, err := typed.FromUnstructured[clusterv1.ManagedCluster](u)
			return c, err == nil
		},
	})
	one.nodes = status.NewNodes(p.client, log)
	if s.Settings.Claims {
		one.claims = status.NewClaims(p.client, log)
	}
	if s.Settings.Properties {
		one.properties = status.NewProperties(p.client, log)
	}
	one.prober = &status.Prober{Client: p.http, Host: p.spoke.Host, Period: s.Settings.HealthPeriod, Clock: p.clock}
	one.heartbeat = heartbeat.New(heartbeat.Config{
		Hub: s.Link.Client, Cluster: s.Identity.Cluster, Clusters: one.clusters, Clock: p.clock, Random: rand.Float64,
		Version: version.Get(), Outcome: one.renewed,
	})
	one.status = status.New(status.Config{
		Hub: s.Link.Client, Cluster: s.Identity.Cluster, Clusters: one.clusters, Nodes: one.nodes, Claims: one.claims,
		Properties: one.properties, Prober: one.prober, Credential: p.credential.Report, Clock: p.clock,
		MaxClaims: s.Settings.MaxClaims, ReservedSuffixes: s.Settings.ReservedSuffixes,
	})
	one.namespaces = namespaces.New(namespaces.Config{
		Hub: s.Link.Client, Spoke: p.client, Cluster: s.Identity.Cluster, HubHash: s.HubHash, Clusters: one.clusters, Clock: p.clock, Log: log,
	})
	one.clusters.OnOutcome(func(err error) { one.contact.Note(watching, err) })
	one.clusters.OnChange(one.found)
	if s.Settings.AddOns {
		var err error
		if one.addOns, err = one.newAddOns(s, log); err != nil {
			// Nothing else of the session depends on them.
			log.Error(err, "Add-ons are not served")
		}
	}
	return one
}

// renewed notes how a renewal of the lease ended.
func (s *session) renewed(err error) {
	s.contact.Note(renewing, err)
	if err == nil {
		s.pulse.Beat()
	}
}

// found notes what the hub's ManagedCluster says about the agent's place there.
func (s *session) found(k reconcile.Key) {
	cluster, ok := s.clusters.Get(k)
	s.process.setAccepted(ok && accepted(cluster))
	if ok {
		s.process.see(s.Link.Config.Host, !cluster.Spec.HubAcceptsClient)
	}
	switch {
	case !ok:
		s.contact.Note(finding, agent.ErrNoCluster)
	case !accepted(cluster):
		s.contact.Note(finding, agent.ErrNotAccepted)
	default:
		s.contact.Note(finding, nil)
	}
}

// unaccepted tells whether the hub took back an acceptance that it once gave; a
// cluster that nobody has decided on waits.
func unaccepted(c *clusterv1.ManagedCluster) bool {
	return !c.Spec.HubAcceptsClient && apimeta.FindStatusCondition(c.Status.Conditions, clusterv1.ConditionHubAccepted) != nil
}

func accepted(c *clusterv1.ManagedCluster) bool {
	return apimeta.IsStatusConditionTrue(c.Status.Conditions, clusterv1.ConditionHubAccepted)
}

// awaitAccepted waits until the hub has given the agent its rights. Where the hub
// withdrew the right to read the ManagedCluster, but works are left that the agent
// may read, the cluster is being removed: they are carried out meanwhile, or they
// would never end, and the cluster would wait for them.
func (p *process) awaitAccepted(ctx context.Context, s agent.Session) bool {
	log := logr.FromContextOrDiscard(ctx)
	leave := func() {}
	defer func() { leave() }()
	leaving := false
	for wait := firstLook; ; wait = min(time.Duration(lookGrowth*float64(wait)), lastLook) {
		c, err := typed.Get[clusterv1.ManagedCluster](ctx, s.Link.Client, clustersResource, "", s.Identity.Cluster)
		switch {
		case ctx.Err() != nil:
			return false
		case err == nil && accepted(c):
			p.setAccepted(true)
			log.Info("The hub accepted the cluster")
			return true
		case err == nil:
			p.see(s.Link.Config.Host, unaccepted(c))
		case !leaving && withdrawn(err) && mayWork(ctx, s):
			log.Info("The hub withdrew what the agent may read, and works are left; they are carried out")
			leaving, leave = true, p.finish(ctx, s)
		}
		if wait == firstLook {
			log.Info("Waiting for the hub to accept the cluster")
		}
		timer := p.clock.NewTimer(wait)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}

// withdrawn tells whether the hub does not show the agent its ManagedCluster.
func withdrawn(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) }

// mayWork tells whether there are works that the agent may read.
func mayWork(ctx context.Context, s agent.Session) bool {
	list, err := s.Link.Client.Resource(worksResource).Namespace(s.Identity.Cluster).List(ctx, metav1.ListOptions{Limit: 1})
	return err == nil && len(list.Items) > 0
}

// finish carries out works and nothing else, until the returned function is called
// or ctx ends.
func (p *process) finish(ctx context.Context, s agent.Session) func() {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	one := p.newSession(s, logr.FromContextOrDiscard(ctx))
	running.Go(func() {
		if err := one.works(ctx); err != nil {
			one.log.Error(err, "Works ended")
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// works carries out the ManifestWorks; what ends it is reported, and it starts
// again.
func (s *session) works(ctx context.Context) error {
	cfg := work.Config{
		Hub: s.Link.Config, Spoke: s.process.spoke, ClusterName: s.Identity.Cluster, AgentID: s.Settings.AgentName,
		HubHash: s.HubHash, Pulse: s.pulse, Grace: s.Settings.EvictionGrace, Metrics: &s.process.workMetrics, Clock: s.process.clock, Log: s.log,
		Workers: s.Settings.Workers, Feedback: feedback.Options{RawJSON: s.Settings.RawFeedback, MaxRawLength: s.Settings.MaxRawFeedback},
	}
	if cfg.AgentID == "" {
		cfg.AgentID = s.HubHash
	}
	for wait := firstRestart; ; wait = min(wait*2, lastRestart) {
		s.process.setWorkProblem(nil)
		err := work.Run(ctx, cfg)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end of ctx is the orderly end
		}
		s.log.Error(err, "Works are not carried out and will be started again", "after", wait.String())
		s.process.setWorkProblem(err)
		timer := s.process.clock.NewTimer(wait)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
	}
}
