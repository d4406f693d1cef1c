// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// Loss is a placement and the clusters that it would no longer select.
type Loss struct {
	// Placement is its NAMESPACE/NAME.
	Placement string
	// Clusters are those that it loses.
	Clusters []string
}

// Losing returns the placements that select one of the clusters now and do not tolerate all of
// the taints that keep clusters from being selected.
func Losing(ctx context.Context, hub *fleet.Cluster, clusters []string, taints []clusterv1.Taint) ([]Loss, error) {
	taints = slices.DeleteFunc(slices.Clone(taints), func(t clusterv1.Taint) bool { return t.Effect != clusterv1.TaintEffectNoSelect })
	if len(taints) == 0 {
		return nil, nil
	}
	var items, decisions []unstructured.Unstructured
	if err := fleet.ListTogether(ctx, hub,
		fleet.Into(&items, fleet.Query{Resource: fleet.Placements}),
		fleet.Into(&decisions, fleet.Query{Resource: fleet.PlacementDecisions, Labels: clusterv1beta1.LabelPlacement}),
	); err != nil {
		return nil, err
	}
	selected := decidedBy(decisions)
	var out []Loss
	err := TakeUp(&items, func(p *clusterv1beta1.Placement) {
		lost := slices.DeleteFunc(selected[KeyOf(p)], func(name string) bool { return !slices.Contains(clusters, name) })
		drops := func(t clusterv1.Taint) bool { return !schedule.ToleratesForGood(p, &t) }
		if len(lost) > 0 && slices.ContainsFunc(taints, drops) {
			out = append(out, Loss{Placement: KeyOf(p).String(), Clusters: lost})
		}
	})
	return out, err
}
