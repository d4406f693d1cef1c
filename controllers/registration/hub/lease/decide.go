// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// State holds everything a decision needs.
type State struct {
	// Cluster is the ManagedCluster.
	Cluster *clusterv1.ManagedCluster
	// Beat is what is known of its lease; nil when it has none.
	Beat *Beat
	// Told is when the hub last set the cluster Unknown; zero if not since this process
	// started.
	Told time.Time
	// Missed is when the hub first missed the lease of a cluster that is not Unknown; zero if
	// it is not missed.
	Missed time.Time
	// Now is the time of the decision.
	Now time.Time
}

// maxGrace bounds the grace period: five times the longest duration the API accepts overflows
// time.Duration, which would leave a negative grace period.
const maxGrace = 10 * 365 * 24 * time.Hour

// Grace is how long a cluster may go without renewing its lease, at most ten years.
func Grace(mc *clusterv1.ManagedCluster) time.Duration {
	seconds := mc.Spec.LeaseDurationSeconds
	if seconds <= 0 {
		seconds = clusterv1.DefaultLeaseDurationSeconds
	}
	duration := time.Duration(seconds) * time.Second
	return min(duration, maxGrace/clusterv1.LeaseGraceFactor) * clusterv1.LeaseGraceFactor
}

// reporter is the reporting controller of the Events; the name is fixed by the API contract.
const reporter = "registration-controller"

// repeat is the minimum time between two writes that set a cluster Unknown. An agent that
// reports but does not renew sets it back at once, and without a pause the two would write as
// fast as they can.
const repeat = 10 * time.Second

// Expiry is when the cluster becomes Unknown unless it renews.
func (s State) Expiry() time.Time {
	grace := Grace(s.Cluster)
	return s.Beat.Last(grace).Add(grace)
}

// Decide is pure: it evaluates one cluster.
func Decide(s State) reconcile.Plan {
	mc, grace := s.Cluster.DeepCopy(), Grace(s.Cluster)
	plan := reconcile.Plan{Object: mc}
	message := fmt.Sprintf("The cluster has not renewed its lease for %s", grace)
	switch {
	case s.Beat != nil:
		evaluateClock(s, mc)
		if s.Now.Before(s.Expiry()) {
			return plan
		}
	case mc.DeletionTimestamp != nil:
		setUnknown(s, mc, &plan, "The lease of the cluster is gone")
		return plan
	// The lease is about to be created, unless something prevents that.
	case s.Missed.IsZero() || s.Now.Before(s.Missed.Add(grace)):
		return reconcile.Plan{}
	default:
		message = fmt.Sprintf("The cluster has had no lease for %s", grace)
	}
	setUnknown(s, mc, &plan, message)
	expireJoined(s, mc)
	return plan
}

// setUnknown sets Available to Unknown, with an Event for the change.
func setUnknown(s State, mc *clusterv1.ManagedCluster, plan *reconcile.Plan, message string) {
	c := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionAvailable)
	if c != nil && c.Status == metav1.ConditionUnknown && c.Reason == clusterv1.ReasonManagedClusterLeaseUpdateStopped {
		return
	}
	if rest := s.Told.Add(repeat).Sub(s.Now); !s.Told.IsZero() && rest > 0 {
		plan.RequeueAfter = rest
		return
	}
	setCondition(mc, s.Now, metav1.Condition{
		Type: clusterv1.ConditionAvailable, Status: metav1.ConditionUnknown,
		Reason: clusterv1.ReasonManagedClusterLeaseUpdateStopped, Message: message,
	})
	plan.Events = append(plan.Events, reconcile.Event{
		Type: corev1.EventTypeWarning, Reason: "AvailableUnknown", Namespace: mc.Name, Reporter: reporter,
		Message: fmt.Sprintf("Cluster %s cannot be reached: %s", mc.Name, message),
	})
}

// expireJoined sets Joined to False when the agent cannot come back by itself.
func expireJoined(s State, mc *clusterv1.ManagedCluster) {
	end, err := time.Parse(time.RFC3339, mc.Annotations[clusterv1.AnnotationCertificateExpires])
	if err != nil || s.Now.Before(end) || !apimeta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ConditionJoined) {
		return
	}
	setCondition(mc, s.Now, metav1.Condition{
		Type: clusterv1.ConditionJoined, Status: metav1.ConditionFalse, Reason: clusterv1.ReasonCertificateExpired,
		Message: fmt.Sprintf("The agent has been away for longer than its certificate lived, which expired at %s", end.UTC().Format(time.RFC3339)),
	})
}

// evaluateClock compares the last renewal with the hub's clock at its arrival. An old renewal
// seen after a start of the hub says nothing about the clock, nor does a lease that was never
// renewed.
func evaluateClock(s State, mc *clusterv1.ManagedCluster) {
	c := metav1.Condition{
		Type: clusterv1.ConditionClockSynced, Status: metav1.ConditionTrue, Reason: clusterv1.ReasonManagedClusterClockSynced,
		Message: "The clocks of hub and cluster agree",
	}
	switch skew := s.Beat.Arrived.Sub(s.Beat.Renewed); {
	case mc.Annotations[clusterv1.AnnotationSkipClockSyncCheck] == "true":
	case s.Beat.Renewed.IsZero() || (s.Beat.First && skew > 0):
		return
	case skew.Abs() >= Grace(mc):
		c.Status, c.Reason = metav1.ConditionFalse, clusterv1.ReasonManagedClusterClockOutOfSync
		c.Message = fmt.Sprintf("The clock of the cluster differs from the hub's by more than %s", Grace(mc))
	}
	setCondition(mc, s.Now, c)
}

// setCondition sets a condition unless it already has that status and reason.
func setCondition(mc *clusterv1.ManagedCluster, now time.Time, c metav1.Condition) {
	have := apimeta.FindStatusCondition(mc.Status.Conditions, c.Type)
	if have != nil && have.Status == c.Status && have.Reason == c.Reason {
		return
	}
	c.ObservedGeneration = mc.Generation
	reconcile.SetCondition(&mc.Status.Conditions, c, now)
}
