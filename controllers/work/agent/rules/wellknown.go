// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// wellKnown evaluates the built-in rule for a condition and the kind of an object; known is
// false if there is none. A Job or a Pod is complete when it has finished, successfully or
// not.
func wellKnown(condition string, object *unstructured.Unstructured) (result bool, message string, known bool) {
	if condition != workv1.ConditionComplete {
		return false, "", false
	}
	switch object.GetAPIVersion() + " " + object.GetKind() {
	case "batch/v1 Job":
		conditions, _, _ := unstructured.NestedFieldNoCopy(object.Object, "status", "conditions")
		list, _ := conditions.([]any)
		if slices.ContainsFunc(list, func(item any) bool {
			c, _ := item.(map[string]any)
			return (c["type"] == "Complete" || c["type"] == "Failed") && c["status"] == "True"
		}) {
			return true, "Job is finished", true
		}
		return false, "Job is not finished", true
	case "v1 Pod":
		phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
		return phase == "Succeeded" || phase == "Failed", "Pod is in phase " + phase, true
	}
	return false, "", false
}
