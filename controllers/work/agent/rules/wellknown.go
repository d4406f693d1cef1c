// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// wellKnown returns the built-in rule for a condition and the kind of an object, nil if
// there is none.
func wellKnown(condition string, object *unstructured.Unstructured) func(*unstructured.Unstructured) (bool, string) {
	if condition != workv1.ConditionComplete {
		return nil
	}
	switch object.GetAPIVersion() + " " + object.GetKind() {
	case "batch/v1 Job":
		return jobComplete
	case "v1 Pod":
		return podComplete
	}
	return nil
}

// jobComplete reports whether a Job has finished, successfully or not.
func jobComplete(job *unstructured.Unstructured) (bool, string) {
	conditions, _, _ := unstructured.NestedFieldNoCopy(job.Object, "status", "conditions")
	list, _ := conditions.([]any)
	if slices.ContainsFunc(list, func(item any) bool {
		c, _ := item.(map[string]any)
		return (c["type"] == "Complete" || c["type"] == "Failed") && c["status"] == "True"
	}) {
		return true, "Job is finished"
	}
	return false, "Job is not finished"
}

// podComplete reports whether a Pod has finished, successfully or not.
func podComplete(pod *unstructured.Unstructured) (bool, string) {
	phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
	return phase == "Succeeded" || phase == "Failed", "Pod is in phase " + phase
}
