// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"fmt"
	"slices"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/config"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// Gives reports whether users assign a configuration to an add-on on a cluster: it is a
// default, or belongs to a placement that selects the cluster, now or until the rollout
// reaches the cluster. What the instance itself names is not checked here. known is false if
// there is no add-on with this name.
//
// The agent of a cluster can write the status of an instance, which names the desired
// configurations; it can write nothing that is read here.
func (x *Index) Gives(ctx context.Context, cluster, addOn string, c addonv1alpha1.AddOnConfig) (given, known bool, err error) {
	x.mu.Lock()
	a := x.addOns[addOn]
	x.mu.Unlock()
	if a == nil {
		return false, false, nil
	}
	if slices.Contains(config.Defaults(a.Spec), c) {
		return true, true, nil
	}
	if !ByPlacements(a) {
		return false, true, nil
	}
	for _, p := range a.Spec.InstallStrategy.Placements {
		if !slices.Contains(p.Configs, c) && !mayHave(a, p.PlacementRef, c) {
			continue
		}
		if given, err = x.selects(ctx, p.PlacementRef, cluster); given || err != nil {
			return given, true, err
		}
	}
	return false, true, nil
}

// mayHave reports whether clusters of a placement may still have a configuration that it no
// longer names, because the rollout of the next one is in progress. Only the hub writes the
// status of an add-on.
func mayHave(a *addonv1alpha1.ClusterManagementAddOn, of addonv1alpha1.PlacementRef, c addonv1alpha1.AddOnConfig) bool {
	is := func(h *addonv1alpha1.ConfigSpecHash) bool { return h != nil && h.ConfigReferent == c.ConfigReferent }
	for _, p := range a.Status.InstallProgressions {
		for _, r := range p.ConfigReferences {
			if p.PlacementRef == of && r.ConfigGroupResource == c.ConfigGroupResource && (is(r.LastAppliedConfig) || is(r.LastKnownGoodConfig)) {
				return true
			}
		}
	}
	return false
}

// decided returns a function that reports whether a cluster is among the decisions of a
// placement.
func decided(reader manager.Reader) func(context.Context, addonv1alpha1.PlacementRef, string) (bool, error) {
	return func(ctx context.Context, of addonv1alpha1.PlacementRef, cluster string) (bool, error) {
		list, err := decisionsOf(ctx, reader, of)
		if err != nil {
			return false, fmt.Errorf("listing the decisions of placement %s/%s: %w", of.Namespace, of.Name, err)
		}
		return slices.ContainsFunc(list, func(p clusterv1beta1.PlacementDecision) bool {
			return slices.ContainsFunc(p.Status.Decisions, func(d clusterv1beta1.ClusterDecision) bool { return d.ClusterName == cluster })
		}), nil
	}
}
