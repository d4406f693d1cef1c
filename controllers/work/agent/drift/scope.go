// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// maxNamespaces is in how many namespaces a resource is watched one by one.
// Above it, one watch of the whole cluster costs the API server less.
const maxNamespaces = 8

// scope is what one watch covers; an empty namespace covers the cluster.
type scope struct {
	resource  schema.GroupVersionResource
	namespace string
}

// object names one object of a watched resource.
type object struct {
	resource schema.GroupVersionResource
	key      reconcile.Key
}

// scopes are the watches that objects need. Resources in wide may not be
// watched in the whole cluster and are watched namespace by namespace in any
// number.
func scopes(objects map[object]map[string]bool, wide map[schema.GroupVersionResource]bool) map[scope]bool {
	namespaces := map[schema.GroupVersionResource]map[string]bool{}
	for o := range objects {
		if namespaces[o.resource] == nil {
			namespaces[o.resource] = map[string]bool{}
		}
		namespaces[o.resource][o.key.Namespace] = true
	}
	out := map[scope]bool{}
	for resource, in := range namespaces {
		if in[""] || (len(in) > maxNamespaces && !wide[resource]) {
			out[scope{resource: resource}] = true
			continue
		}
		for namespace := range in {
			out[scope{resource, namespace}] = true
		}
	}
	return out
}
