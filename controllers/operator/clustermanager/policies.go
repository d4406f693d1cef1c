// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
)

// policies returns the NetworkPolicies of the layout. A policy is about the connection
// behind a Service, so the real ports of the API server are added to the usual ones.
func (r rendering) policies() ([]*unstructured.Unstructured, error) {
	if !r.Features.NetworkPolicies {
		return nil, nil
	}
	read := hub.Policies
	if r.Split == nil {
		read = hub.PoliciesOfCompact
	}
	out, err := read()
	if err != nil {
		return nil, err
	}
	var apps []any
	for _, c := range components {
		apps = append(apps, c.app)
	}
	for _, u := range out {
		spec, _ := u.Object["spec"].(map[string]any)
		selectPods(spec, apps)
		if u.GetName() == hub.EgressPolicy || u.GetName() == hub.ProcessPolicy {
			egress, _ := spec["egress"].([]any)
			rule, _ := egress[0].(map[string]any)
			allowPorts(rule, r.APIServer)
		}
		if u.GetName() == hub.IngressPolicy {
			ingress, _ := spec["ingress"].([]any)
			rule, _ := ingress[0].(map[string]any)
			for _, c := range components {
				allowPorts(rule, []int64{int64(bindingOf(c, r.Spec).port)})
			}
		}
	}
	return out, nil
}

// allowPorts adds the ports that a rule does not allow yet.
func allowPorts(rule map[string]any, ports []int64) {
	allowed, _ := rule["ports"].([]any)
	for _, port := range ports {
		p := map[string]any{"protocol": "TCP", "port": port}
		if !slices.ContainsFunc(allowed, func(q any) bool { return reflect.DeepEqual(p, q) }) {
			allowed = append(allowed, p)
		}
	}
	rule["ports"] = allowed
}

// selectPods makes the empty selectors below v select the pods of the apps.
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
