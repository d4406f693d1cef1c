// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// Bounds on the message of a condition.
const (
	maxMessage  = 2048
	maxProblems = 3
)

// conditions sets both conditions.
func (d *decider) conditions(r *Result) {
	status, reason, message := d.satisfied(r)
	// The contract's message comes first; sets that cannot be used are reported after it.
	message = strings.Join(append([]string{message}, d.setWarnings()...), "; ")
	r.Satisfied = condition(clusterv1beta1.ConditionSatisfied, status, reason, message, r.Generation)
	r.Misconfigured = condition(clusterv1beta1.ConditionMisconfigured, metav1.ConditionFalse,
		clusterv1beta1.ReasonSucceedconfigured, "Placement configurations check pass", r.Generation)
	if d.program.broken {
		r.Misconfigured = condition(clusterv1beta1.ConditionMisconfigured, metav1.ConditionTrue,
			clusterv1beta1.ReasonMisconfigured, misconfigured(r.Problems), r.Generation)
	}
}

func condition(kind string, status metav1.ConditionStatus, reason, message string, generation int64) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: excerpt.Within(message, maxMessage), ObservedGeneration: generation,
	}
}

// misconfigured returns the message for the first errors, with field and fix.
func misconfigured(problems []Problem) string {
	var out []string
	more := 0
	for _, p := range problems {
		switch {
		case p.Severity != SeverityError:
		case len(out) < maxProblems:
			out = append(out, p.Plugin+":"+p.Text())
		default:
			more++
		}
	}
	text := strings.Join(out, "; ")
	if more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// satisfied returns status, reason and message of PlacementSatisfied.
func (d *decider) satisfied(r *Result) (metav1.ConditionStatus, string, string) {
	no := metav1.ConditionFalse
	switch t := &d.stages; {
	case len(t.bound) == 0:
		return no, clusterv1beta1.ReasonNoManagedClusterSetBindings, "No valid ManagedClusterSetBindings found in placement namespace"
	case len(t.eligible) == 0:
		return no, clusterv1beta1.ReasonNoIntersection,
			fmt.Sprintf("None of ManagedClusterSets [%s] is bound to placement namespace", strings.Join(d.placement.object.Spec.ClusterSets, ","))
	case r.Candidates == 0:
		return no, clusterv1beta1.ReasonAllManagedClusterSetsEmpty,
			fmt.Sprintf("All ManagedClusterSets [%s] have no member ManagedCluster", strings.Join(t.eligible, ","))
	case r.Kept && r.Selected > 0:
		return no, clusterv1beta1.ReasonNotAllDecisionsScheduled,
			fmt.Sprintf("The placement is misconfigured: the last %d cluster decisions are kept", r.Selected)
	case r.Selected == 0:
		return no, clusterv1beta1.ReasonNoManagedClusterMatched, d.whyNone(r)
	case r.Unscheduled > 0:
		return no, clusterv1beta1.ReasonNotAllDecisionsScheduled, fmt.Sprintf("%d cluster decisions unscheduled", r.Unscheduled)
	default:
		return metav1.ConditionTrue, clusterv1beta1.ReasonAllDecisionsScheduled, "All cluster decisions scheduled"
	}
}

// whyNone returns why none of the candidates was selected.
func (d *decider) whyNone(r *Result) string {
	t := &d.stages
	switch {
	case d.program.broken:
		return "The placement is misconfigured, and nothing was selected before"
	case r.Matched == 0:
		return "No ManagedCluster matches any of the cluster predicate"
	case len(t.feasible) == 0:
		return fmt.Sprintf("Every matching ManagedCluster has a taint that is not tolerated: %d match the predicates, kept out by %s",
			r.Matched, taintCounts(t.refusedBy))
	case d.program.wanted == 0:
		return fmt.Sprintf("No ManagedCluster is wanted: spec.numberOfClusters is 0, and %d would fit", len(t.feasible))
	default:
		return "No ManagedCluster fits the spread constraints"
	}
}

// taintCounts names taints with the number of clusters that each keeps out, the most
// frequent first.
func taintCounts(by map[string]int) string {
	keys := slices.SortedFunc(maps.Keys(by), func(a, b string) int {
		return cmp.Or(by[b]-by[a], strings.Compare(a, b))
	})
	var out []string
	for _, key := range keys[:min(len(keys), maxNames)] {
		out = append(out, fmt.Sprintf("%.316s (%d)", key, by[key]))
	}
	if more := len(keys) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, ", ")
}
