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

// loop is one thing that runs until its context ends.
type loop struct {
	name string
	run  func(context.Context) error
}

// processLoops is THE list of loops that run as long as the process holds its
// lock. Operator is nil for "ocm-agent agent".
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

// sessionLoops is THE list of loops that run while there is access to a hub.
func (s *session) sessionLoops() []loop {
	loops := []loop{
		{"managedcluster", s.clusters.Run},
		{"nodes", s.nodes.Run},
		{"health", s.prober.Run},
		{heartbeat.Name, s.heartbeat.Run},
		{status.Name, s.status.Run},
		{"managednamespaces", s.namespaces.Present.Run},
		{namespaces.Name, s.namespaces.Run},
		{"work", s.works},
	}
	if s.claims != nil {
		loops = append(loops, loop{"clusterclaims", s.claims.Run})
	}
	if s.properties != nil {
		loops = append(loops, loop{"clusterproperties", s.properties.Run})
	}
	return append(loops, s.addOns.loops()...)
}
