// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// Ruled reports whether condition rules made a condition at that generation.
func Ruled(c metav1.Condition, generation int64) bool {
	return strings.HasPrefix(c.Reason, workv1.ReasonPrefixConditionRule) && c.ObservedGeneration == generation
}

// setAggregated sets the work's conditions from those that rules made for its manifests,
// and removes those that no manifest has any more.
func setAggregated(s *workv1.ManifestWorkStatus, generation int64, now time.Time) {
	var kinds []string
	found := map[string][]metav1.Condition{}
	for _, m := range s.ResourceStatus.Manifests {
		for _, c := range m.Conditions {
			if !Ruled(c, generation) {
				continue
			}
			if found[c.Type] == nil {
				kinds = append(kinds, c.Type)
			}
			found[c.Type] = append(found[c.Type], c)
		}
	}
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c metav1.Condition) bool {
		return c.Reason == workv1.ReasonConditionRulesAggregated && found[c.Type] == nil
	})
	for _, kind := range kinds {
		setCondition(&s.Conditions, kind, aggregate(kind, found[kind]), generation, now)
	}
}

// aggregate combines conditions of one type: the result is the status that comes first in
// the precedence of the type and that one of them has.
func aggregate(kind string, conditions []metav1.Condition) Verdict {
	v := Verdict{Reason: workv1.ReasonConditionRulesAggregated, Message: conditions[0].Message}
	if len(conditions) > 1 {
		v.Message = fmt.Sprintf("Aggregated from %d manifest conditions", len(conditions))
	}
	for _, v.Status = range precedence(kind) {
		if slices.ContainsFunc(conditions, func(c metav1.Condition) bool { return c.Status == v.Status }) {
			break
		}
	}
	return v
}

// precedence orders statuses: one manifest that is progressing makes the work
// progressing; for every other condition, one that is False makes the work False.
func precedence(kind string) []metav1.ConditionStatus {
	if kind == workv1.ConditionProgressing {
		return []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionUnknown, metav1.ConditionFalse}
	}
	return []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionUnknown, metav1.ConditionTrue}
}
