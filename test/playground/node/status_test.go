// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	later = began.Add(time.Minute)
)

func waiting(reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}
}

func running(ready bool) corev1.ContainerStatus {
	return corev1.ContainerStatus{Ready: ready, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

func over(code int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}
}

func crashed() corev1.ContainerStatus {
	c := waiting("CrashLoopBackOff")
	c.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1}
	return c
}

func conditionsOf(status corev1.PodStatus) map[corev1.PodConditionType]string {
	out := map[corev1.PodConditionType]string{}
	for _, c := range status.Conditions {
		out[c.Type] = string(c.Status)
		if c.Reason != "" {
			out[c.Type] += " " + c.Reason
		}
	}
	return out
}

func TestPodStatusTellsWhatTheContainersDo(t *testing.T) {
	type statuses = []corev1.ContainerStatus
	for name, tc := range map[string]struct {
		facts       facts
		phase       corev1.PodPhase
		initialized string
		ready       string
	}{
		"nothing has started": {
			facts{main: statuses{waiting("ContainerCreating")}},
			"Pending",
			"True",
			"False ContainersNotReady",
		},
		"it cannot run here": {
			facts{main: statuses{waiting("ImageNotRunnable")}, reason: "ImageNotRunnable"},
			"Pending",
			"False ContainersNotInitialized",
			"False ContainersNotReady",
		},
		"one of two has started": {
			facts{main: statuses{running(true), waiting("x")}},
			"Pending",
			"True",
			"False ContainersNotReady",
		},
		"all run and one is ready": {
			facts{main: statuses{running(true), running(false)}},
			"Running",
			"True",
			"False ContainersNotReady",
		},
		"all are ready":             {facts{main: statuses{running(true), running(true)}}, "Running", "True", "True"},
		"one waits for its restart": {facts{main: statuses{crashed()}}, "Running", "True", "False ContainersNotReady"},
		"all ended well": {
			facts{main: statuses{over(0), over(0)}, final: true},
			"Succeeded",
			"True",
			"False PodCompleted",
		},
		"one ended badly": {
			facts{main: statuses{over(0), over(2)}, final: true},
			"Failed",
			"True",
			"False PodFailed",
		},
		"one ended, another runs": {
			facts{main: statuses{over(2), running(true)}},
			"Running",
			"True",
			"False ContainersNotReady",
		},
		"preparation runs": {
			facts{init: statuses{running(false)}, main: statuses{waiting("x")}},
			"Pending",
			"False ContainersNotInitialized",
			"False ContainersNotReady",
		},
		"preparation is over": {facts{init: statuses{over(0)}, main: statuses{running(true)}}, "Running", "True", "True"},
		"preparation failed for good": {
			facts{init: statuses{over(1)}, main: statuses{waiting("x")}, policy: corev1.RestartPolicyNever},
			"Failed",
			"False ContainersNotInitialized",
			"False PodFailed",
		},
		"preparation is tried again": {
			facts{init: statuses{over(1)}, main: statuses{waiting("x")}},
			"Pending",
			"False ContainersNotInitialized",
			"False ContainersNotReady",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.facts.now, tc.facts.started, tc.facts.address, tc.facts.generation = later, began, "10.244.0.7", 3
			status := podStatus(tc.facts)
			require.Equal(t, tc.phase, status.Phase)
			require.Equal(t, map[corev1.PodConditionType]string{
				corev1.PodScheduled: "True", corev1.PodInitialized: tc.initialized, corev1.ContainersReady: tc.ready, corev1.PodReady: tc.ready,
			}, conditionsOf(status))
			require.Equal(t, "10.244.0.7", status.PodIP)
			require.Equal(t, nodeAddress, status.HostIP)
			require.Equal(t, began, status.StartTime.Time)
			require.Equal(t, int64(3), status.ObservedGeneration)
		})
	}
}

func TestAConditionKeepsItsTimeUntilItsStatusChanges(t *testing.T) {
	f := facts{main: []corev1.ContainerStatus{running(false)}, now: began, started: began}
	f.old.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
	first := podStatus(f)
	f.old, f.now = first, later
	require.Equal(t, first, podStatus(f), "the same facts give the same status")

	f.main = []corev1.ContainerStatus{running(true)}
	second := podStatus(f)
	times := map[corev1.PodConditionType]time.Time{}
	for _, c := range second.Conditions {
		times[c.Type] = c.LastTransitionTime.Time
	}
	require.Equal(t, later, times[corev1.PodReady])
	require.Equal(t, began, times[corev1.PodInitialized])
	require.Contains(t, times, corev1.DisruptionTarget, "conditions of others stay")
}

func TestConditionsOfThisNodeWinOverAStaleCache(t *testing.T) {
	cached := []corev1.PodCondition{{
		Type:   corev1.PodReady,
		Status: corev1.ConditionFalse,
	}, {
		Type: corev1.DisruptionTarget,
	}}
	written := []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: "Gone"}}
	require.Equal(t, []corev1.PodCondition{{
		Type:   corev1.PodReady,
		Status: corev1.ConditionTrue,
	}, {
		Type: corev1.DisruptionTarget,
	}}, newer(cached, written))
}

func TestBackoffDoublesUpToItsBound(t *testing.T) {
	for ends, want := range map[int]time.Duration{1: 0, 2: time.Second, 3: 2 * time.Second, 6: 16 * time.Second, 7: 30 * time.Second, 1000: 30 * time.Second} {
		require.Equal(t, want, backoff(ends), "after %d ends", ends)
	}
}

func TestWhichContainersAreStartedAgain(t *testing.T) {
	ended := func(code int32) *corev1.ContainerStateTerminated {
		return &corev1.ContainerStateTerminated{ExitCode: code}
	}
	for name, tc := range map[string]struct {
		last   *corev1.ContainerStateTerminated
		policy corev1.RestartPolicy
		want   bool
	}{
		"never started":      {nil, corev1.RestartPolicyNever, true},
		"well, never":        {ended(0), corev1.RestartPolicyNever, false},
		"badly, never":       {ended(1), corev1.RestartPolicyNever, false},
		"well, on failure":   {ended(0), corev1.RestartPolicyOnFailure, false},
		"badly, on failure":  {ended(1), corev1.RestartPolicyOnFailure, true},
		"well, always":       {ended(0), corev1.RestartPolicyAlways, true},
		"preparation, well":  {ended(0), initPolicy(corev1.RestartPolicyAlways), false},
		"preparation, badly": {ended(1), initPolicy(corev1.RestartPolicyAlways), true},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, (&container{last: tc.last}).needsStart(tc.policy))
		})
	}
}

func TestGraceIsTheDeletionsOverThePods(t *testing.T) {
	seconds := func(n int64) *int64 { return &n }
	require.Equal(t, 30*time.Second, grace(&corev1.Pod{}))
	require.Equal(t, 5*time.Second, grace(&corev1.Pod{Spec: corev1.PodSpec{TerminationGracePeriodSeconds: seconds(5)}}))
	require.Equal(t, time.Second, grace(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{DeletionGracePeriodSeconds: seconds(1)},
		Spec:       corev1.PodSpec{TerminationGracePeriodSeconds: seconds(5)},
	}))
}
