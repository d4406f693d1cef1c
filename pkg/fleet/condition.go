// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
)

// ConditionsOf reads status.conditions. It also reads Kubernetes kinds whose conditions have
// fewer fields (Deployments, CustomResourceDefinitions).
func ConditionsOf(u *unstructured.Unstructured) []metav1.Condition {
	items, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	var out []metav1.Condition
	for _, item := range items {
		m, ok := item.(map[string]any)
		if !ok {
			continue
		}
		var c metav1.Condition
		if runtime.DefaultUnstructuredConverter.FromUnstructured(m, &c) == nil {
			out = append(out, c)
		}
	}
	return out
}

// ConditionTrue reports whether a condition is present and True.
func ConditionTrue(u *unstructured.Unstructured, kind string) bool {
	return apimeta.IsStatusConditionTrue(ConditionsOf(u), kind)
}

// Blocker is what holds up a wait, as far as it is known.
type Blocker struct {
	// Cause is one line.
	Cause string
	// Since is when it began; zero when unknown.
	Since time.Time
	// Fix is what helps; nil when unknown.
	Fix Fix
}

// BlockedBy describes a condition as the cause of a time-out.
func BlockedBy(c *metav1.Condition, fix Fix) *Blocker {
	return &Blocker{Cause: fmt.Sprintf("%s=%s (%s): %s", c.Type, c.Status, c.Reason, OneLine(c.Message)), Since: c.LastTransitionTime.Time, Fix: fix}
}

// DiagnosisTimeout bounds the reads that look for the cause of a time-out.
const DiagnosisTimeout = 8 * time.Second

// TimedOut turns the end of a wait for subject into an error for the user. find looks for the
// cause, with a deadline of its own.
func (r *Run) TimedOut(ctx context.Context, err error, subject string, find func(context.Context) *Blocker) error {
	var expired *await.Expired
	if !errors.As(err, &expired) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), DiagnosisTimeout)
	defer cancel()
	var b *Blocker
	if find != nil {
		b = find(ctx)
	}
	if b == nil {
		b = &Blocker{Cause: "nothing was reported"}
	}
	if expired.Err != nil && b.Cause == "nothing was reported" {
		b.Cause = OneLine(expired.Err.Error())
	}
	e := r.Expired(err, subject, b.Cause, b.Fix)
	var out *Error
	if errors.As(e, &out) && !b.Since.IsZero() {
		out.Since = r.Given.Clock.Since(b.Since)
	}
	return e
}

// Expired turns the end of a wait into an Error of kind Timeout; other errors are returned
// unchanged.
func (r *Run) Expired(err error, subject, cause string, fix Fix) error {
	var expired *await.Expired
	if !errors.As(err, &expired) {
		return err
	}
	e := &Error{Kind: Timeout, Message: fmt.Sprintf("timed out after %s waiting for %s", r.Given.Timeout, subject), Cause: cause, Fix: fix, Err: err}
	if e.Fix == nil {
		e.Fix = Advice("run the same command again; it continues where it stopped")
	}
	if !expired.LastEvent.IsZero() {
		e.LastEvent = r.Given.Clock.Since(expired.LastEvent)
		e.Since = r.Given.Clock.Since(r.Start)
	}
	return e
}
