// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/heartbeat"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/status"
	work "github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent"
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
	appliedResource  = schema.GroupVersionResource{Group: workv1.GroupVersion.Group, Version: "v1", Resource: "appliedmanifestworks"}
	claimsResource   = schema.GroupVersionResource{Group: clusterv1.GroupVersion.Group, Version: "v1alpha1", Resource: "clusterclaims"}
)

// session is what runs while there is access to a hub.
type session struct {
	agent.Session
	process *process
	log     logr.Logger

	clusters  *watch.Collection[*clusterv1.ManagedCluster]
	nodes     *watch.Collection[status.Node]
	claims    *watch.Collection[status.Claim]
	prober    *status.Prober
	heartbeat *heartbeat.Controller
	status    *status.Controller
	contact   *agent.Contact
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
	one := &session{Session: s, process: p, log: log, contact: agent.NewContact(p.clock, p.reported)}
	one.clusters = watch.New(watch.Options[*clusterv1.ManagedCluster]{
		Client: s.Link.Client, Resource: clustersResource, FieldSelector: "metadata.name=" + s.Identity.Cluster, Log: log,
		Keep: func(u *unstructured.Unstructured) (*clusterv1.ManagedCluster, bool) {
			u.SetManagedFields(nil)
			c, err := typed.FromUnstructured[clusterv1.ManagedCluster](u)
			return c, err == nil
		},
	})
	one.nodes = status.NewNodes(p.client, log)
	if s.Settings.Claims {
		one.claims = status.NewClaims(p.client, log)
	}
	one.prober = &status.Prober{Client: p.http, Host: p.spoke.Host, Period: s.Settings.HealthPeriod, Clock: p.clock}
	one.heartbeat = heartbeat.New(heartbeat.Options{
		Hub: s.Link.Client, Cluster: s.Identity.Cluster, Clusters: one.clusters, Clock: p.clock, Random: rand.Float64,
		Outcome: func(err error) { one.contact.Note(renewing, err) },
	})
	one.status = status.New(status.Options{
		Hub: s.Link.Client, Cluster: s.Identity.Cluster, Clusters: one.clusters, Nodes: one.nodes, Claims: one.claims,
		Prober: one.prober, Credential: p.credential.Report, Clock: p.clock,
		MaxClaims: s.Settings.MaxClaims, ReservedSuffixes: s.Settings.ReservedSuffixes,
	})
	one.clusters.OnOutcome(func(err error) { one.contact.Note(watching, err) })
	one.clusters.OnChange(one.found)
	return one
}

// found notes what the hub's ManagedCluster says about the agent's place there.
func (s *session) found(k reconcile.Key) {
	cluster, ok := s.clusters.Get(k)
	s.process.setAccepted(ok && accepted(cluster))
	switch {
	case !ok:
		s.contact.Note(finding, agent.ErrNoCluster)
	case !accepted(cluster):
		s.contact.Note(finding, agent.ErrNotAccepted)
	default:
		s.contact.Note(finding, nil)
	}
}

func accepted(c *clusterv1.ManagedCluster) bool {
	return apimeta.IsStatusConditionTrue(c.Status.Conditions, clusterv1.ConditionHubAccepted)
}

// awaitAccepted waits until the hub has given the agent its rights.
func (p *process) awaitAccepted(ctx context.Context, s agent.Session) bool {
	log := logr.FromContextOrDiscard(ctx)
	for wait := firstLook; ; wait = min(time.Duration(lookGrowth*float64(wait)), lastLook) {
		c, err := typed.Get[clusterv1.ManagedCluster](ctx, s.Link.Client, clustersResource, "", s.Identity.Cluster)
		switch {
		case ctx.Err() != nil:
			return false
		case err == nil && accepted(c):
			p.setAccepted(true)
			log.Info("The hub accepted the cluster")
			return true
		case wait == firstLook:
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

// works carries out the ManifestWorks; what ends it is reported, and it starts
// again.
func (s *session) works(ctx context.Context) error {
	cfg := work.Config{
		Hub: s.Link.Config, Spoke: s.process.spoke, ClusterName: s.Identity.Cluster, AgentID: s.Settings.AgentName,
		HubHash: s.HubHash, Grace: s.Settings.EvictionGrace, Clock: s.process.clock, Log: s.log,
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
