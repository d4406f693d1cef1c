// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

func TestWhetherAClusterNeedsACertificate(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	noted := func(life time.Duration) *clusterv1.ManagedCluster {
		mc := &clusterv1.ManagedCluster{}
		mc.Annotations = map[string]string{
			clusterv1.AnnotationAgentName: "a1", clusterv1.AnnotationCertificateExpires: now.Add(life).Format(time.RFC3339)}
		return mc
	}
	joined := &clusterv1.ManagedCluster{Status: clusterv1.ManagedClusterStatus{Conditions: []metav1.Condition{
		{Type: clusterv1.ConditionJoined, Status: metav1.ConditionTrue}}}}
	for name, tc := range map[string]struct {
		mc              *clusterv1.ManagedCluster
		joined, enabled bool
	}{
		"it never had one": {&clusterv1.ManagedCluster{}, false, false},
		"it has one, though it is denied and no longer joined": {noted(time.Hour), true, true},
		"it had one, which expired":                            {noted(-time.Hour), true, false},
		"it joined a hub that noted nothing":                   {joined, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.joined, everJoined(tc.mc))
			require.Equal(t, tc.enabled, certified(tc.mc, now))
		})
	}
}

// Whoever holds a join token can ask for the name of a cluster that is only
// away; letting in all that wait must not hand it over.
func TestAllPendingDoesNotHandOverAClusterThatHasJoined(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	joined := func(life time.Duration) *clusterv1.ManagedCluster {
		mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "prod1"}}
		mc.Annotations = map[string]string{
			clusterv1.AnnotationAgentName: "a1", clusterv1.AnnotationCertificateExpires: now.Add(life).Format(time.RFC3339)}
		return mc
	}
	unnoted := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "prod1"}}
	unnoted.Status.Conditions = []metav1.Condition{{Type: clusterv1.ConditionJoined, Status: metav1.ConditionTrue}}
	same, other := clusterv1.UserPrefix+"prod1:a1", clusterv1.UserPrefix+"prod1:a2"
	for name, tc := range map[string]struct {
		mc        *clusterv1.ManagedCluster
		requester string
		identity  string
		options   AcceptOptions
		refused   bool
	}{
		"a cluster that is new":               {&clusterv1.ManagedCluster{}, same, "bootstrap SA", AcceptOptions{AllPending: true}, false},
		"another agent":                       {joined(time.Hour), other, "bootstrap SA", AcceptOptions{AllPending: true}, true},
		"another agent by a token":            {joined(time.Hour), other, "bootstrap token", AcceptOptions{AllPending: true}, true},
		"another agent after the certificate": {joined(-time.Hour), other, "bootstrap SA", AcceptOptions{AllPending: true}, true},
		"the same agent too early":            {joined(time.Hour), same, "bootstrap SA", AcceptOptions{AllPending: true}, true},
		"the same agent after its end":        {joined(-time.Hour), same, "bootstrap SA", AcceptOptions{AllPending: true}, false},
		"the agent itself":                    {joined(time.Hour), same, "renewal", AcceptOptions{AllPending: true}, false},
		"a hub that noted nothing":            {unnoted, same, "bootstrap SA", AcceptOptions{AllPending: true}, true},
		"named by a person":                   {joined(time.Hour), other, "bootstrap SA", AcceptOptions{Clusters: []string{"prod1"}}, false},
		"named beside all others":             {joined(time.Hour), other, "bootstrap SA", AcceptOptions{AllPending: true, Clusters: []string{"prod1"}}, false},
		"vouched for":                         {joined(time.Hour), other, "bootstrap SA", AcceptOptions{AllPending: true, Requesters: []string{other}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			tc.options.Hub = &Cluster{Context: "hub"}
			q := Request{Cluster: "prod1", State: StatePending, Requester: tc.requester, Identity: tc.identity}
			chosen, err := tc.options.choose("prod1", tc.mc, []Request{q}, now)
			if tc.refused {
				require.ErrorContains(t, err, "has joined before")
				require.Empty(t, chosen)
				return
			}
			require.NoError(t, err)
			require.Len(t, chosen, 1)
		})
	}
}
