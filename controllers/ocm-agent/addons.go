// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/access"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/addon"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/addoncredential"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/addonhealth"
)

// addOnLoops creates the loops of a session that serve add-ons (gate AddonManagement). Requests
// in progress and the credentials of hosted add-ons are kept where the agent runs, all others on
// the managed cluster.
func (s *session) addOnLoops(ctx context.Context) ([]loop, error) {
	p, hub, cluster := s.process, s.Link.Client, s.Identity.Cluster
	collection := addon.NewAddOns(hub, cluster, s.log)
	scope := ""
	if p.spoke != p.management && access.Ask(ctx, p.management.client, access.AllSecrets()).Refused {
		// A cluster that hosts the agents of many lets each see its own namespace only.
		scope = p.o.namespace
	}
	management := p.addOnPlace(p.management, scope)
	spoke := management
	if p.spoke != p.management {
		spoke = p.addOnPlace(p.spoke, "")
	}
	registration, err := addoncredential.New(addoncredential.Config{
		Hub: hub, Cluster: cluster, Endpoint: s.Endpoint, HubID: s.HubID, AddOns: collection, Spoke: spoke, Management: management,
		Namespace: p.o.namespace, Driver: s.Settings.AddOnDriver, CertificateSeconds: s.Settings.CertificateSeconds,
		TokenSeconds: s.Settings.AddOnTokenSeconds, Clock: p.clock,
	})
	if err != nil {
		return nil, err
	}
	health := addonhealth.New(addonhealth.Config{
		Hub: hub, Cluster: cluster, Clusters: s.clusters, AddOns: collection, Spoke: p.spoke.client, Management: p.management.client, Clock: p.clock,
	})
	loops := []loop{
		{"managedclusteraddons", collection.Run},
		{"addon secrets", management.Secrets.Run},
		{addoncredential.Name, registration.Run},
		{addonhealth.Name, health.Run},
	}
	if spoke != management {
		loops = append(loops, loop{"addon secrets of the managed cluster", spoke.Secrets.Run})
	}
	return loops, nil
}

// addOnPlace returns a cluster as a place for the secrets of add-ons; in one namespace, or in all if
// scope is empty.
func (p *process) addOnPlace(c *cluster, scope string) *addoncredential.Place {
	return &addoncredential.Place{Client: c.client, Secrets: addoncredential.NewSecrets(c.client, p.o.namespace, scope, p.log)}
}
