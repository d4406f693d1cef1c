// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FindPrunable returns the works that applying o with Prune would delete: those
// of its name on clusters that are not meant, which this library has written and
// nobody else has, such as a set or an add-on. Nothing is changed.
func FindPrunable(ctx context.Context, o WorkOptions) ([]WorkInfo, error) {
	ctx, cancel, _ := o.begin(ctx)
	defer cancel()
	names, err := o.Targets.Resolve(ctx, o.Hub)
	if err != nil {
		return nil, err
	}
	found, err := o.prunable(ctx, names)
	if err != nil {
		return nil, err
	}
	var out []WorkInfo
	for i := range found {
		info, err := workInfo(&found[i])
		if err != nil {
			return nil, err
		}
		out = append(out, info)
	}
	return out, nil
}

// prunable lists the works of the name on other clusters than the named ones.
func (o *WorkOptions) prunable(ctx context.Context, meant []string) ([]unstructured.Unstructured, error) {
	items, err := listAll(ctx, o.Hub, query{resource: manifestWorks, fields: "metadata.name=" + o.Name})
	if err != nil {
		return nil, explain("listing manifestworks", o.Hub, err)
	}
	items = slices.DeleteFunc(items, func(u unstructured.Unstructured) bool {
		return slices.Contains(meant, u.GetNamespace()) || ownerOf(&u) != "" || u.GetDeletionTimestamp() != nil || !isOurs(&u)
	})
	slices.SortFunc(items, func(a, b unstructured.Unstructured) int { return cmp.Compare(a.GetNamespace(), b.GetNamespace()) })
	return items, nil
}

// isOurs tells whether this library applied the object.
func isOurs(u *unstructured.Unstructured) bool {
	return slices.ContainsFunc(u.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == FieldManager && e.Operation == metav1.ManagedFieldsOperationApply
	})
}

// prune deletes the work where it is not meant any more, when it is everywhere
// else as it should be. Whether its objects stay is what each work itself says.
func (o *WorkOptions) prune(ctx context.Context, r *run, result WorkResult) (WorkResult, error) {
	meant := make([]string, 0, len(result.Clusters))
	for _, d := range result.Clusters {
		meant = append(meant, d.Cluster)
	}
	found, err := o.prunable(ctx, meant)
	if err != nil {
		return result, err
	}
	leaving := make([]string, len(found))
	for i := range found {
		leaving[i] = found[i].GetNamespace()
	}
	plain := *o
	plain.Orphan, plain.Force = false, false
	gone, err := each(leaving, func(name string) (Change, error) { return plain.deleteFrom(ctx, r, name) })
	result.Clusters, result.Items = append(result.Clusters, gone.Clusters...), append(result.Items, gone.Items...)
	slices.SortStableFunc(result.Clusters, func(a, b WorkDone) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return result, err
}
