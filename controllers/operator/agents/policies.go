// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/settings"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/internal/observe"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

var (
	policiesResource = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}
	slicesResource   = schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}
)

// policyNames are the NetworkPolicies of an agent, in the order to apply: all is denied last.
var policyNames = []string{"allow-dns-and-api", "klusterlet-agent", "default-deny-all"}

// newAPIServers watches the ports of the API servers of this cluster. Policies are about the
// connection behind the Service.
func (c *Controller) newAPIServers() *watch.Collection[[]int64] {
	servers := watch.New(watch.Options[[]int64]{
		Client: c.config.Client, Resource: slicesResource, Namespace: metav1.NamespaceDefault, FieldSelector: "metadata.name=kubernetes",
		Log: c.config.Log, Keep: func(u *unstructured.Unstructured) (out []int64, keep bool) {
			ports, _, err := unstructured.NestedSlice(u.Object, "ports")
			for _, p := range ports {
				m, _ := p.(map[string]any)
				if port, ok := m["port"].(int64); ok {
					out = append(out, port)
				}
			}
			return out, err == nil
		},
	})
	servers.OnChange(func(reconcile.Key) { c.wakeAll() })
	return servers
}

func (c *Controller) gatherPolicies(v *view, s *State) {
	if v.servers == nil {
		return
	}
	for _, ports := range v.servers.List() {
		s.APIServer = append(s.APIServer, ports...)
	}
	for _, name := range policyNames {
		if seen, ok := v.restored[policiesResource].Get(reconcile.Key{Namespace: s.agentNamespace(), Name: name}); ok {
			s.Policies[name] = seen
		}
	}
}

// servePolicies makes an operator serve the gate NetworkPolicies, and reports whether the agent
// gets policies. With several hubs it gets none: the operator does not read where they are, and
// would cut the agent off from them.
func (s State) servePolicies(asked *settings.Asked) bool {
	if s.Compact || !asked.Policies {
		return false
	}
	asked.Unsupported = slices.DeleteFunc(asked.Unsupported, func(field string) bool { return field == settings.FieldPolicies })
	several := len(asked.Settings.Hubs) > 0
	asked.AddUnsupported(several, settings.FieldPolicies+" (with several hubs)")
	return !several
}

// policies returns the applies of the agent's NetworkPolicies if it gets any, or else the removals
// of those that this Klusterlet had.
func (s State) policies(wanted bool) []reconcile.Write {
	var out []reconcile.Write
	for _, name := range policyNames {
		live, found := s.Policies[name]
		switch {
		case wanted:
			out = append(out, reconcile.Apply{Object: s.policy(name), LiveVersion: live.Version})
		case found && live.Owner == s.Klusterlet.Name:
			out = append(out, reconcile.Remove{Target: reconcile.Target{
				Resource: policiesResource, Namespace: s.agentNamespace(), Name: name, UID: live.UID,
			}})
		}
	}
	return out
}

// policy returns one NetworkPolicy. It is about the pods of the agent only, in either mode, so that
// others in the namespace are not cut off.
func (s State) policy(name string) *unstructured.Unstructured {
	var apps []any
	for _, p := range allProcesses {
		apps = append(apps, p.app)
	}
	// Explicitly empty, so that rules of others are removed.
	spec := map[string]any{"ingress": []any{}, "egress": []any{}, "podSelector": map[string]any{
		"matchExpressions": []any{map[string]any{"key": "app", "operator": "In", "values": apps}},
	}}
	port := func(protocol string, number int64) any { return map[string]any{"protocol": protocol, "port": number} }
	switch name {
	case "allow-dns-and-api":
		ports := []any{port("UDP", 53), port("TCP", 53), port("UDP", 5353), port("TCP", 5353)}
		for _, number := range s.servers() {
			ports = append(ports, port("TCP", number))
		}
		spec["policyTypes"], spec["egress"] = []any{"Egress"}, []any{map[string]any{"ports": ports}}
	case "klusterlet-agent": // metrics, and the probes of nodes that count as any other source
		spec["policyTypes"] = []any{"Ingress"}
		spec["ingress"] = []any{map[string]any{"ports": []any{port("TCP", observe.Port)}}}
	default:
		spec["policyTypes"] = []any{"Ingress", "Egress"}
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "spec": spec}}
	u.SetNamespace(s.agentNamespace())
	u.SetName(name)
	u.SetLabels(map[string]string{operatorv1.LabelCreatedByKlusterlet: s.Klusterlet.Name})
	return u
}

// servers returns the ports of all API servers that the agent calls, and of the proxies before them.
func (s State) servers() []int64 {
	out := append([]int64{443, 6443}, s.APIServer...)
	for _, data := range []map[string][]byte{s.BootstrapSecret, s.HubSecret, s.managedSecret()} {
		config, err := kubeconfig.ParseSecret(data)
		if err != nil {
			continue // the conditions say so
		}
		for _, address := range []string{config.Server, config.ProxyURL} {
			if port, ok := portOf(address); ok {
				out = append(out, port)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// managedSecret returns the kubeconfig of the managed cluster of a hosted agent; nil without one.
func (s State) managedSecret() map[string][]byte {
	if secret := s.secret(operatorv1.SecretExternalManagedKubeconfig); s.isHosted() && secret != nil {
		return secret.Data
	}
	return nil
}

// portOf returns the port of a URL; false if it does not say one that can be used.
func portOf(address string) (int64, bool) {
	u, err := url.Parse(address)
	if err != nil {
		return 0, false
	}
	usual := map[string]string{"http": "80", "https": "443", "socks5": "1080"}
	port, err := strconv.ParseUint(cmp.Or(u.Port(), usual[u.Scheme]), 10, 16)
	return int64(port), err == nil && port > 0
}
