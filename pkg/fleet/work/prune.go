// SPDX-License-Identifier: Apache-2.0

package work

import (
	"cmp"
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// FindPrunable returns the works that applying o with Prune would delete: those of its name on
// clusters that are no longer targets, which this library created and nothing else owns, such
// as a set or an add-on. It changes nothing.
func FindPrunable(ctx context.Context, o Options) ([]Info, error) {
	ctx, cancel, _ := o.Begin(ctx)
	defer cancel()
	names, err := o.Targets.Resolve(ctx, o.Hub)
	if err != nil {
		return nil, err
	}
	found, err := o.prunable(ctx, names)
	if err != nil {
		return nil, err
	}
	var out []Info
	for i := range found {
		info, err := InfoOf(&found[i])
		if err != nil {
			return nil, err
		}
		out = append(out, info)
	}
	return out, nil
}

// prunable lists the works of the name on clusters that are not targets.
func (o *Options) prunable(ctx context.Context, meant []string) ([]unstructured.Unstructured, error) {
	items, err := fleet.ListAll(ctx, o.Hub, fleet.Query{Resource: fleet.ManifestWorks, Fields: "metadata.name=" + o.Name})
	if err != nil {
		return nil, fleet.Explain("listing manifestworks", o.Hub, err)
	}
	items = slices.DeleteFunc(items, func(u unstructured.Unstructured) bool {
		return slices.Contains(meant, u.GetNamespace()) || ownerOf(&u) != "" || u.GetDeletionTimestamp() != nil || !isOurs(&u)
	})
	slices.SortFunc(items, func(a, b unstructured.Unstructured) int { return cmp.Compare(a.GetNamespace(), b.GetNamespace()) })
	return items, nil
}

// isOurs reports whether this library applied the object.
func isOurs(u *unstructured.Unstructured) bool {
	return slices.ContainsFunc(u.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == fleet.FieldManager && e.Operation == metav1.ManagedFieldsOperationApply
	})
}

// prune deletes the work where it is no longer wanted, once it is as wanted everywhere else.
// Whether its objects stay is up to each work.
func (o *Options) prune(ctx context.Context, r *fleet.Run, meant []string, result fleet.ClusterChanges) (fleet.ClusterChanges, error) {
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
	gone, err := fleet.Each(leaving, func(name string) (fleet.Change, error) { return plain.deleteFrom(ctx, r, name) })
	result.Clusters, result.Items = append(result.Clusters, gone.Clusters...), append(result.Items, gone.Items...)
	slices.SortStableFunc(result.Clusters, func(a, b fleet.ClusterChange) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return result, err
}
