// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/clustermanager"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/proxy/hub"
	"github.com/kubectl-ocm/kubectl-ocm/internal/certs"
	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
)

// tunnels serves the API that leads to managed clusters.
type tunnels struct {
	processConfig
	client dynamic.Interface
	// leader is where the replica that leads serves the same API; it is described at hub.Options.
	leader  func() string
	leading atomic.Bool
	// server is nil while the gate is off.
	server      atomic.Pointer[hub.Server]
	onAuthority atomic.Pointer[func()]
}

func newTunnels(config processConfig, client dynamic.Interface, leader func() string) *tunnels {
	return &tunnels{processConfig: config, client: client, leader: leader}
}

// lead lets this replica hold the tunnels, and report which clusters have one, until ctx is done.
// While the gate is off, it removes what a process left that ended before it had done so.
func (t *tunnels) lead(ctx context.Context, collections *clustermanager.Collections) error {
	t.leading.Store(true)
	defer func() {
		t.leading.Store(false)
		if s := t.server.Load(); s != nil {
			s.Registry.Resign()
		}
	}()
	if s := t.server.Load(); s != nil {
		s.Report()
	}
	if err := collections.WaitSynced(ctx); err == nil && !collections.Features().ClusterProxy {
		t.forget(ctx)
	}
	<-ctx.Done()
	return nil
}

func (t *tunnels) forget(ctx context.Context) {
	hub.Forget(ctx, t.client, t.Clock, t.leading.Load, t.Log)
}

// authority is described at clustermanager.Config.
func (t *tunnels) authority() (problem error, known bool) {
	if s := t.server.Load(); s != nil {
		return s.Authority()
	}
	return nil, false
}

func (t *tunnels) authorityChanged() {
	if f := t.onAuthority.Load(); f != nil {
		(*f)()
	}
}

// whileOn serves while the gate is on, until ctx is done.
func (t *tunnels) whileOn(ctx context.Context, collections *clustermanager.Collections, book *certs.Book) error {
	isOn := func() bool { return collections.Features().ClusterProxy }
	return whileOn(ctx, collections, isOn, func(on context.Context) error {
		err := t.serve(on, book)
		if err == nil && ctx.Err() == nil { // the gate was turned off
			t.Log.Info("Tunnels are no longer served")
			t.forget(ctx)
		}
		return err
	})
}

// serve answers until ctx is done.
func (t *tunnels) serve(ctx context.Context, book *certs.Book) error {
	server := hub.NewServer(hub.Options{
		Client: t.client, TLS: t.TLS, Registry: hub.NewRegistry(t.Clock.Now), Clock: t.Clock, Version: version.Get(), Leads: t.leading.Load, Leader: t.leader,
		Log: t.Log.WithName("tunnels"), OnAuthority: t.authorityChanged,
		Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return book.Certificate(&tls.ClientHelloInfo{ServerName: clustermanager.ProxyName()})
		},
	})
	t.server.Store(server)
	defer t.server.Store(nil)
	t.Log.Info("Serving tunnels to managed clusters", "port", hub.Port)
	return listen(ctx, hub.Port, func(ctx context.Context, l net.Listener) error { return server.Run(ctx, l) })
}

// The metrics of tunnels, which exist while the gate is on.
var (
	tunnelsOpen    = prometheus.NewDesc("ocm_hub_tunnels", "Clusters that have a tunnel to this process.", nil, nil)
	tunnelsRefused = prometheus.NewDesc("ocm_hub_tunnels_refused_total", "Tunnels that were refused.", nil, nil)
)

// Describe implements prometheus.Collector.
func (t *tunnels) Describe(out chan<- *prometheus.Desc) {
	out <- tunnelsOpen
	out <- tunnelsRefused
}

// Collect implements prometheus.Collector.
func (t *tunnels) Collect(out chan<- prometheus.Metric) {
	if s := t.server.Load(); s != nil {
		out <- prometheus.MustNewConstMetric(tunnelsOpen, prometheus.GaugeValue, float64(s.Registry.Len()))
		out <- prometheus.MustNewConstMetric(tunnelsRefused, prometheus.CounterValue, float64(s.Refused()))
	}
}
