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

// State is everything that a decision needs.
type State struct {
	// Cluster is the ManagedCluster.
	Cluster *clusterv1.ManagedCluster
	// Beat is what is known of its lease; nil when there is none.
	Beat *Beat
	// Told is when the hub said last that the cluster is away; zero: not since
	// this process started.
	Told time.Time
	// Missed is when the hub first missed the lease of a cluster that is not
	// Unknown; zero: it does not.
	Missed time.Time
	// Now is the time of the decision.
	Now time.Time
}

// maxGrace bounds the grace time: five times the longest duration that the API
// takes is more than a time.Duration holds, and less than nothing would be left.
const maxGrace = 10 * 365 * 24 * time.Hour

// Grace is how long a cluster may go without renewing its lease, at most ten
// years.
func Grace(mc *clusterv1.ManagedCluster) time.Duration {
	seconds := mc.Spec.LeaseDurationSeconds
	if seconds <= 0 {
		seconds = clusterv1.DefaultLeaseDurationSeconds
	}
	duration := time.Duration(seconds) * time.Second
	return min(duration, maxGrace/clusterv1.LeaseGraceFactor) * clusterv1.LeaseGraceFactor
}

// reporter of the Events, by the name that the contract gives.
const reporter = "registration-controller"

// repeat is the least time between two times that a cluster is said to be away.
// An agent that reports but does not renew contradicts at once, and without a
// pause the two would write as fast as they can.
const repeat = 10 * time.Second

// Expiry is when the cluster becomes Unknown if it does not renew.
func (s State) Expiry() time.Time {
	grace := Grace(s.Cluster)
	return s.Beat.Last(grace).Add(grace)
}

// Decide is pure: it judges one cluster.
func Decide(s State) reconcile.Plan {
	mc := s.Cluster.DeepCopy()
	plan := reconcile.Plan{Object: mc}
	switch {
	case s.Beat == nil && mc.DeletionTimestamp != nil:
		away(s, mc, &plan, "The lease of the cluster is gone")
		return plan
	case s.Beat == nil:
		// The lease is about to be made, unless something keeps it from that.
		if s.Missed.IsZero() || s.Now.Before(s.Missed.Add(Grace(mc))) {
			return reconcile.Plan{}
		}
		away(s, mc, &plan, fmt.Sprintf("The cluster has had no lease for %s", Grace(mc)))
		expire(s, mc)
		return plan
	}
	judgeClock(s, mc)
	if s.Now.Before(s.Expiry()) {
		return plan
	}
	away(s, mc, &plan, fmt.Sprintf("The cluster has not renewed its lease for %s", Grace(mc)))
	expire(s, mc)
	return plan
}

// away sets Available to Unknown; an Event tells of the change.
func away(s State, mc *clusterv1.ManagedCluster, plan *reconcile.Plan, message string) {
	c := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionAvailable)
	if c != nil && c.Status == metav1.ConditionUnknown && c.Reason == clusterv1.ReasonManagedClusterLeaseUpdateStopped {
		return
	}
	if rest := s.Told.Add(repeat).Sub(s.Now); !s.Told.IsZero() && rest > 0 {
		plan.RequeueAfter = rest
		return
	}
	set(mc, s.Now, metav1.Condition{
		Type: clusterv1.ConditionAvailable, Status: metav1.ConditionUnknown,
		Reason: clusterv1.ReasonManagedClusterLeaseUpdateStopped, Message: message,
	})
	plan.Events = append(plan.Events, reconcile.Event{
		Type: corev1.EventTypeWarning, Reason: "AvailableUnknown", Namespace: mc.Name, Reporter: reporter,
		Message: fmt.Sprintf("Cluster %s cannot be reached: %s", mc.Name, message),
	})
}

// expire takes Joined back when the agent cannot come back by itself.
func expire(s State, mc *clusterv1.ManagedCluster) {
	end, err := time.Parse(time.RFC3339, mc.Annotations[clusterv1.AnnotationCertificateExpires])
	if err != nil || s.Now.Before(end) || !apimeta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ConditionJoined) {
		return
	}
	set(mc, s.Now, metav1.Condition{
		Type: clusterv1.ConditionJoined, Status: metav1.ConditionFalse, Reason: clusterv1.ReasonCertificateExpired,
		Message: fmt.Sprintf("The agent has been away for longer than its certificate lived, which ended at %s", end.UTC().Format(time.RFC3339)),
	})
}

// judgeClock compares the last renewal with the hub's clock at its arrival. The
// sight of an old renewal after a start of the hub says nothing of the clock,
// nor does a lease that was never renewed.
func judgeClock(s State, mc *clusterv1.ManagedCluster) {
	b := s.Beat
	if mc.Annotations[clusterv1.AnnotationSkipClockSyncCheck] == "true" {
		set(mc, s.Now, clockSynced())
		return
	}
	skew := b.Arrived.Sub(b.Renewed)
	if b.Renewed.IsZero() || (b.First && skew > 0) {
		return
	}
	if skew.Abs() < Grace(mc) {
		set(mc, s.Now, clockSynced())
		return
	}
	set(mc, s.Now, metav1.Condition{
		Type: clusterv1.ConditionClockSynced, Status: metav1.ConditionFalse, Reason: clusterv1.ReasonManagedClusterClockOutOfSync,
		Message: fmt.Sprintf("The clock of the cluster is more than %s away from the hub's", Grace(mc)),
	})
}

func clockSynced() metav1.Condition {
	return metav1.Condition{
		Type: clusterv1.ConditionClockSynced, Status: metav1.ConditionTrue, Reason: clusterv1.ReasonManagedClusterClockSynced,
		Message: "The clocks of hub and cluster agree",
	}
}

// set changes a condition that does not say so already.
func set(mc *clusterv1.ManagedCluster, now time.Time, c metav1.Condition) {
	have := apimeta.FindStatusCondition(mc.Status.Conditions, c.Type)
	if have != nil && have.Status == c.Status && have.Reason == c.Reason {
		return
	}
	c.ObservedGeneration = mc.Generation
	reconcile.SetCondition(&mc.Status.Conditions, c, now)
}
