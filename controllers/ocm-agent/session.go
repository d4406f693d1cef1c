// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	proxy "github.com/kubectl-ocm/kubectl-ocm/controllers/proxy/agent"
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

// Intervals of checks whether the hub has accepted the cluster. Before that the agent may not
// watch, so it has to poll.
const (
	firstPoll, lastPoll = 50 * time.Millisecond, 10 * time.Second
	// pollGrowth keeps the interval at about a seventh of the time waited so far.
	pollGrowth = 8.0 / 7
	// firstRestart and lastRestart are the shortest and longest pause before the work agent
	// is restarted after an error.
	firstRestart, lastRestart = time.Second, time.Minute
	// settling is how long after its start a session has read what it keeps.
	settling = 5 * time.Second
)

var (
	clustersResource = schema.GroupVersionResource{Group: clusterv1.GroupVersion.Group, Version: "v1", Resource: "managedclusters"}
	worksResource    = schema.GroupVersionResource{Group: workv1.GroupVersion.Group, Version: "v1", Resource: "manifestworks"}
	appliedResource  = schema.GroupVersionResource{Group: workv1.GroupVersion.Group, Version: "v1", Resource: "appliedmanifestworks"}
	claimsResource   = schema.GroupVersionResource{Group: clusterv1.GroupVersion.Group, Version: "v1alpha1", Resource: "clusterclaims"}
)

// session holds what runs while the agent has access to a hub.
type session struct {
	agent.Session
	process *process
	log     logr.Logger

	// loops run when the hub has accepted the cluster.
	loops     []loop
	clusters  *watch.Collection[*clusterv1.ManagedCluster]
	heartbeat *heartbeat.Controller
	status    *status.Controller
	contact   *agent.Contact
	// pulse beats when the hub accepted a renewal of the lease.
	pulse *watch.Pulse
}

// Requests that a session makes anyway, by which it knows whether the hub is reachable.
const (
	renewing = "renewing the lease"
	watching = "watching the ManagedCluster"
	finding  = "reading the ManagedCluster"
)

// serve runs a session until ctx is done.
func (p *process) serve(ctx context.Context, s agent.Session) {
	log := p.log.WithValues("cluster", s.Identity.Cluster)
	ctx = logr.NewContext(ctx, log)
	var priming sync.WaitGroup
	priming.Go(func() { p.prime(ctx) })
	defer priming.Wait()
	defer p.setUnknown(false)
	if !p.awaitAccepted(ctx, s) {
		return
	}
	p.recordSigns(s.Link.Config.Host, false)
	one := p.newSession(ctx, s, log)
	p.current.Store(one)
	defer func() {
		p.current.Store(nil)
		p.setAccepted(false)
	}()
	if err := runAll(ctx, one.loops); err != nil {
		log.Error(err, "Session ended because a loop ended")
	}
}

// prime lists once what the session will watch on the managed cluster. An API server
// sets up the storage of a definition at the first request, and rejects watches for a second
// meanwhile; that second would delay the first work.
func (p *process) prime(ctx context.Context) {
	var soon []schema.GroupVersionResource
	if p.o.works {
		soon = append(soon, appliedResource)
	}
	if p.o.registration {
		soon = append(soon, claimsResource)
	}
	for _, gvr := range soon {
		if _, err := p.spoke.client.Resource(gvr).List(ctx, metav1.ListOptions{Limit: 1}); err != nil && ctx.Err() == nil {
			logr.FromContextOrDiscard(ctx).V(1).Info("Storage could not be set up in advance", "resource", gvr.Resource, "error", err.Error())
		}
	}
}

// newSession creates the loops of what the command runs.
func (p *process) newSession(ctx context.Context, s agent.Session, log logr.Logger) *session {
	one := &session{Session: s, process: p, log: log, pulse: &watch.Pulse{}}
	one.contact = agent.NewContact(p.clock, func() {
		p.setUnknown(one.contact.Unknown())
		p.onReport()
	})
	if p.o.registration {
		one.addRegistration(ctx)
	}
	if p.o.works {
		one.loops = append(one.loops, loop{"work", one.runWorks})
	}
	one.loops = append(one.loops, loop{"memory", one.returnMemory})
	return one
}

// addRegistration adds the loops that keep the cluster registered and report it.
func (s *session) addRegistration(ctx context.Context) {
	p, hub, spoke, cluster := s.process, s.Link.Client, s.process.spoke, s.Identity.Cluster
	s.clusters = watch.New(watch.Options[*clusterv1.ManagedCluster]{
		Client: hub, Resource: clustersResource, FieldSelector: "metadata.name=" + cluster, Pulse: s.pulse, Log: s.log,
		Keep: func(u *unstructured.Unstructured) (*clusterv1.ManagedCluster, bool) {
			status.KeepOwnFields(u)
			c, err := typed.FromUnstructured[clusterv1.ManagedCluster](u)
			return c, err == nil
		},
	})
	nodes := status.NewNodes(spoke.client, s.log)
	prober := &status.Prober{Client: spoke.http, Host: spoke.config.Host, Period: s.Settings.HealthPeriod, Clock: p.clock}
	s.heartbeat = heartbeat.New(heartbeat.Config{
		Hub: hub, Cluster: cluster, Clusters: s.clusters, Clock: p.clock, Random: rand.Float64,
		Version: version.Get(), Outcome: s.onRenewal,
	})
	spaces := namespaces.New(namespaces.Config{
		Hub: hub, Spoke: spoke.client, Cluster: cluster, HubHash: s.HubHash, Clusters: s.clusters, Clock: p.clock, Log: s.log,
	})
	s.loops = []loop{
		{"managedcluster", s.clusters.Run},
		{"nodes", nodes.Run},
		{"health", prober.Run},
		{heartbeat.Name, s.heartbeat.Run},
		{"managednamespaces", spaces.Present.Run},
		{namespaces.Name, spaces.Run},
	}
	var claims *watch.Collection[status.Claim]
	if s.Settings.Claims {
		claims = status.NewClaims(spoke.client, s.log)
		s.loops = append(s.loops, loop{"clusterclaims", claims.Run})
	}
	var properties *watch.Optional[status.Claim]
	if s.Settings.Properties {
		properties = status.NewProperties(spoke.client, s.log)
		s.loops = append(s.loops, loop{"clusterproperties", properties.Run})
	}
	s.status = status.New(status.Config{
		Hub: hub, Cluster: cluster, Clusters: s.clusters, Nodes: nodes, Claims: claims,
		Properties: properties, Prober: prober, Credential: p.credential.Report, Clock: p.clock,
		MaxClaims: s.Settings.MaxClaims, ReservedSuffixes: s.Settings.ReservedSuffixes,
	})
	s.loops = append(s.loops, loop{status.Name, s.status.Run})
	if s.Settings.Proxy {
		s.loops = append(s.loops, loop{proxy.Name, proxy.New(proxy.Config{
			Hub: s.Link.Config.Host, Upgrades: s.Link.Upgrades, Spoke: spoke.config, Cluster: cluster, Services: s.services(), Version: version.Get(),
			UserAgent: userAgent(), Clock: p.clock, Random: rand.Float64, Log: s.log.WithName(proxy.Name),
		}).Run})
	}
	s.clusters.OnOutcome(func(err error) { s.contact.Note(watching, err) })
	s.clusters.OnChange(s.onCluster)
	if s.Settings.AddOns {
		loops, err := s.addOnLoops(ctx)
		if err != nil {
			// Nothing else in the session depends on them.
			s.log.Error(err, "Add-ons are not served")
		}
		s.loops = append(s.loops, loops...)
	}
}

// services says how Services of the managed cluster are reached; nil if the agent runs on another one.
func (s *session) services() *proxy.Services {
	p := s.process
	if p.spoke != p.management {
		return nil
	}
	return &proxy.Services{Client: p.spoke.client, Namespace: p.o.namespace}
}

// returnMemory returns to the operating system, once, what the start of the session used: the
// runtime would keep it for a heap that does not grow again.
func (s *session) returnMemory(ctx context.Context) error {
	select {
	case <-s.process.clock.After(settling):
		runtime.GC() // what pools keep is only free after a second collection
		debug.FreeOSMemory()
		<-ctx.Done()
	case <-ctx.Done():
	}
	return nil
}

// onRenewal records the outcome of a lease renewal.
func (s *session) onRenewal(err error) {
	s.contact.Note(renewing, err)
	if err == nil {
		s.pulse.Beat()
	}
}

// onCluster records whether the ManagedCluster exists on the hub and is accepted.
func (s *session) onCluster(k reconcile.Key) {
	cluster, ok := s.clusters.Get(k)
	var problem error
	switch {
	case !ok:
		problem = agent.ErrNoCluster
	case !isAccepted(cluster):
		problem = agent.ErrNotAccepted
	}
	s.process.setAccepted(problem == nil)
	if ok {
		s.process.recordSigns(s.Link.Config.Host, !cluster.Spec.HubAcceptsClient)
	}
	s.contact.Note(finding, problem)
}

// isRevoked reports whether the hub has revoked an acceptance; a cluster without a decision
// is still waiting.
func isRevoked(c *clusterv1.ManagedCluster) bool {
	return !c.Spec.HubAcceptsClient && apimeta.FindStatusCondition(c.Status.Conditions, clusterv1.ConditionHubAccepted) != nil
}

func isAccepted(c *clusterv1.ManagedCluster) bool {
	return apimeta.IsStatusConditionTrue(c.Status.Conditions, clusterv1.ConditionHubAccepted)
}

// awaitAccepted waits until the hub has granted the agent its rights; it returns false if ctx
// is done first. If the agent can no longer read the ManagedCluster, but can read remaining
// works, the cluster is being removed: the works are processed meanwhile, since the removal
// of the cluster waits until they are cleaned up.
func (p *process) awaitAccepted(ctx context.Context, s agent.Session) bool {
	log := logr.FromContextOrDiscard(ctx)
	leave := func() {}
	defer func() { leave() }()
	waiting, leaving := false, false
	poll := wait.Backoff{Duration: firstPoll, Factor: pollGrowth, Cap: lastPoll, Steps: math.MaxInt}
	return poll.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		c, err := typed.Get[clusterv1.ManagedCluster](ctx, s.Link.Client, clustersResource, "", s.Identity.Cluster)
		p.setUnknown(apierrors.IsUnauthorized(err))
		switch {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case err == nil && isAccepted(c):
			p.setAccepted(true)
			log.Info("The hub accepted the cluster")
			return true, nil
		case err == nil:
			p.recordSigns(s.Link.Config.Host, isRevoked(c))
		case p.o.works && !leaving && isWithdrawn(err) && canReadWorks(ctx, s):
			log.Info("The agent may no longer read its ManagedCluster; processing the remaining works")
			leaving, leave = true, p.runWorksOnly(ctx, s)
		}
		if !waiting {
			log.Info("Waiting for the hub to accept the cluster")
		}
		waiting = true
		return false, nil
	}) == nil
}

// isWithdrawn reports whether the error means that the agent cannot read its ManagedCluster.
func isWithdrawn(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) }

// canReadWorks reports whether there are works that the agent may read.
func canReadWorks(ctx context.Context, s agent.Session) bool {
	list, err := s.Link.Client.Resource(worksResource).Namespace(s.Identity.Cluster).List(ctx, metav1.ListOptions{Limit: 1})
	return err == nil && len(list.Items) > 0
}

// runWorksOnly processes works and nothing else, until the returned function is called or ctx
// is done.
func (p *process) runWorksOnly(ctx context.Context, s agent.Session) func() {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	one := p.newSession(ctx, s, logr.FromContextOrDiscard(ctx))
	running.Go(func() {
		if err := one.runWorks(ctx); err != nil {
			one.log.Error(err, "Processing of works failed")
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// runWorks processes the ManifestWorks until ctx is done. It reports errors and restarts
// after them.
func (s *session) runWorks(ctx context.Context) error {
	cfg := work.Config{
		Hub: s.Link.Config, Spoke: s.process.spoke.config, ClusterName: s.Identity.Cluster, AgentID: cmp.Or(s.Settings.WorkAgentID, s.Settings.AgentName, s.HubHash),
		HubHash: s.HubHash, Pulse: s.pulse, Grace: s.Settings.EvictionGrace, Metrics: &s.process.workMetrics, Clock: s.process.clock, Log: s.log,
		Workers: s.Settings.Workers, Feedback: feedback.Options{RawJSON: s.Settings.RawFeedback, MaxRawLength: s.Settings.MaxRawFeedback},
	}
	for pause := firstRestart; ; pause = min(pause*2, lastRestart) {
		s.process.setWorkProblem(nil)
		err := work.Run(ctx, cfg)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // a done ctx is a regular stop
		}
		s.log.Error(err, "The work agent failed and will be restarted", "after", pause.String())
		s.process.setWorkProblem(err)
		select {
		case <-s.process.clock.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}
