// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"strings"

	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// Trial returns a copy of a Placement to be decided as if it were neither frozen nor
// being deleted, to find out what it would select. frozen reports whether an annotation
// stops the hub from deciding it.
func Trial(p *clusterv1beta1.Placement) (trial *clusterv1beta1.Placement, frozen bool) {
	trial = p.DeepCopy()
	trial.DeletionTimestamp = nil
	frozen = trial.Annotations[clusterv1beta1.AnnotationSchedulingDisable] == "true"
	delete(trial.Annotations, clusterv1beta1.AnnotationSchedulingDisable)
	return trial, frozen
}

// ReadsScores reports whether AddOnPlacementScores can affect a Placement. If not, a
// caller that reads a fleet for one Placement can skip them.
func ReadsScores(p *clusterv1beta1.Placement) bool {
	for _, c := range p.Spec.PrioritizerPolicy.Configurations {
		if c.ScoreCoordinate != nil && c.ScoreCoordinate.AddOn != nil {
			return true
		}
	}
	for i := range p.Spec.Predicates {
		for _, text := range p.Spec.Predicates[i].RequiredClusterSelector.CELSelector.CELExpressions {
			if strings.Contains(text, scoresFunction) {
				return true
			}
		}
	}
	return false
}
