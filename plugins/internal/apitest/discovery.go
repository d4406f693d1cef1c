// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"net/http"
	"slices"
	"strings"
)

// shortNames are the short names of kinds that tests use.
var shortNames = map[string][]any{"deployments": {"deploy"}, "configmaps": {"cm"}, "pods": {"po"}, "replicasets": {"rs"}, "namespaces": {"ns"}}

// aggregated is the content type of discovery.
const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// kinds serves discovery: /api and /apis list the kinds of the stored objects.
func (s *Server) kinds(w http.ResponseWriter, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	groups := map[string]map[string]map[string]any{} // group, version, resource
	for key, u := range s.objects {
		gvk := u.GroupVersionKind()
		if (gvk.Group == "") != (path == "/api") {
			continue
		}
		if groups[gvk.Group] == nil {
			groups[gvk.Group] = map[string]map[string]any{}
		}
		if groups[gvk.Group][gvk.Version] == nil {
			groups[gvk.Group][gvk.Version] = map[string]any{}
		}
		collection, _, _ := strings.Cut(key, "|")
		resource := collection[strings.LastIndexByte(collection, '/')+1:]
		scope := "Cluster"
		if u.GetNamespace() != "" {
			scope = "Namespaced"
		}
		groups[gvk.Group][gvk.Version][resource] = map[string]any{
			"resource": resource, "singularResource": strings.ToLower(gvk.Kind), "scope": scope, "verbs": []any{"get", "list", "patch"},
			"responseKind": map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}, "shortNames": shortNames[resource],
		}
	}
	var items []any
	for _, group := range sorted(groups) {
		var versions []any
		for _, version := range sorted(groups[group]) {
			var resources []any
			for _, resource := range sorted(groups[group][version]) {
				resources = append(resources, groups[group][version][resource])
			}
			versions = append(versions, map[string]any{"version": version, "freshness": "Current", "resources": resources})
		}
		items = append(items, map[string]any{"metadata": map[string]any{"name": group}, "versions": versions})
	}
	answerAs(w, aggregated, http.StatusOK, map[string]any{"apiVersion": "apidiscovery.k8s.io/v2", "kind": "APIGroupDiscoveryList", "items": items})
}

func sorted[V any](m map[string]V) []string {
	var out []string
	for key := range m {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}
