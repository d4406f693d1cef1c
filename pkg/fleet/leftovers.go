// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// inventoryKinds are the kinds that an installation consists of.
var inventoryKinds = []schema.GroupVersionResource{
	namespaces, definitions, clusterRoles, clusterBindings, validatingHooks, mutatingHooks,
	roles, roleBindings, serviceAccounts, secrets, configMaps, coreServices, deployments,
}

// leftovers names the objects that still carry an inventory label.
func leftovers(ctx context.Context, c *Cluster, label string) ([]string, error) {
	var out []string
	for _, resource := range inventoryKinds {
		items, err := listAll(ctx, c, query{resource: resource, labels: label})
		if apierrors.IsForbidden(err) {
			continue
		}
		if err != nil {
			return nil, explain("looking for leftovers", c, err)
		}
		for i := range items {
			name := objectName(&items[i])
			if ns := items[i].GetNamespace(); ns != "" {
				name += " in " + ns
			}
			out = append(out, name)
		}
	}
	return out, nil
}
