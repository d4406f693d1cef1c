// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// contests reports whether an agent requests a name held by another agent whose lease is
// fresh. An agent never contests itself.
func contests(s State, mc *clusterv1.ManagedCluster, r Request) bool {
	holder := mc.Annotations[clusterv1.AnnotationAgentName]
	return s.Alive && holder != "" && holder != r.Agent.Name
}

// evaluateName maintains the condition DuplicateClusterName, which is true while such a request
// waits. It returns the Event for its start, and when to check again whether the holder is
// still there: a fresh lease may belong to an agent that is gone.
func evaluateName(s State, mc *clusterv1.ManagedCluster) ([]reconcile.Event, time.Duration) {
	have := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionDuplicateClusterName)
	var rival *Request
	for i := range s.Requests {
		r := &s.Requests[i]
		if r.Fault == nil && r.Refusal.Reason == "" && !isAnswered(r.CSR) && r.CSR.DeletionTimestamp == nil && contests(s, mc, *r) {
			rival = r
			break // the one waiting longest, so that a flood changes nothing
		}
	}
	c := metav1.Condition{Type: clusterv1.ConditionDuplicateClusterName, ObservedGeneration: mc.Generation}
	if rival == nil {
		if have != nil {
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, clusterv1.ReasonNoDuplicate, "One agent holds the name"
			setCondition(mc, c, s.Now)
		}
		return nil, 0
	}
	c.Status, c.Reason = metav1.ConditionTrue, clusterv1.ReasonDuplicateClusterName
	seen := s.Heard.After(rival.CSR.CreationTimestamp.Time)
	c.Message = duplicateMessage(*rival, mc.Annotations[clusterv1.AnnotationAgentName], seen)
	var events []reconcile.Event
	if have == nil || have.Status != metav1.ConditionTrue {
		events = append(events, reconcile.Event{Type: corev1.EventTypeWarning, Reason: c.Reason, Namespace: mc.Name, Message: c.Message, WithStatus: true})
	}
	setCondition(mc, c, s.Now)
	if seen {
		return events, 0
	}
	return events, s.Period
}

// duplicateMessage names both agents. seen is true when the holder has renewed the lease
// since the other agent asked.
func duplicateMessage(r Request, holder string, seen bool) string {
	state := "which has not renewed its lease since then and may be gone"
	if seen {
		state = "which has renewed its lease since then: both are running"
	}
	cluster := r.Agent.Cluster
	return fmt.Sprintf("Agent %s asks for the name of cluster %s by certificate request %s; it is held by agent %s, %s. "+
		"If it is the same cluster, let the new agent take over: kubectl ocm accept %s --replace; if not, join it under another name",
		r.Agent.Name, cluster, r.CSR.Name, holder, state, cluster)
}
