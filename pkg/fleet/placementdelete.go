// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

var managementAddOns = schema.GroupVersionResource{Group: clusterAddOns.Group, Version: clusterAddOns.Version, Resource: "clustermanagementaddons"}

// PlacementUse is what uses a placement.
type PlacementUse struct {
	// Object is what uses it, as kind and name: ManifestWorkReplicaSet shop/web.
	Object string `json:"object"`
	// Loss is what happens when the placement is gone.
	Loss string `json:"loss"`
}

// PlacementDelete says which placements to delete.
type PlacementDelete struct {
	Common
	// Hub is the hub.
	Hub *Cluster
	// Placements to delete.
	Placements []types.NamespacedName
}

// PlacementResult is what happened to placements.
type PlacementResult struct {
	Items []Change `json:"items"`
}

// PlacementUses tells what uses each of the placements: sets of works and add-ons
// that are installed by it. What this user may not read is left out.
func PlacementUses(ctx context.Context, hub *Cluster, keys []types.NamespacedName) (map[types.NamespacedName][]PlacementUse, error) {
	out := map[types.NamespacedName][]PlacementUse{}
	add := func(key types.NamespacedName, use PlacementUse) {
		if slices.Contains(keys, key) {
			out[key] = append(out[key], use)
		}
	}
	sets, err := readable(ctx, hub, query{resource: replicaSets})
	if err != nil {
		return nil, err
	}
	for i := range sets {
		for _, name := range placementsOf(&sets[i]) {
			add(types.NamespacedName{Namespace: sets[i].GetNamespace(), Name: name}, PlacementUse{describe(&sets[i]), "its works go from the clusters"})
		}
	}
	addons, err := readable(ctx, hub, query{resource: managementAddOns})
	if err != nil {
		return nil, err
	}
	for i := range addons {
		refs, _, _ := unstructured.NestedSlice(addons[i].Object, "spec", "installStrategy", "placements")
		for _, ref := range refs {
			m, _ := ref.(map[string]any)
			name, _ := m["name"].(string)
			namespace, _ := m["namespace"].(string)
			add(types.NamespacedName{Namespace: namespace, Name: name}, PlacementUse{describe(&addons[i]), "it is no longer installed on the clusters"})
		}
	}
	return out, nil
}

// readable lists what the user may read.
func readable(ctx context.Context, hub *Cluster, q query) ([]unstructured.Unstructured, error) {
	items, err := listAll(ctx, hub, q)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	return items, explain("listing "+q.resource.Resource, hub, err)
}

// DeletePlacements deletes placements; their decisions go with them. One that is
// not there is unchanged.
func DeletePlacements(ctx context.Context, o PlacementDelete) (PlacementResult, error) {
	ctx, cancel, r := o.begin(ctx)
	defer cancel()
	if err := needHub(ctx, o.Hub); err != nil {
		return PlacementResult{}, err
	}
	var out PlacementResult
	for _, key := range o.Placements {
		u := named(clusterv1beta1.GroupVersion.WithKind("Placement"), key.Namespace, key.Name)
		live, err := r.live(ctx, o.Hub, u)
		if err != nil {
			return out, explain("reading "+describe(u), o.Hub, err)
		}
		change := Change{Object: u, Action: Unchanged}
		if live != nil {
			change = Change{Object: u, Action: Deleted, Live: clean(live)}
			if !o.reads() {
				err = remove(ctx, o.Hub, live)
			}
		}
		if err != nil {
			return out, explain(fmt.Sprintf("deleting %s", describe(u)), o.Hub, err)
		}
		out.Items = append(out.Items, change)
	}
	return out, nil
}
