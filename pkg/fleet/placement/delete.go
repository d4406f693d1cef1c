// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
)

// Use is one user of a placement.
type Use struct {
	// Object is what uses it, as kind and name: ManifestWorkReplicaSet shop/web.
	Object string `json:"object"`
	// Loss is what happens when the placement is deleted.
	Loss string `json:"loss"`
}

// DeleteOptions say which placements to delete.
type DeleteOptions struct {
	fleet.Common
	// Hub is the hub.
	Hub *fleet.Cluster
	// Placements to delete.
	Placements []types.NamespacedName
}

// Result is what happened to placements.
type Result struct {
	Items []fleet.Change `json:"items"`
}

// Uses returns what uses each of the placements: sets of works, and add-ons installed by it.
// What the caller may not read is left out.
func Uses(ctx context.Context, hub *fleet.Cluster, keys []types.NamespacedName) (map[types.NamespacedName][]Use, error) {
	out := map[types.NamespacedName][]Use{}
	add := func(key types.NamespacedName, use Use) {
		if slices.Contains(keys, key) {
			out[key] = append(out[key], use)
		}
	}
	sets, err := listReadable(ctx, hub, fleet.Query{Resource: fleet.ReplicaSets})
	if err != nil {
		return nil, err
	}
	for i := range sets {
		for _, name := range PlacementsOf(&sets[i]) {
			add(types.NamespacedName{Namespace: sets[i].GetNamespace(), Name: name}, Use{fleet.Describe(&sets[i]), "its works are deleted from the clusters"})
		}
	}
	addons, err := listReadable(ctx, hub, fleet.Query{Resource: fleet.ManagementAddOns})
	if err != nil {
		return nil, err
	}
	for i := range addons {
		refs, _, _ := unstructured.NestedSlice(addons[i].Object, "spec", "installStrategy", "placements")
		for _, ref := range refs {
			m, _ := ref.(map[string]any)
			name, _ := m["name"].(string)
			namespace, _ := m["namespace"].(string)
			add(types.NamespacedName{Namespace: namespace, Name: name}, Use{fleet.Describe(&addons[i]), "it is no longer installed on the clusters"})
		}
	}
	return out, nil
}

// listReadable lists what the caller may read, and nothing otherwise.
func listReadable(ctx context.Context, hub *fleet.Cluster, q fleet.Query) ([]unstructured.Unstructured, error) {
	items, err := fleet.ListAll(ctx, hub, q)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	return items, fleet.Explain("listing "+q.Resource.Resource, hub, err)
}

// Delete deletes placements; their decisions are deleted with them. One that does not exist is
// unchanged.
func Delete(ctx context.Context, o DeleteOptions) (Result, error) {
	ctx, cancel, _ := o.Begin(ctx)
	defer cancel()
	if err := fleet.NeedHub(ctx, o.Hub); err != nil {
		return Result{}, err
	}
	var out Result
	for _, key := range o.Placements {
		u := fleet.Named(clusterv1beta1.GroupVersion.WithKind("Placement"), key.Namespace, key.Name)
		live, err := write.Live(ctx, o.Hub, u)
		if err != nil {
			return out, fleet.Explain("reading "+fleet.Describe(u), o.Hub, err)
		}
		if live == nil {
			out.Items = append(out.Items, fleet.Change{Object: u, Action: fleet.Unchanged})
			continue
		}
		if !o.Reads() {
			if err := fleet.Remove(ctx, o.Hub, live); err != nil {
				return out, fleet.Explain("deleting "+fleet.Describe(u), o.Hub, err)
			}
		}
		out.Items = append(out.Items, fleet.Change{Object: u, Action: fleet.Deleted, Live: write.Clean(live)})
	}
	return out, nil
}

// PlacementsOf returns the placements of a set; when it names none, one empty name.
func PlacementsOf(u *unstructured.Unstructured) []string {
	refs, _, _ := unstructured.NestedSlice(u.Object, "spec", "placementRefs")
	var out []string
	for _, ref := range refs {
		if m, ok := ref.(map[string]any); ok {
			name, _, _ := unstructured.NestedString(m, "name")
			out = append(out, name)
		}
	}
	if len(out) == 0 {
		return []string{""}
	}
	return out
}
