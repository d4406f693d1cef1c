// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
)

// slicesResource are the endpoints behind Services.
var slicesResource = schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}

// portsOf returns the ports of an EndpointSlice.
func portsOf(u *unstructured.Unstructured) ([]int64, bool) {
	var out []int64
	ports, _, err := unstructured.NestedSlice(u.Object, "ports")
	for _, p := range ports {
		m, _ := p.(map[string]any)
		if port, ok := m["port"].(int64); ok {
			out = append(out, port)
		}
	}
	return out, err == nil
}

// policies returns the NetworkPolicies of the components. A policy is about the connection
// behind a Service, so the real ports of the API server are added to the usual ones.
func (r rendering) policies() ([]*unstructured.Unstructured, error) {
	if !r.Features.NetworkPolicies {
		return nil, nil
	}
	out, err := hub.Policies()
	if err != nil {
		return nil, err
	}
	var apps, allowed []any
	for _, c := range components {
		apps = append(apps, c.app)
	}
	for _, port := range r.APIServer {
		allowed = append(allowed, map[string]any{"protocol": "TCP", "port": port})
	}
	for _, u := range out {
		spec, _ := u.Object["spec"].(map[string]any)
		selectPods(spec, apps)
		if u.GetName() != hub.EgressPolicy {
			continue
		}
		egress, _ := spec["egress"].([]any)
		rule, _ := egress[0].(map[string]any)
		ports, _ := rule["ports"].([]any)
		has := func(p any) bool {
			return slices.ContainsFunc(ports, func(q any) bool {
				a, _ := p.(map[string]any)
				b, _ := q.(map[string]any)
				return a["port"] == b["port"] && a["protocol"] == b["protocol"]
			})
		}
		rule["ports"] = append(ports, slices.DeleteFunc(allowed, has)...)
	}
	return out, nil
}

// selectPods makes the empty selectors below v select the pods with one of the labels.
func selectPods(v any, apps []any) {
	switch v := v.(type) {
	case []any:
		for _, each := range v {
			selectPods(each, apps)
		}
	case map[string]any:
		for key, each := range v {
			if selector, ok := each.(map[string]any); ok && key == "podSelector" && len(selector) == 0 {
				v[key] = map[string]any{"matchExpressions": []any{map[string]any{"key": "app", "operator": "In", "values": slices.Clone(apps)}}}
				continue
			}
			selectPods(each, apps)
		}
	}
}
