// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

func TestDecide(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cluster := func(accepted metav1.ConditionStatus, seconds int32) *clusterv1.ManagedCluster {
		c := &clusterv1.ManagedCluster{Spec: clusterv1.ManagedClusterSpec{LeaseDurationSeconds: seconds}}
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1.ConditionHubAccepted, Status: accepted}}
		return c
	}
	for name, tc := range map[string]struct {
		state State
		want  Plan
	}{
		"no ManagedCluster: nothing is renewed": {State{}, Plan{}},
		"not yet accepted: nothing is renewed":  {State{Cluster: &clusterv1.ManagedCluster{}}, Plan{}},
		"accepted no more: the lease is left to age": {
			State{Cluster: cluster(metav1.ConditionFalse, 60), Renewed: now.Add(-time.Hour)},
			Plan{},
		},
		"just accepted: renewed at once": {
			State{Cluster: cluster(metav1.ConditionTrue, 60)},
			Plan{Renew: true, RequeueAfter: time.Minute},
		},
		"renewed just now: waits for the duration": {
			State{Cluster: cluster(metav1.ConditionTrue, 60), Renewed: now},
			Plan{RequeueAfter: time.Minute},
		},
		"jitter makes it wait up to a quarter more": {
			State{Cluster: cluster(metav1.ConditionTrue, 60), Renewed: now, Jitter: 1},
			Plan{RequeueAfter: 75 * time.Second},
		},
		"the time has come": {
			State{Cluster: cluster(metav1.ConditionTrue, 1), Renewed: now.Add(-time.Second)},
			Plan{Renew: true, RequeueAfter: time.Second},
		},
		"a duration of zero means a minute": {
			State{Cluster: cluster(metav1.ConditionTrue, 0), Renewed: now},
			Plan{RequeueAfter: time.Minute},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.state.Now = now
			require.Equal(t, tc.want, Decide(tc.state))
		})
	}
}

func TestFailedRenewalsAreRepeatedWithinSecondsAndNotInStep(t *testing.T) {
	for failures, want := range map[int]time.Duration{
		1:      time.Second,
		2:      2 * time.Second,
		4:      8 * time.Second,
		5:      16 * time.Second,
		100000: 16 * time.Second,
	} {
		require.Equal(t, want, retryDelay(failures, 0.5), failures)
		require.Equal(t, want*3/4, retryDelay(failures, 0), failures)
		require.Equal(t, want*5/4, retryDelay(failures, 1), failures)
	}
}
