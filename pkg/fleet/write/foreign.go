// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// Lists of a pod's containers. Server-side apply keeps the entries that others have added.
var containerLists = []string{"containers", "initContainers"}

// foreignContainers returns the containers of a Deployment that are not among those wanted.
func foreignContainers(live, wanted *unstructured.Unstructured) []string {
	var out []string
	for _, list := range containerLists {
		ours := containersIn(wanted, list)
		for _, name := range containersIn(live, list) {
			if !slices.Contains(ours, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

func containersIn(u *unstructured.Unstructured, list string) []string {
	items, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", list)
	var out []string
	for _, item := range items {
		m, _ := item.(map[string]any)
		name, _ := m["name"].(string)
		out = append(out, name)
	}
	return out
}

// removeForeign prepares a live Deployment for the apply of ours: it removes containers that we do
// not run. They would have the ServiceAccount of the hub or the agent.
func removeForeign(ctx context.Context, c *fleet.Cluster, live, wanted *unstructured.Unstructured) error {
	clean := live.DeepCopy()
	for _, list := range containerLists {
		ours := containersIn(wanted, list)
		items, found, _ := unstructured.NestedSlice(clean.Object, "spec", "template", "spec", list)
		if !found {
			continue
		}
		items = slices.DeleteFunc(items, func(item any) bool {
			m, _ := item.(map[string]any)
			name, _ := m["name"].(string)
			return !slices.Contains(ours, name)
		})
		if len(items) == 0 && list == "containers" {
			items, _, _ = unstructured.NestedSlice(wanted.Object, "spec", "template", "spec", list)
		}
		if err := unstructured.SetNestedSlice(clean.Object, items, "spec", "template", "spec", list); err != nil {
			return err
		}
	}
	_, err := c.Client.Resource(fleet.Deployments).Namespace(live.GetNamespace()).Update(ctx, clean, metav1.UpdateOptions{FieldManager: fleet.FieldManager})
	return err
}
