// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
)

// Bind allows the placements of a namespace to use a set.
func Bind(ctx context.Context, o Options) (Result, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	if _, err := cluster.ReadSet(ctx, o.Hub, o.Name); err != nil {
		return Result{}, err
	}
	u := o.binding()
	u.Object["spec"] = map[string]any{"clusterSet": o.Name}
	change, err := write.One(ctx, r, o.Hub, u)
	if apierrors.IsNotFound(err) && !fleet.IsNoKind(err) {
		return Result{}, &fleet.Error{Message: fmt.Sprintf("there is no namespace %q on %s", o.Namespace, o.Hub),
			Fix: fleet.CreateNamespace.On(o.Hub, "namespace", o.Namespace), Err: err}
	}
	if err != nil {
		return Result{}, fleet.Explain("applying "+fleet.Describe(u), o.Hub, err)
	}
	return Result{Items: []fleet.Change{change}}, nil
}

func (o *Options) binding() *unstructured.Unstructured {
	return fleet.Named(clusterv1beta2.GroupVersion.WithKind("ManagedClusterSetBinding"), o.Namespace, o.Name)
}

// PlacementsIn returns the names of the placements of a namespace, which use its bindings.
func PlacementsIn(ctx context.Context, hub *fleet.Cluster, namespace string) ([]string, error) {
	items, err := fleet.ListAll(ctx, hub, fleet.Query{Resource: fleet.Placements, Namespace: namespace})
	if err != nil {
		return nil, fleet.Explain("listing placements", hub, err)
	}
	var out []string
	for i := range items {
		out = append(out, items[i].GetName())
	}
	slices.Sort(out)
	return out, nil
}

// Unbind stops the placements of a namespace from using a set.
func Unbind(ctx context.Context, o Options) (Result, error) {
	ctx, cancel, _ := o.Begin(ctx)
	defer cancel()
	if err := fleet.NeedHub(ctx, o.Hub); err != nil {
		return Result{}, err
	}
	change, err := o.deleteIfPresent(ctx, o.binding())
	if err != nil {
		return Result{}, err
	}
	return Result{Items: []fleet.Change{change}}, nil
}
