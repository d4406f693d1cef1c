// SPDX-License-Identifier: Apache-2.0

package addonhealth

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// grace is how long an add-on may go without renewing its lease, whatever duration the lease
// specifies.
const grace = 300 * time.Second

// Beat is what is known of an add-on's lease.
type Beat struct {
	// Renewed is the renewTime in the lease; zero without one.
	Renewed time.Time
	// Arrived is when the agent first saw that renewTime.
	Arrived time.Time
	// First is true until a renewal has been seen since the watch started.
	First bool
}

// lastHeard is when the add-on counts as last heard from. The first sight counts as an arrival,
// unless the renewal it shows is older than the grace period.
func (b Beat) lastHeard() time.Time {
	if b.First && b.Arrived.Sub(b.Renewed) > grace {
		return b.Renewed
	}
	return b.Arrived
}

// State is the input of a decision.
type State struct {
	Now   time.Time
	AddOn *addonv1alpha1.ManagedClusterAddOn
	// Known is true once the cluster has answered whether there is a lease; Beat is nil when
	// there is none.
	Known bool
	Beat  *Beat
	// Lost is true when the hub considers the cluster lost.
	Lost bool
	// Hosted is true when the add-on runs on a hosting cluster.
	Hosted bool
}

// isIgnored reports whether the add-on's health is not the agent's to report.
func isIgnored(a *addonv1alpha1.ManagedClusterAddOn) bool {
	return a.Status.HealthCheck.Mode == addonv1alpha1.HealthCheckModeCustomized
}

// Decide is pure: it evaluates one add-on.
func Decide(s State) reconcile.Plan {
	if isIgnored(s.AddOn) || s.Lost || !s.Known {
		return reconcile.Plan{}
	}
	after := s.AddOn.DeepCopy()
	plan := reconcile.Plan{Object: after}
	name := after.Name
	c := metav1.Condition{Type: addonv1alpha1.ConditionAvailable}
	switch {
	case s.Beat == nil:
		c.Status, c.Reason = metav1.ConditionUnknown, addonv1alpha1.ReasonLeaseNotFound
		c.Message = fmt.Sprintf("The status of %s add-on is unknown.", name)
		if s.Hosted {
			c.Message += fmt.Sprintf(" It is hosted: its lease is expected on the agent's cluster, which must be %s.",
				after.Annotations[addonv1alpha1.AnnotationHostingClusterName])
		}
	case s.Now.Before(s.Beat.lastHeard().Add(grace)):
		c.Status, c.Reason = metav1.ConditionTrue, addonv1alpha1.ReasonLeaseUpdated
		c.Message = fmt.Sprintf("%s add-on is available.", name)
		plan.RequeueAfter = s.Beat.lastHeard().Add(grace).Sub(s.Now)
	default:
		c.Status, c.Reason = metav1.ConditionFalse, addonv1alpha1.ReasonLeaseUpdateStopped
		c.Message = fmt.Sprintf("%s add-on is not available.", name)
	}
	reconcile.SetCondition(&after.Status.Conditions, c, s.Now)
	return plan
}
