// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	"github.com/kubectl-ocm/kubectl-ocm/internal/rollout"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Placement is a placement of an install strategy with its result.
type Placement struct {
	addonv1alpha1.PlacementStrategy
	// Found is false when the placement does not exist.
	Found bool
	// Decided is false while it has no decision.
	Decided bool
	// Clusters are the selected clusters, in no particular order.
	Clusters []string
	// Invalid is why its decision groups or the rollout strategy cannot be used.
	Invalid error
	// Groups and Strategy determine the rollout.
	Groups   []rollout.Group
	Strategy rollout.Strategy
}

// Usable reports whether the placement determines where to roll out, and how.
func (p Placement) Usable() bool { return p.Found && p.Decided && p.Invalid == nil }

// Read reads the placements of an add-on's install strategy, in its order. The strategy
// Manual has none.
func Read(ctx context.Context, reader manager.Reader, addOn *addonv1alpha1.ClusterManagementAddOn) ([]Placement, error) {
	if !ByPlacements(addOn) {
		return nil, nil
	}
	var out []Placement
	for _, s := range addOn.Spec.InstallStrategy.Placements {
		p, err := read(ctx, reader, s)
		if err != nil {
			return nil, fmt.Errorf("reading placement %s/%s: %w", s.Namespace, s.Name, err)
		}
		out = append(out, p)
	}
	return out, nil
}

func read(ctx context.Context, reader manager.Reader, s addonv1alpha1.PlacementStrategy) (Placement, error) {
	p := Placement{PlacementStrategy: s}
	placement := &clusterv1beta1.Placement{}
	err := reader.Get(ctx, reconcile.Key{Namespace: s.Namespace, Name: s.Name}, placement)
	if apierrors.IsNotFound(err) {
		return p, nil
	}
	if err != nil {
		return p, fmt.Errorf("reading it: %w", err)
	}
	p.Found = true
	list, err := decisionsOf(ctx, reader, s.PlacementRef)
	if err != nil {
		return p, fmt.Errorf("listing its decisions: %w", err)
	}
	decisions := make([]*clusterv1beta1.PlacementDecision, 0, len(list))
	for i := range list {
		decisions = append(decisions, &list[i])
		for _, d := range list[i].Status.Decisions {
			p.Clusters = append(p.Clusters, d.ClusterName)
		}
	}
	p.Decided = len(decisions) > 0
	p.Invalid = p.parse(decisions, sized(s.RolloutStrategy, placement.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup))
	return p, nil
}

// decisionsOf reads the decisions of a placement.
func decisionsOf(ctx context.Context, reader manager.Reader, of addonv1alpha1.PlacementRef) ([]clusterv1beta1.PlacementDecision, error) {
	list := &clusterv1beta1.PlacementDecisionList{}
	own := manager.WithLabels(map[string]string{clusterv1beta1.LabelPlacement: of.Name})
	err := reader.List(ctx, list, manager.InNamespace(of.Namespace), own, manager.NotCopied)
	return list.Items, err
}

// parse sets the groups and the strategy, or returns what is wrong with them.
func (p *Placement) parse(decisions []*clusterv1beta1.PlacementDecision, strategy clusterv1alpha1.RolloutStrategy) (err error) {
	if p.Groups, err = rollout.Groups(decisions); err != nil {
		return err
	}
	if p.Strategy, err = rollout.Parse(strategy); err != nil {
		return fmt.Errorf("rolloutStrategy.%w", err)
	}
	return nil
}

// sized returns the strategy with the placement's group size as maxConcurrency, if it sets
// none.
func sized(s clusterv1alpha1.RolloutStrategy, group *intstr.IntOrString) clusterv1alpha1.RolloutStrategy {
	if p := s.Progressive; s.Type == clusterv1alpha1.RolloutTypeProgressive && group != nil && (p == nil || p.MaxConcurrency == nil) {
		s.Progressive = new(ptr.Deref(p, clusterv1alpha1.RolloutProgressive{}))
		s.Progressive.MaxConcurrency = group
	}
	return s
}
