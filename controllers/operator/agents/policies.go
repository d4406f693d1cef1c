// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/settings"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

var policiesResource = shared.PoliciesResource

// newAPIServers watches the ports of the API servers of this cluster.
func (c *Controller) newAPIServers() *watch.Collection[[]int64] {
	servers := shared.NewAPIServers(c.config.Client, c.config.Log)
	servers.OnChange(func(reconcile.Key) { c.wakeAll() })
	return servers
}

func (c *Controller) gatherPolicies(v *view, s *State) {
	for _, ports := range v.servers.List() {
		s.APIServer = append(s.APIServer, ports...)
	}
	for _, name := range shared.PolicyNames() {
		if seen, ok := v.restored[policiesResource].Get(reconcile.Key{Namespace: s.agentNamespace(), Name: name}); ok {
			s.Policies[name] = seen
		}
	}
}

// policies returns the applies of the agent's NetworkPolicies if it gets any, or else the removals
// of those that this Klusterlet had.
func (s State) policies(asked settings.Asked) []reconcile.Write {
	all := shared.Policies{Klusterlet: s.Klusterlet.Name, Namespace: s.agentNamespace(), Ports: s.servers(asked)}
	for _, p := range allProcesses { // of either mode
		all.Apps = append(all.Apps, p.app)
	}
	var out []reconcile.Write
	for _, name := range shared.PolicyNames() {
		live, found := s.Policies[name]
		switch {
		case asked.Policies:
			out = append(out, reconcile.Apply{Object: all.Object(name), LiveVersion: live.Version})
		case found && live.Owner == s.Klusterlet.Name:
			out = append(out, reconcile.Remove{Target: reconcile.Target{
				Resource: policiesResource, Namespace: s.agentNamespace(), Name: name, UID: live.UID,
			}})
		}
	}
	return out
}

// servers returns the ports of all API servers that the agent calls, and of the proxies before them;
// none with several hubs: the agent alone reads where they are.
func (s State) servers(asked settings.Asked) []int64 {
	if len(asked.Settings.Hubs) > 0 {
		return nil
	}
	return shared.APIPorts(s.APIServer, s.BootstrapSecret, s.HubSecret, s.managedSecret())
}

// managedSecret returns the kubeconfig of the managed cluster of a hosted agent; nil without one.
func (s State) managedSecret() map[string][]byte {
	if secret := s.secret(operatorv1.SecretExternalManagedKubeconfig); s.isHosted() && secret != nil {
		return secret.Data
	}
	return nil
}
