// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/agents"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/settings"
	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// newInstaller returns the loop that runs the agents of Klusterlets that this process does not
// serve itself, and the collection of those Klusterlets.
func (p *process) newInstaller(definitions []*unstructured.Unstructured) (*agents.Controller, *watch.Collection[settings.Seen]) {
	others := agents.NewKlusterlets(p.management.client, p.o.klusterlet, p.log)
	return agents.New(agents.Config{
		Client: p.management.client, Own: p.o.klusterlet, Namespace: p.o.namespace, Image: "ghcr.io/kubectl-ocm/ocm-agent:" + version.Get(),
		SyncLabels: p.o.syncLabels, NoAddOns: p.o.noAddOns, Klusterlets: others,
		Definitions: definitions, Version: version.Get(), UserAgent: userAgent(), Clock: p.clock, Log: p.log,
	}), others
}

// operate runs the agents of all Klusterlets while the lock is held.
func (p *process) operate(ctx context.Context) error {
	defer p.held.Store(false)
	definitions, err := crd.Agent()
	if err != nil {
		return err
	}
	installer, klusterlets := p.newInstaller(definitions)
	p.held.Store(true)
	return runAll(ctx, []loop{{"klusterlets", klusterlets.Run}, {agents.Name, installer.Run}})
}
