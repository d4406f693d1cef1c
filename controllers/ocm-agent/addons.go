// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/addon"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/addoncredential"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/addonhealth"
)

// addOnLoops creates the loops of a session that serve add-ons (gate AddonManagement). In this
// layout the managed cluster is also the one that the agent runs on.
func (s *session) addOnLoops() ([]loop, error) {
	p, hub, cluster := s.process, s.Link.Client, s.Identity.Cluster
	collection := addon.NewAddOns(hub, cluster, s.log)
	place := &addoncredential.Place{Client: p.client, Secrets: addoncredential.NewSecrets(p.client, p.o.namespace, s.log)}
	registration, err := addoncredential.New(addoncredential.Config{
		Hub: hub, Cluster: cluster, Endpoint: s.Endpoint, HubID: s.HubID, AddOns: collection, Spoke: place, Management: place,
		Namespace: p.o.namespace, Driver: s.Settings.AddOnDriver, CertificateSeconds: s.Settings.CertificateSeconds,
		TokenSeconds: s.Settings.AddOnTokenSeconds, Clock: p.clock,
	})
	if err != nil {
		return nil, err
	}
	health := addonhealth.New(addonhealth.Config{
		Hub: hub, Cluster: cluster, Clusters: s.clusters, AddOns: collection, Spoke: p.client, Management: p.client, Clock: p.clock,
	})
	return []loop{
		{"managedclusteraddons", collection.Run},
		{"addon secrets", place.Secrets.Run},
		{addoncredential.Name, registration.Run},
		{addonhealth.Name, health.Run},
	}, nil
}
