// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
)

// The states of a tunnel, as the hub sees it.
const (
	// Connected: the hub holds the tunnel of the agent.
	Connected = "connected"
	// Lost: it held one.
	Lost = "lost"
	// Never: the agent has opened none. It may be older, or its feature gate off.
	Never = "never"
)

// TunnelOf returns the state of a tunnel from the conditions of its ManagedCluster; "" if the hub has not looked.
func TunnelOf(conditions []metav1.Condition) string {
	c := apimeta.FindStatusCondition(conditions, connectv1alpha1.ConditionTunnelConnected)
	switch {
	case c == nil:
		return ""
	case c.Status == metav1.ConditionTrue:
		return Connected
	case c.Reason == connectv1alpha1.ReasonTunnelNeverConnected:
		return Never
	}
	return Lost
}
