// SPDX-License-Identifier: Apache-2.0

package addoncredential

import (
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// quiet is how long a wait is not reported: most are over by then, and each report costs a
// write on the hub.
const quiet = 5 * time.Second

// report is the state of one registration.
type report struct {
	token   bool
	phase   Phase
	message string
	// fresh is true when the wait is too short to be reported.
	fresh bool
}

// setConditions sets the conditions of an add-on from its registrations.
func setConditions(a *addonv1alpha1.ManagedClusterAddOn, reports []report, now time.Time) {
	setConditionOf(a, reports, now, metav1.Condition{
		Type: addonv1alpha1.ConditionClusterCertificateRotated, Reason: addonv1alpha1.ReasonClientCertificateUpdated,
	}, addonv1alpha1.ReasonClientCertificateUpdateFailed)
	setConditionOf(a, reports, now, metav1.Condition{
		Type: addonv1alpha1.ConditionTokenRefreshed, Reason: addonv1alpha1.ReasonTokenRefreshed,
	}, addonv1alpha1.ReasonTokenCreationFailed)
}

// setConditionOf sets the condition of tokens or of certificates: False if a registration failed,
// Unknown while one waits without a credential, True when all have theirs. Without a
// registration of that kind the condition is removed.
func setConditionOf(a *addonv1alpha1.ManagedClusterAddOn, reports []report, now time.Time, c metav1.Condition, failed string) {
	messages := map[Phase][]string{}
	fresh := false
	for _, r := range reports {
		if r.token == (c.Type == addonv1alpha1.ConditionTokenRefreshed) {
			fresh = fresh || r.fresh
			messages[r.phase] = append(messages[r.phase], r.message)
		}
	}
	phase := PhaseServing
	c.Status = metav1.ConditionTrue
	switch {
	case len(messages) == 0:
		apimeta.RemoveStatusCondition(&a.Status.Conditions, c.Type)
		return
	case len(messages[PhaseFailed]) > 0:
		phase, c.Status, c.Reason = PhaseFailed, metav1.ConditionFalse, failed
	case len(messages[PhaseIdle]) > 0, fresh:
		return
	case len(messages[PhaseWaiting]) > 0:
		phase, c.Status, c.Reason = PhaseWaiting, metav1.ConditionUnknown, addonv1alpha1.ReasonCredentialPending
	}
	c.Message = strings.Join(messages[phase], "; ")
	reconcile.SetCondition(&a.Status.Conditions, c, now)
}
