// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
