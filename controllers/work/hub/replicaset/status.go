// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// unnamed reports a replica set whose children cannot carry its label.
func unnamed(set *workv1alpha1.ManifestWorkReplicaSet, problem string, now time.Time) {
	setCondition(set, now, metav1.Condition{
		Type: workv1alpha1.ConditionManifestworkApplied, Status: metav1.ConditionFalse, Reason: workv1alpha1.ReasonInvalidManifestWorkName,
		Message: fmt.Sprintf("metadata.name: %s.%s marks the ManifestWorks as a label and cannot be one: %s; use a shorter name", set.Namespace, set.Name, problem),
	})
}

// report sets summary and conditions.
func report(set *workv1alpha1.ManifestWorkReplicaSet, d *delivery, now time.Time) {
	set.Status.Summary = workv1alpha1.ManifestWorkReplicaSetSummary{}
	set.Status.PlacementSummary = nil
	done, desired := 0, 0
	var missing, invalid, undecided []string
	for i, p := range d.Placements {
		switch {
		case !p.Found:
			missing = append(missing, p.Name)
		case p.Invalid != nil:
			invalid = append(invalid, fmt.Sprintf("%s: %s", p.Name, p.Invalid))
		case !p.Decided:
			undecided = append(undecided, p.Name)
		}
		one, existing, selected := d.summarize(i, &set.Status.Summary)
		done, desired = done+len(d.plans[i].Done), desired+selected
		set.Status.PlacementSummary = append(set.Status.PlacementSummary, workv1alpha1.PlacementSummary{
			Name: p.Name, Summary: one,
			AvailableDecisionGroups: fmt.Sprintf("%d (%d / %d clusters applied)", len(p.Groups), existing, selected),
		})
	}
	sum := set.Status.Summary
	incomplete := len(missing)+len(invalid)+len(undecided) > 0
	setCondition(set, now, verified(desired, missing, invalid, undecided))
	setCondition(set, now, rolledOut(d, done, desired, incomplete))
	setCondition(set, now, applied(sum, desired))
}

// summarize counts, for the clusters of a placement, the children that have the template
// (in total as well), all existing children, and the clusters themselves.
func (d *delivery) summarize(i int, total *workv1alpha1.ManifestWorkReplicaSetSummary) (
	sum workv1alpha1.ManifestWorkReplicaSetSummary, existing, selected int,
) {
	for cluster, by := range d.claims {
		if by != i {
			continue
		}
		selected++
		c, ok := d.children[cluster]
		if !ok || c.Deleting {
			continue
		}
		existing++
		if !c.Current {
			continue
		}
		for _, s := range []*workv1alpha1.ManifestWorkReplicaSetSummary{&sum, total} {
			s.Total++
			s.Applied += boolean(c.is(workv1.ConditionApplied))
			s.Available += boolean(c.is(workv1.ConditionAvailable))
			s.Progressing += boolean(c.is(workv1.ConditionProgressing))
			s.Degraded += boolean(c.is(workv1.ConditionDegraded))
		}
	}
	return sum, existing, selected
}

func verified(desired int, missing, invalid, undecided []string) metav1.Condition {
	c := metav1.Condition{Type: workv1alpha1.ConditionPlacementVerified, Status: metav1.ConditionFalse}
	switch {
	case len(missing) > 0:
		c.Reason, c.Message = workv1alpha1.ReasonPlacementDecisionNotFound, "There is no placement "+strings.Join(missing, ", ")+
			" in this namespace; its works stay until it exists again, or is removed from spec.placementRefs"
	case len(invalid) > 0:
		c.Reason, c.Message = workv1alpha1.ReasonNotAsExpected, "Placement "+strings.Join(invalid, "; ")
	case len(undecided) > 0:
		c.Reason, c.Message = workv1alpha1.ReasonPlacementDecisionEmpty, "Placement "+strings.Join(undecided, ", ")+" has no PlacementDecision yet"
	case desired == 0:
		c.Reason, c.Message = workv1alpha1.ReasonPlacementDecisionEmpty, "The placements select no cluster"
	default:
		c.Status, c.Reason = metav1.ConditionTrue, workv1alpha1.ReasonAsExpected
		c.Message = fmt.Sprintf("The placements select %d clusters", desired)
	}
	return c
}

func rolledOut(d *delivery, done, desired int, incomplete bool) metav1.Condition {
	c := metav1.Condition{Type: workv1alpha1.ConditionPlacementRolledOut, Status: metav1.ConditionFalse, Reason: workv1alpha1.ReasonProgressing}
	waiting, late := 0, 0
	breach := false
	for _, p := range d.plans {
		waiting, late, breach = waiting+len(p.Waiting), late+len(p.TimedOut), breach || p.Breach
	}
	c.Message = workv1alpha1.MessageRolledOut(done, desired) + workv1alpha1.MessageTurns(waiting, late)
	switch {
	case breach:
		c.Message += stopped
	case done == desired && !incomplete:
		c.Status, c.Reason = metav1.ConditionTrue, workv1alpha1.ReasonComplete
	}
	return c
}

func applied(sum workv1alpha1.ManifestWorkReplicaSetSummary, desired int) metav1.Condition {
	c := metav1.Condition{
		Type: workv1alpha1.ConditionManifestworkApplied, Status: metav1.ConditionFalse, Reason: workv1alpha1.ReasonNotAsExpected,
		Message: fmt.Sprintf(
			"Of %d ManifestWorks %d are applied, %d available, %d progressing, %d degraded",
			sum.Total, sum.Applied, sum.Available, sum.Progressing, sum.Degraded,
		),
	}
	switch {
	case sum.Total == 0 && desired == 0:
		c.Reason, c.Message = workv1alpha1.ReasonPlacementDecisionEmpty, "No cluster is selected"
	case sum.Total == 0:
	case sum.Available == sum.Total && sum.Progressing == 0 && sum.Degraded == 0:
		c.Status, c.Reason = metav1.ConditionTrue, workv1alpha1.ReasonAsExpected
	case sum.Progressing > 0 && sum.Degraded == 0:
		c.Reason = workv1alpha1.ReasonProcessing
	}
	return c
}

// setCondition sets a condition for the current generation; a new one alone justifies a
// write, since readers wait for it.
func setCondition(set *workv1alpha1.ManifestWorkReplicaSet, now time.Time, c metav1.Condition) {
	c.ObservedGeneration = set.Generation
	reconcile.SetCondition(&set.Status.Conditions, c, now)
}
