// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhatWaitingDoesNotMendIsKnown(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	waiting := func(reason string) corev1.PodStatus {
		return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason,
			Message: "m"}}}}}
	}
	unscheduled := func(since time.Duration) corev1.PodStatus {
		return corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes fit",
			LastTransitionTime: metav1.NewTime(now.Add(-since)),
		}}}
	}
	initial := waiting("ImagePullBackOff")
	initial.InitContainerStatuses, initial.ContainerStatuses = initial.ContainerStatuses, nil
	for name, tc := range map[string]struct {
		age    time.Duration
		status corev1.PodStatus
		want   string
	}{
		"a configuration that is not there": {
			time.Minute,
			waiting("CreateContainerConfigError"),
			"CreateContainerConfigError: m",
		},
		"an image that does not exist":          {time.Minute, waiting("ImagePullBackOff"), "ImagePullBackOff: m"},
		"that of a container that comes before": {time.Minute, initial, "ImagePullBackOff: m"},
		"an image that is no name":              {time.Minute, waiting("InvalidImageName"), "InvalidImageName: m"},
		"no node that fits":                     {time.Minute, unscheduled(time.Minute), "no node can run it: 0/3 nodes fit"},
		"a scheduler that has just looked":      {time.Hour, unscheduled(5 * time.Second), ""},
		"a registry that is late":               {5 * time.Second, waiting("ImagePullBackOff"), ""},
		"a pod that starts":                     {time.Minute, waiting("ContainerCreating"), ""},
		"a process that ends":                   {time.Minute, waiting("CrashLoopBackOff"), ""},
		"one that runs":                         {time.Hour, corev1.PodStatus{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-tc.age))},
				Status: tc.status}
			require.Equal(t, tc.want, hopelessCause(p, now))
		})
	}
}
