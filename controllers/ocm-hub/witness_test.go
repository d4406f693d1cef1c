// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func TestTheTimeWithoutALeaderIsKnown(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		renewed time.Time
		want    time.Duration
	}{
		"a leader that ended five minutes ago":     {now.Add(-5 * time.Minute), 5 * time.Minute},
		"a leader whose clock is ahead":            {now.Add(time.Minute), 0},
		"nobody ever led, and the lock is not yet": {time.Time{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			if !tc.renewed.IsZero() {
				holder, at := "another", metav1.NewMicroTime(tc.renewed)
				_, err := client.CoordinationV1().Leases("n").Create(t.Context(), &coordinationv1.Lease{
					ObjectMeta: metav1.ObjectMeta{Name: lockName}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &at},
				}, metav1.CreateOptions{})
				require.NoError(t, err)
			}
			w := &witness{Interface: &resourcelock.LeaseLock{
				LeaseMeta: metav1.ObjectMeta{Namespace: "n", Name: lockName}, Client: client.CoordinationV1(),
			}}
			_, _, _ = w.Get(t.Context())
			require.Equal(t, tc.want, w.gap(now))
		})
	}
}
