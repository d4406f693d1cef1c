// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
)

func TestWhatIsSaidOfATunnel(t *testing.T) {
	now := time.Unix(1e9, 0)
	lost := Presence{Since: now.Add(-time.Minute), Why: errors.New("cut")}
	condition := func(status metav1.ConditionStatus, reason string) *metav1.Condition {
		return &metav1.Condition{Type: connectv1alpha1.ConditionTunnelConnected, Status: status, Reason: reason, Message: "before"}
	}
	for name, tc := range map[string]struct {
		have     *metav1.Condition
		presence Presence
		started  time.Duration
		denied   bool
		reason   string
		kept     bool
		again    time.Duration
	}{
		"it is there":          {presence: Presence{Connected: true, Since: now}, reason: "TunnelConnected"},
		"it was just lost":     {presence: Presence{Since: now.Add(-time.Second), Why: lost.Why}, again: 4 * time.Second},
		"it is lost":           {presence: lost, reason: "TunnelDisconnected"},
		"the hub just started": {started: 10 * time.Second, again: 50 * time.Second},
		"there never was one":  {started: time.Hour, reason: "TunnelNeverConnected"},
		"not since the start": {
			have: condition(metav1.ConditionTrue, "TunnelConnected"), started: time.Hour, reason: "TunnelDisconnected",
		},
		"an earlier process knows more": {
			have: condition(metav1.ConditionFalse, "TunnelDisconnected"), started: time.Hour, reason: "TunnelDisconnected", kept: true,
		},
		"the cluster is denied": {have: condition(metav1.ConditionTrue, "TunnelConnected"), presence: lost, denied: true},
	} {
		t.Run(name, func(t *testing.T) {
			mc := &clusterv1.ManagedCluster{}
			if tc.have != nil {
				mc.Status.Conditions = []metav1.Condition{*tc.have}
			}
			s := State{Cluster: mc, Accepted: !tc.denied, Presence: tc.presence, Started: now.Add(-tc.started), Now: now}
			plan := Decide(s)
			require.Equal(t, tc.again, plan.RequeueAfter)
			after := plan.Object.(*clusterv1.ManagedCluster)
			c := apimeta.FindStatusCondition(after.Status.Conditions, connectv1alpha1.ConditionTunnelConnected)
			if tc.reason == "" {
				require.Nil(t, c)
				return
			}
			require.Equal(t, tc.reason, c.Reason)
			require.Equal(t, tc.reason == "TunnelConnected", c.Status == metav1.ConditionTrue)
			require.Equal(t, tc.kept, c.Message == "before")
			s.Cluster = after
			require.Equal(t, after.Status, Decide(s).Object.(*clusterv1.ManagedCluster).Status, "nothing is written twice")
		})
	}
}
