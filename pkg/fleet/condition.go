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

// conditionsOf reads status.conditions. Kinds of Kubernetes that keep fewer
// fields (Deployments, definitions) can be read too.
func conditionsOf(u *unstructured.Unstructured) []metav1.Condition {
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

func conditionTrue(u *unstructured.Unstructured, kind string) bool {
	return apimeta.IsStatusConditionTrue(conditionsOf(u), kind)
}

// blocker is what a wait hangs on, as far as it can be told.
type blocker struct {
	// cause is one line.
	cause string
	// since is when it began; zero when unknown.
	since time.Time
	// fix is a command that helps.
	fix string
}

// blockedBy describes a condition as the cause of a time-out.
func blockedBy(c *metav1.Condition, fix string) *blocker {
	return &blocker{cause: fmt.Sprintf("%s=%s (%s): %s", c.Type, c.Status, c.Reason, oneLine(c.Message)), since: c.LastTransitionTime.Time, fix: fix}
}

// diagnosisTimeout bounds the reads that look for the cause of a time-out.
const diagnosisTimeout = 8 * time.Second

// timedOut turns the end of a wait for subject into the error that a person
// reads. find looks for the cause, with a deadline of its own.
func (r *run) timedOut(ctx context.Context, err error, subject string, find func(context.Context) *blocker) error {
	var expired *await.Expired
	if !errors.As(err, &expired) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), diagnosisTimeout)
	defer cancel()
	b := find(ctx)
	if b == nil {
		b = &blocker{cause: "nothing was reported"}
	}
	if expired.Err != nil && b.cause == "nothing was reported" {
		b.cause = oneLine(expired.Err.Error())
	}
	e := r.expired(err, subject, b.cause, b.fix)
	var out *Error
	if errors.As(e, &out) && !b.since.IsZero() {
		out.Since = r.common.Clock.Since(b.since)
	}
	return e
}

// expired turns the end of a wait into an Error of kind Timeout; other errors
// are returned as they are.
func (r *run) expired(err error, subject, cause, fix string) error {
	var expired *await.Expired
	if !errors.As(err, &expired) {
		return err
	}
	e := &Error{Kind: Timeout, Message: fmt.Sprintf("timed out after %s waiting for %s", r.common.Timeout, subject), Cause: cause, Fix: fix, Err: err}
	if e.Fix == "" {
		e.Fix = "run the same command again; it continues where it stopped"
	}
	if !expired.LastEvent.IsZero() {
		e.LastEvent = r.common.Clock.Since(expired.LastEvent)
		e.Since = r.common.Clock.Since(r.start)
	}
	return e
}
