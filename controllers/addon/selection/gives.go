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

// Gives tells whether people give a configuration to an add-on on a cluster: it is a
// default, or that of a placement that selects the cluster, now or until the rollout
// comes to it. What the instance names itself is not looked at here. known is false
// when there is no add-on of the name.
//
// The status of an instance, which says what a cluster is to have, can be written by
// the agent of that cluster; nothing that is read here can.
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
		if !slices.Contains(p.Configs, c) && !had(a, p.PlacementRef, c) {
			continue
		}
		if given, err = x.selects(ctx, p.PlacementRef, cluster); given || err != nil {
			return given, true, err
		}
	}
	return false, true, nil
}

// had tells whether clusters of a placement may still have a configuration that it names
// no more: a rollout of the next one is under way. The status of an add-on is the hub's.
func had(a *addonv1alpha1.ClusterManagementAddOn, of addonv1alpha1.PlacementRef, c addonv1alpha1.AddOnConfig) bool {
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

// decided looks for a cluster among the decisions of a placement.
func decided(reader manager.Reader) func(context.Context, addonv1alpha1.PlacementRef, string) (bool, error) {
	return func(ctx context.Context, of addonv1alpha1.PlacementRef, cluster string) (bool, error) {
		list := &clusterv1beta1.PlacementDecisionList{}
		own := manager.WithLabels(map[string]string{clusterv1beta1.LabelPlacement: of.Name})
		if err := reader.List(ctx, list, manager.InNamespace(of.Namespace), own, manager.NotCopied); err != nil {
			return false, fmt.Errorf("listing the decisions of placement %s/%s: %w", of.Namespace, of.Name, err)
		}
		for i := range list.Items {
			if slices.ContainsFunc(list.Items[i].Status.Decisions, func(d clusterv1beta1.ClusterDecision) bool { return d.ClusterName == cluster }) {
				return true, nil
			}
		}
		return false, nil
	}
}
