// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

const (
	channel    = "stable"
	repository = "https://github.com/kubectl-ocm/kubectl-ocm"
	// icon is a hub with three clusters.
	icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 48 48"><g fill="none" stroke="#326ce5" stroke-width="3">` +
		`<path d="M24 24V9M24 24l13 8M24 24l-13 8"/></g><g fill="#326ce5"><circle cx="24" cy="24" r="7"/><circle cx="24" cy="7" r="5"/>` +
		`<circle cx="39" cy="33" r="5"/><circle cx="9" cy="33" r="5"/></g></svg>`
)

func sortedKeys(of map[string]string) []string { return slices.Sorted(maps.Keys(of)) }

// serviceVersion returns the ClusterServiceVersion.
func (p product) serviceVersion(parts parts) (map[string]any, error) {
	sample := parts.sample.DeepCopy()
	sample.SetLabels(nil)
	examples, err := json.MarshalIndent([]any{sample.Object}, "", "  ")
	if err != nil {
		return nil, err
	}
	annotations := map[string]any{
		"alm-examples": string(examples), "capabilities": "Basic Install", "categories": "Integration & Delivery", "containerImage": p.image,
		"description": p.summary, "repository": repository, "support": repository + "/issues", "operatorframework.io/suggested-namespace": p.namespace,
	}
	return map[string]any{
		"apiVersion": "operators.coreos.com/v1alpha1",
		"kind":       "ClusterServiceVersion",
		"metadata":   map[string]any{"name": p.name + ".v" + p.version, "namespace": "placeholder", "annotations": annotations},
		"spec": map[string]any{
			"displayName": p.title, "description": p.description, "version": p.version, "maturity": channel, "minKubeVersion": p.minKube,
			"keywords": []string{"multicluster", "open-cluster-management"}, "provider": map[string]any{"name": "kubectl-ocm", "url": repository},
			// Without maintainers: OLM wants a mailbox of each, and the project has none.
			"links": []any{map[string]any{"name": "Source", "url": repository}},
			"icon":  []any{map[string]any{"mediatype": "image/svg+xml", "base64data": base64.StdEncoding.EncodeToString([]byte(icon))}},
			"installModes": []any{
				installMode("OwnNamespace", true), installMode("SingleNamespace", true), installMode("MultiNamespace", false), installMode("AllNamespaces", true),
			},
			"customresourcedefinitions": map[string]any{"owned": []any{map[string]any{
				"name": parts.definition.GetName(), "kind": parts.sample.GetKind(), "version": operatorv1.GroupVersion.Version,
				"displayName": p.title, "description": p.summary,
			}}},
			"install":       map[string]any{"strategy": "deployment", "spec": p.strategy(parts)},
			"relatedImages": []any{map[string]any{"name": p.name, "image": p.image}},
		},
	}, nil
}

func installMode(name string, supported bool) map[string]any {
	return map[string]any{"type": name, "supported": supported}
}

// strategy is what the manager creates itself: the Deployment, its account and its permissions.
func (p product) strategy(parts parts) map[string]any {
	grant := func(rules []rbacv1.PolicyRule) []any {
		return []any{map[string]any{"serviceAccountName": parts.account(), "rules": rules}}
	}
	return map[string]any{
		"clusterPermissions": grant(parts.clusterRules),
		"permissions":        grant(parts.rules),
		"deployments": []any{map[string]any{
			"name": parts.deployment.GetName(), "label": parts.deployment.GetLabels(), "spec": parts.deployment.Object["spec"],
		}},
	}
}
