// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
)

// Delete deletes a set that is not in use: no cluster is in it by its label, and no namespace
// is bound to it, unless Unbind deletes the bindings too.
func Delete(ctx context.Context, o Options) (Result, error) {
	ctx, cancel, _ := o.Begin(ctx)
	defer cancel()
	if o.Name == clusterv1beta2.DefaultClusterSet || o.Name == clusterv1beta2.GlobalClusterSet {
		return Result{}, fleet.Refuse(fmt.Sprintf("the cluster set %q belongs to the hub", o.Name), "the hub would recreate it", nil)
	}
	sets, err := List(ctx, ListOptions{Common: o.Common, Hub: o.Hub})
	if err != nil {
		return Result{}, err
	}
	i := slices.IndexFunc(sets, func(s Info) bool { return s.Name == o.Name })
	u := fleet.Named(clusterv1beta2.GroupVersion.WithKind("ManagedClusterSet"), "", o.Name)
	if i < 0 {
		return Result{Items: []fleet.Change{{Object: u, Action: fleet.Unchanged}}}, nil
	}
	set := sets[i]
	switch {
	case set.SelectorType == string(clusterv1beta2.SelectorTypeExclusiveClusterSetLabel) && len(set.Members) > 0:
		return Result{}, fleet.Refuse(fmt.Sprintf("the cluster set %q is not empty", o.Name), "its clusters would be in a set that does not exist: "+
			fleet.Listed(set.Members),
			DropAll.On(o.Hub, "set", o.Name))
	case len(set.Bound) > 0 && !o.Unbind:
		return Result{}, fleet.Refuse(fmt.Sprintf("the cluster set %q is in use", o.Name), "the placements of these namespaces would lose its clusters: "+
			fleet.Listed(set.Bound),
			DropBindings.With())
	}
	var out Result
	for _, namespace := range set.Bound {
		bound := o
		bound.Namespace = namespace
		change, err := o.deleteIfPresent(ctx, bound.binding())
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, change)
	}
	change, err := o.deleteIfPresent(ctx, u)
	if err != nil {
		return out, err
	}
	out.Items = append(out.Items, change)
	return out, nil
}

// deleteIfPresent deletes an object that may be gone already.
func (o *Options) deleteIfPresent(ctx context.Context, u *unstructured.Unstructured) (fleet.Change, error) {
	live, err := write.Live(ctx, o.Hub, u)
	if err != nil {
		return fleet.Change{}, fleet.Explain("reading "+fleet.Describe(u), o.Hub, err)
	}
	if live == nil {
		return fleet.Change{Object: u, Action: fleet.Unchanged}, nil
	}
	change := fleet.Change{Object: u, Action: fleet.Deleted, Live: write.Clean(live)}
	if o.Reads() {
		return change, nil
	}
	return change, fleet.Explain("deleting "+fleet.Describe(u), o.Hub, fleet.Remove(ctx, o.Hub, live))
}
