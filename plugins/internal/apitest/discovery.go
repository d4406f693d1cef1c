// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// shortNames are the short names of kinds that tests use.
var shortNames = map[string][]string{"deployments": {"deploy"}, "configmaps": {"cm"}, "pods": {"po"}, "replicasets": {"rs"}, "namespaces": {"ns"}}

// aggregated is the content type of discovery.
const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// kinds serves discovery: /api and /apis list the kinds of the stored objects.
func (s *Server) kinds(w http.ResponseWriter, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var items []apidiscovery.APIGroupDiscovery
	last := ""
	for _, key := range slices.Sorted(maps.Keys(s.objects)) { // so groups, versions and resources are together
		u := s.objects[key]
		gvk := u.GroupVersionKind()
		collection, _, _ := strings.Cut(key, "|")
		if (gvk.Group == "") != (path == "/api") || collection == last {
			continue
		}
		last = collection
		if n := len(items); n == 0 || items[n-1].Name != gvk.Group {
			items = append(items, apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: gvk.Group}})
		}
		group := &items[len(items)-1]
		if n := len(group.Versions); n == 0 || group.Versions[n-1].Version != gvk.Version {
			group.Versions = append(group.Versions, apidiscovery.APIVersionDiscovery{Version: gvk.Version, Freshness: apidiscovery.DiscoveryFreshnessCurrent})
		}
		scope := apidiscovery.ScopeCluster
		if u.GetNamespace() != "" {
			scope = apidiscovery.ScopeNamespace
		}
		resource := collection[strings.LastIndexByte(collection, '/')+1:]
		version := &group.Versions[len(group.Versions)-1]
		version.Resources = append(version.Resources, apidiscovery.APIResourceDiscovery{
			Resource: resource, SingularResource: strings.ToLower(gvk.Kind), ShortNames: shortNames[resource], Scope: scope,
			ResponseKind: &metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}, Verbs: []string{"get", "list", "patch"},
		})
	}
	answerAs(w, aggregated, http.StatusOK, map[string]any{"apiVersion": "apidiscovery.k8s.io/v2", "kind": "APIGroupDiscoveryList", "items": items})
}
