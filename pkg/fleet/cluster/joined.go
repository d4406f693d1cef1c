// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// EverJoined reports whether an agent of the cluster has ever had a certificate. The condition
// is reset when the acceptance is withdrawn; the hub's record stays.
func EverJoined(mc *clusterv1.ManagedCluster) bool {
	return mc.Annotations[clusterv1.AnnotationAgentName] != "" || apimeta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ConditionJoined)
}

// Certified reports whether the agent's certificate is valid as far as the hub knows: then
// acceptance is all that the cluster needs.
func Certified(mc *clusterv1.ManagedCluster, now time.Time) bool {
	if at, err := time.Parse(time.RFC3339, mc.Annotations[clusterv1.AnnotationCertificateExpires]); err == nil {
		return now.Before(at)
	}
	return mc.Spec.HubAcceptsClient || EverJoined(mc)
}

// Alive reports whether the agent of an accepted cluster reports.
func Alive(mc *clusterv1.ManagedCluster) bool {
	c := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionAvailable)
	return mc.Spec.HubAcceptsClient && c != nil && c.Status != metav1.ConditionUnknown && EverJoined(mc)
}
