// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// InventoryKinds are the kinds that an installation consists of.
var InventoryKinds = []schema.GroupVersionResource{
	Namespaces, Definitions, ClusterRoles, ClusterBindings, ValidatingHooks, MutatingHooks,
	Roles, RoleBindings, ServiceAccounts, Secrets, ConfigMaps, Services, Deployments,
}

// Leftovers names the objects that still carry an inventory label.
func Leftovers(ctx context.Context, c *Cluster, label string) ([]string, error) {
	var out []string
	for _, resource := range InventoryKinds {
		items, err := ListAll(ctx, c, Query{Resource: resource, Labels: label})
		if apierrors.IsForbidden(err) {
			continue
		}
		if err != nil {
			return nil, Explain("looking for leftovers", c, err)
		}
		for i := range items {
			name := ObjectName(&items[i])
			if ns := items[i].GetNamespace(); ns != "" {
				name += " in " + ns
			}
			out = append(out, name)
		}
	}
	return out, nil
}

// Foreign returns what a namespace holds, of any kind, besides our objects and those that
// Kubernetes creates in every namespace.
func Foreign(ctx context.Context, c *Cluster, namespace string, isOurs func(*unstructured.Unstructured) bool) ([]string, error) {
	kinds, err := c.Namespaced(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, resource := range kinds {
		if resource.Resource == "events" {
			continue
		}
		items, err := ListAll(ctx, c, Query{Resource: resource, Namespace: namespace})
		if apierrors.IsMethodNotSupported(err) {
			continue
		}
		if err != nil {
			return nil, Explain("listing "+resource.Resource+" of namespace "+namespace, c, err)
		}
		for i := range items {
			item := &items[i]
			ours := isOurs(item) || item.GetDeletionTimestamp() != nil
			standard := (item.GetKind() == "ConfigMap" && item.GetName() == "kube-root-ca.crt") || (item.GetKind() == "ServiceAccount" && item.GetName() == "default")
			if !ours && !standard {
				out = append(out, ObjectName(item))
			}
		}
	}
	return out, nil
}
