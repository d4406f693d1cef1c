// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"encoding/base64"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
)

// Where the API stands among those that have a resource of the same name; it has none.
const groupPriority, versionPriority = 1000, 15

// apiService returns what makes the hub's API server serve the API of managed clusters. While it
// exists and nobody answers behind it, namespaces of the hub are not deleted: so it exists only
// while the gate is on.
func apiService(bundle []byte) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": connectv1alpha1.APIService},
		"spec": map[string]any{
			"group": connectv1alpha1.GroupName, "version": connectv1alpha1.Version,
			"groupPriorityMinimum": int64(groupPriority), "versionPriority": int64(versionPriority),
			"caBundle": base64.StdEncoding.EncodeToString(bundle),
			"service":  map[string]any{"namespace": hub.Namespace, "name": hub.ProxyService, "port": int64(hub.WebhookPort)},
		},
	}}
}
