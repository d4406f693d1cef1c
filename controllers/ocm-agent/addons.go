// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/addon"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/addoncredential"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/addonhealth"
)

// addOns holds the loops of a session that serve add-ons (gate AddonManagement).
type addOns struct {
	collection   *addon.AddOns
	place        *addoncredential.Place
	registration *addoncredential.Controller
	health       *addonhealth.Controller
}

// newAddOns creates the loops. In this layout the managed cluster is also the one that the
// agent runs on.
func (s *session) newAddOns() (*addOns, error) {
	p, hub, cluster := s.process, s.Link.Client, s.Identity.Cluster
	a := &addOns{
		collection: addon.NewAddOns(hub, cluster, s.log),
		place:      &addoncredential.Place{Client: p.client, Secrets: addoncredential.NewSecrets(p.client, p.o.namespace, s.log)},
	}
	var err error
	a.registration, err = addoncredential.New(addoncredential.Config{
		Hub: hub, Cluster: cluster, Endpoint: s.Endpoint, HubID: s.HubID, AddOns: a.collection, Spoke: a.place, Management: a.place,
		Namespace: p.o.namespace, Driver: s.Settings.AddOnDriver, CertificateSeconds: s.Settings.CertificateSeconds,
		TokenSeconds: s.Settings.AddOnTokenSeconds, Clock: p.clock,
	})
	if err != nil {
		return nil, err
	}
	a.health = addonhealth.New(addonhealth.Config{
		Hub: hub, Cluster: cluster, Clusters: s.clusters, AddOns: a.collection, Spoke: p.client, Management: p.client, Clock: p.clock,
	})
	return a, nil
}

func (a *addOns) loops() []loop {
	if a == nil {
		return nil
	}
	return []loop{
		{"managedclusteraddons", a.collection.Run},
		{"addon secrets", a.place.Secrets.Run},
		{addoncredential.Name, a.registration.Run},
		{addonhealth.Name, a.health.Run},
	}
}
