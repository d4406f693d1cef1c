// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// announce sends an Event when the work fails or recovers. A work that is applied at the
// first try gets none.
func (p *pass) announce(ctx context.Context, before workv1.ManifestWorkStatus) {
	p.announceLeftover(ctx, before)
	p.announceHeld(ctx, before)
	for _, why := range p.plan.Inhabited {
		p.warn(ctx, workv1.ReasonNamespaceKept, "Prune", why)
	}
	was := apimeta.IsStatusConditionFalse(before.Conditions, workv1.ConditionApplied)
	failed := apimeta.IsStatusConditionFalse(p.work.Status.Conditions, workv1.ConditionApplied)
	switch {
	case failed && !was:
		p.warn(ctx, workv1.ReasonAppliedManifestWorkFailed, "Apply", firstFailure(p.work.Status))
	case was && !failed:
		p.c.Event(ctx, p.work, reconcile.Event{
			Type: "Normal", Reason: workv1.ReasonAppliedManifestWorkComplete, Action: "Apply", Message: workv1.MessageWorkApplied,
		})
	}
}

func (p *pass) warn(ctx context.Context, reason, action, message string) {
	p.c.Event(ctx, p.work, reconcile.Event{Type: "Warning", Reason: reason, Action: action, Message: message})
}

// firstFailure names the first manifest that failed, and why.
func firstFailure(s workv1.ManifestWorkStatus) string {
	for _, m := range s.ResourceStatus.Manifests {
		c := apimeta.FindStatusCondition(m.Conditions, workv1.ConditionApplied)
		if c != nil && c.Status == metav1.ConditionFalse {
			return fmt.Sprintf("%s %s/%s (manifest %d): %s", m.ResourceMeta.Kind, m.ResourceMeta.Namespace, m.ResourceMeta.Name, m.ResourceMeta.Ordinal, c.Message)
		}
	}
	if c := apimeta.FindStatusCondition(s.Conditions, workv1.ConditionApplied); c != nil {
		return c.Message
	}
	return workv1.MessageWorkFailed
}
