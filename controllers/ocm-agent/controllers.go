// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/klusterlet"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/credential"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/heartbeat"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/namespaces"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/selection"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/status"
)

// loop runs until its context is done.
type loop struct {
	name string
	run  func(context.Context) error
}

// processLoops returns all loops that run while the process holds its lock. The operator is
// nil for "ocm-agent agent".
func (p *process) processLoops() []loop {
	loops := []loop{
		{"secrets", p.secrets.Run},
		{credential.Name, p.credential.Run},
		{selection.Name, p.selection.Run},
	}
	if p.operator == nil {
		return loops
	}
	for _, c := range p.operator.Collections() {
		loops = append(loops, loop{"collection", c.Run})
	}
	return append(loops, loop{klusterlet.Name, p.operator.Run})
}

// sessionLoops returns all loops that run while the agent has access to a hub.
func (s *session) sessionLoops() []loop {
	loops := []loop{
		{"managedcluster", s.clusters.Run},
		{"nodes", s.nodes.Run},
		{"health", s.prober.Run},
		{heartbeat.Name, s.heartbeat.Run},
		{status.Name, s.status.Run},
		{"managednamespaces", s.namespaces.Present.Run},
		{namespaces.Name, s.namespaces.Run},
		{"work", s.runWorks},
	}
	if s.claims != nil {
		loops = append(loops, loop{"clusterclaims", s.claims.Run})
	}
	if s.properties != nil {
		loops = append(loops, loop{"clusterproperties", s.properties.Run})
	}
	return append(loops, s.addOns.loops()...)
}
