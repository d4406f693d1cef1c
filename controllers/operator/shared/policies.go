// SPDX-License-Identifier: Apache-2.0

package shared

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/internal/observe"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// PoliciesResource are the NetworkPolicies of a cluster.
var PoliciesResource = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}

// egressPolicy and ingressPolicy are what is allowed; everything else is denied.
const egressPolicy, ingressPolicy = "allow-dns-and-api", "klusterlet-agent"

// PolicyNames returns the names of the NetworkPolicies of an agent, in the order to apply: all is
// denied last.
func PolicyNames() []string { return []string{egressPolicy, ingressPolicy, "default-deny-all"} }

// Policies says what the pods of an agent may be sent, and what they may reach. They are about these
// pods only, so that others in the namespace are not cut off.
type Policies struct {
	// Klusterlet is the name of the Klusterlet, Namespace where its agent runs.
	Klusterlet, Namespace string
	// Apps are the values of the label app of the pods.
	Apps []string
	// Ports are those that the pods may reach besides name servers; none allows every TCP port.
	Ports []int64
}

// Object returns one NetworkPolicy; name is one of PolicyNames.
func (p Policies) Object(name string) *unstructured.Unstructured {
	apps := make([]any, len(p.Apps))
	for i, app := range p.Apps {
		apps[i] = app
	}
	// Explicitly empty, so that rules of others are removed.
	spec := map[string]any{"ingress": []any{}, "egress": []any{}, "podSelector": map[string]any{
		"matchExpressions": []any{map[string]any{"key": "app", "operator": "In", "values": apps}},
	}}
	port := func(protocol string, number int64) any { return map[string]any{"protocol": protocol, "port": number} }
	switch name {
	case egressPolicy:
		ports := []any{port("UDP", 53), port("TCP", 53), port("UDP", 5353), port("TCP", 5353)}
		for _, number := range p.Ports {
			ports = append(ports, port("TCP", number))
		}
		if len(p.Ports) == 0 {
			ports = append(ports, map[string]any{"protocol": "TCP"})
		}
		spec["policyTypes"], spec["egress"] = []any{"Egress"}, []any{map[string]any{"ports": ports}}
	case ingressPolicy: // metrics, and the probes of nodes that count as any other source
		spec["policyTypes"] = []any{"Ingress"}
		spec["ingress"] = []any{map[string]any{"ports": []any{port("TCP", observe.Port)}}}
	default:
		spec["policyTypes"] = []any{"Ingress", "Egress"}
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "spec": spec}}
	u.SetNamespace(p.Namespace)
	u.SetName(name)
	u.SetLabels(map[string]string{operatorv1.LabelCreatedByKlusterlet: p.Klusterlet})
	return u
}

// NewAPIServers watches the ports of the API servers of a cluster. Policies are about the connection
// behind the Service.
func NewAPIServers(client dynamic.Interface, log logr.Logger) *watch.Collection[[]int64] {
	return watch.New(watch.Options[[]int64]{
		Client: client, Resource: schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
		Namespace: metav1.NamespaceDefault, FieldSelector: "metadata.name=kubernetes", Log: log,
		Keep: func(u *unstructured.Unstructured) (out []int64, keep bool) {
			ports, _, err := unstructured.NestedSlice(u.Object, "ports")
			for _, p := range ports {
				m, _ := p.(map[string]any)
				if port, ok := m["port"].(int64); ok {
					out = append(out, port)
				}
			}
			return out, err == nil
		},
		Same: slices.Equal[[]int64],
	})
}

// APIPorts returns the usual ports of API servers, those given, and those of the servers in Secrets with
// kubeconfigs and of the proxies before them, sorted. What is wrong with a Secret, the conditions say.
func APIPorts(given []int64, kubeconfigs ...map[string][]byte) []int64 {
	out := append([]int64{443, 6443}, given...)
	for _, data := range kubeconfigs {
		config, err := kubeconfig.ParseSecret(data)
		if err != nil {
			continue
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
