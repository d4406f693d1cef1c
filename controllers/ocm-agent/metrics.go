// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/credential"
	"github.com/kubectl-ocm/kubectl-ocm/internal/observe"
	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
)

// metrics returns the metrics of every process and those of the agent, which are computed at
// each scrape.
func (p *process) metrics() *prometheus.Registry {
	r := observe.NewRegistry(version.Get())
	if p.o.works {
		r.MustRegister(&p.workMetrics)
	}
	if !p.o.registration {
		return r
	}
	gauge := func(name, help string, read func() float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
	}
	gauge("ocm_agent_registered", "1 while the agent has access to its hub.", func() float64 {
		return truth(p.report().Phase == credential.PhaseServing)
	})
	gauge("ocm_agent_accepted", "1 while the hub accepts the cluster.", func() float64 { return truth(p.accepted.Load()) })
	gauge("ocm_agent_certificate_expiry_seconds", "Time until the certificate for the hub expires; 0 without one.", func() float64 {
		expires := p.report().Expires
		if expires.IsZero() {
			return 0
		}
		return expires.Sub(p.clock.Now()).Seconds()
	})
	gauge("ocm_agent_lease_age_seconds", "Time since the lease on the hub was renewed; 0 before.", func() float64 {
		s := p.current.Load()
		if s == nil || s.heartbeat.Renewed().IsZero() {
			return 0
		}
		return p.clock.Since(s.heartbeat.Renewed()).Seconds()
	})
	return r
}

func (p *process) report() credential.Report {
	if !p.held.Load() {
		return credential.Report{}
	}
	return p.credential.Report()
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
