// SPDX-License-Identifier: Apache-2.0

package request

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// Answered reports whether a request has been approved or denied.
func Answered(u *unstructured.Unstructured) bool { return StateOf(u) != StatePending }

// Approval is the condition that approves a request.
func Approval(now time.Time) map[string]any {
	return answerCondition("Approved", "ApprovedByKubectlOCM", "accepted by a person", now)
}

// Denial is the condition that denies a request.
func Denial(reason, message string, now time.Time) map[string]any {
	return answerCondition("Denied", reason, message, now)
}

func answerCondition(kind, reason, message string, now time.Time) map[string]any {
	at := now.UTC().Format(time.RFC3339)
	return map[string]any{"type": kind, "status": "True", "reason": reason, "message": message, "lastUpdateTime": at, "lastTransitionTime": at}
}

// Answer approves or denies a request. Its resource version is sent along, so that the answer
// is for the object that was checked.
func Answer(ctx context.Context, hub *fleet.Cluster, csr *unstructured.Unstructured, condition map[string]any) error {
	out := csr.DeepCopy()
	conditions, _, _ := unstructured.NestedSlice(out.Object, "status", "conditions")
	if err := unstructured.SetNestedSlice(out.Object, append(conditions, condition), "status", "conditions"); err != nil {
		return err
	}
	_, err := hub.Client.Resource(fleet.SigningRequests).Update(ctx, out, metav1.UpdateOptions{FieldManager: fleet.FieldManager}, "approval")
	return err
}
