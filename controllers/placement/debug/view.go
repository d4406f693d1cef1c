// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/placement"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule/verdict"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
)

// maxDetails bounds how many requirements, tolerations and prioritizers are checked
// against clusters for one explanation: each adds a line to it.
const maxDetails = 300_000

// View is a Fleet over the caches of the placement loop. Each question is decided in a
// scheduler of its own, so that the loop never waits for it.
type View struct {
	// Reader returns the caches, or nil while the loops do not run here.
	Reader func() manager.Reader
	// Clock gives the time for tolerations and scores.
	Clock clock.PassiveClock
}

var _ Fleet = View{}

// Placement implements Fleet.
func (v View) Placement(ctx context.Context, key schedule.Key) (*clusterv1beta1.Placement, error) {
	reader := v.Reader()
	if reader == nil {
		return nil, ErrAway
	}
	p := &clusterv1beta1.Placement{}
	if err := reader.Get(ctx, key, p); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading placement %s: %w", key, err)
	}
	return p, nil
}

// Explain implements Fleet.
func (v View) Explain(ctx context.Context, p *clusterv1beta1.Placement) (verdict.Explanation, error) {
	reader := v.Reader()
	if reader == nil {
		return verdict.Explanation{}, ErrAway
	}
	trial, frozen := schedule.Trial(p)
	s := schedule.New()
	count, err := loadClusters(s, reader, trial)
	if err != nil {
		return verdict.Explanation{}, err
	}
	if count*details(trial) > maxDetails {
		return verdict.Explanation{}, ErrTooMuch
	}
	live, err := loadRest(ctx, s, reader, trial)
	if err != nil {
		return verdict.Explanation{}, err
	}
	s.SetPlacement(trial)
	key := schedule.Key{Namespace: trial.Namespace, Name: trial.Name}
	for {
		report := s.Explain(key, v.Clock.Now())
		switch {
		case report.Result.Skip != schedule.SkipMore:
			out := verdict.Of(trial, &report, live)
			out.Frozen = frozen
			return out, nil
		case ctx.Err() != nil:
			return verdict.Explanation{}, ErrTooMuch
		}
	}
}

// details is how many lines an explanation has for each cluster.
func details(p *clusterv1beta1.Placement) int {
	n := 1 + len(p.Spec.Tolerations) + len(p.Spec.PrioritizerPolicy.Configurations) + len(p.Spec.SpreadPolicy.SpreadConstraints)
	for i := range p.Spec.Predicates {
		s := &p.Spec.Predicates[i].RequiredClusterSelector
		n += 1 + len(s.LabelSelector.MatchLabels) + len(s.LabelSelector.MatchExpressions) + len(s.ClaimSelector.MatchExpressions) + len(s.CELSelector.CELExpressions)
	}
	return n
}

// loadClusters adds all clusters to a scheduler, and counts them.
func loadClusters(s *schedule.Scheduler, reader manager.Reader, p *clusterv1beta1.Placement) (count int, err error) {
	needed := placement.Needed(p)
	err = manager.Each(reader, &clusterv1.ManagedCluster{}, func(mc *clusterv1.ManagedCluster) {
		count++
		s.SetCluster(needed(mc))
	})
	return count, err
}

// loadRest adds everything else to a scheduler, and returns the decisions of the
// placement.
func loadRest(
	ctx context.Context, s *schedule.Scheduler, reader manager.Reader, p *clusterv1beta1.Placement,
) (live []*clusterv1beta1.PlacementDecision, err error) {
	var sets clusterv1beta2.ManagedClusterSetList
	var bindings clusterv1beta2.ManagedClusterSetBindingList
	var decisions clusterv1beta1.PlacementDecisionList
	var scores clusterv1alpha1.AddOnPlacementScoreList
	for _, list := range []struct {
		into    manager.List
		options []manager.ReadOption
	}{
		{&sets, nil}, {&bindings, []manager.ReadOption{manager.InNamespace(p.Namespace)}}, {&decisions, nil}, {&scores, nil},
	} {
		if list.into == &scores && !schedule.ReadsScores(p) {
			continue
		}
		if err := reader.List(ctx, list.into, append(list.options, manager.NotCopied)...); err != nil {
			return nil, fmt.Errorf("listing for an explanation: %w", err)
		}
	}
	for i := range sets.Items {
		s.SetClusterSet(&sets.Items[i])
	}
	for i := range bindings.Items {
		s.SetBinding(&bindings.Items[i])
	}
	for i := range scores.Items {
		s.SetScore(&scores.Items[i])
	}
	for i := range decisions.Items {
		d := &decisions.Items[i]
		if d.Namespace == p.Namespace && d.Labels[clusterv1beta1.LabelPlacement] == p.Name && p.Name != "" {
			live = append(live, d)
		}
		s.SetDecision(d)
	}
	return live, nil
}
