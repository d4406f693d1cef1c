// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
)

// documents are what clients read to find out what an API server serves, by path. The API server
// merges them into its own.
func documents() map[string]any {
	version := metav1.GroupVersionForDiscovery{GroupVersion: connectv1alpha1.GroupVersion.String(), Version: connectv1alpha1.Version}
	group := metav1.APIGroup{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroup"}, Name: connectv1alpha1.GroupName,
		Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
	}
	resource := func(name, kind string, verbs ...string) metav1.APIResource {
		return metav1.APIResource{Name: name + connectv1alpha1.SuffixProxy, Kind: kind, Verbs: verbs}
	}
	account := resource(connectv1alpha1.ResourceManagedServiceAccounts, "ManagedServiceAccountProxyOptions", "create", "delete", "get", "patch", "update")
	account.Namespaced = true
	resources := metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: connectv1alpha1.GroupVersion.String(),
		APIResources: []metav1.APIResource{
			resource(connectv1alpha1.ResourceManagedClusters, "ManagedClusterProxyOptions", "create", "delete", "get", "patch", "update"),
			resource(connectv1alpha1.ResourceClusterServices, "ClusterServiceProxyOptions", "create", "delete", "get", "patch", "update"),
			account,
			resource(connectv1alpha1.ResourceTunnels, "TunnelProxyOptions", "get"),
		},
	}
	return map[string]any{
		"/apis": metav1.APIGroupList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}, Groups: []metav1.APIGroup{group},
		},
		"/apis/" + connectv1alpha1.GroupName:       group,
		"/apis/" + version.GroupVersion:            resources,
		"/apis/" + version.GroupVersion + "/":      resources,
		"/apis/" + connectv1alpha1.GroupName + "/": group,
	}
}

// serveDocument answers with a document.
func serveDocument(w http.ResponseWriter, document any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(document) // a client that is gone needs no answer
}
