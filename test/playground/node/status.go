// SPDX-License-Identifier: Apache-2.0

package node

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// facts is what a pod's status is computed from.
type facts struct {
	// old is the current status, and generation the pod's.
	old        corev1.PodStatus
	generation int64
	policy     corev1.RestartPolicy
	address    string
	started    time.Time
	now        time.Time
	init, main []corev1.ContainerStatus
	// final is true when no container that has ended will start again.
	final bool
	// problem, if any, is why nothing runs.
	reason, message string
}

// podStatus computes a pod's status.
func podStatus(f facts) corev1.PodStatus {
	status := *f.old.DeepCopy()
	status.ObservedGeneration = f.generation
	status.Phase = phase(f)
	status.HostIP = nodeAddress
	status.HostIPs = []corev1.HostIP{{IP: nodeAddress}}
	if f.address != "" {
		status.PodIP = f.address
		status.PodIPs = []corev1.PodIP{{IP: f.address}}
	}
	if status.StartTime == nil {
		status.StartTime = ptr.To(metav1.NewTime(f.started))
	}
	status.InitContainerStatuses, status.ContainerStatuses = f.init, f.main
	initialized := true
	for _, c := range f.init {
		initialized = initialized && c.State.Terminated != nil && c.State.Terminated.ExitCode == 0
	}
	ready := status.Phase == corev1.PodRunning
	for _, c := range f.main {
		ready = ready && c.Ready
	}
	cause := notReady(status.Phase)
	f.condition(&status, corev1.PodScheduled, true, "", "")
	f.condition(&status, corev1.PodInitialized, initialized && f.reason == "", "ContainersNotInitialized", f.message)
	f.condition(&status, corev1.ContainersReady, ready, cause, f.message)
	f.condition(&status, corev1.PodReady, ready, cause, f.message)
	return status
}

func notReady(p corev1.PodPhase) string {
	switch p {
	case corev1.PodSucceeded:
		return "PodCompleted"
	case corev1.PodFailed:
		return "PodFailed"
	default:
		return "ContainersNotReady"
	}
}

// phase returns the phase of a pod by its containers, as kubelet computes it.
func phase(f facts) corev1.PodPhase {
	failed, begun := false, true
	for _, c := range f.init {
		if c.State.Terminated != nil && c.State.Terminated.ExitCode != 0 && f.policy == corev1.RestartPolicyNever {
			return corev1.PodFailed
		}
	}
	for _, c := range f.main {
		begun = begun && (c.State.Waiting == nil || c.LastTerminationState.Terminated != nil)
		failed = failed || c.State.Terminated != nil && c.State.Terminated.ExitCode != 0
	}
	switch {
	case !begun:
		return corev1.PodPending
	case f.final && failed:
		return corev1.PodFailed
	case f.final:
		return corev1.PodSucceeded
	default:
		return corev1.PodRunning
	}
}

// condition sets one condition; reason and message are for False only. Conditions of
// other controllers stay.
func (f facts) condition(status *corev1.PodStatus, kind corev1.PodConditionType, holds bool, reason, message string) {
	want := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, ObservedGeneration: f.generation, LastTransitionTime: metav1.NewTime(f.now)}
	if !holds {
		want.Status, want.Reason, want.Message = corev1.ConditionFalse, reason, message
	}
	for i, c := range status.Conditions {
		if c.Type == kind {
			if c.Status == want.Status {
				want.LastTransitionTime = c.LastTransitionTime
			}
			status.Conditions[i] = want
			return
		}
	}
	status.Conditions = append(status.Conditions, want)
}

// status returns the current status of one container. later is true when a container that
// has ended will be started again.
func (c *container) status(later bool) corev1.ContainerStatus {
	known := c.known()
	out := corev1.ContainerStatus{
		Name: c.spec.Name, Image: c.spec.Image, ImageID: c.spec.Image, RestartCount: c.restarts,
		Started: ptr.To(c.running != nil && known.started),
	}
	switch {
	case c.running != nil:
		out.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.started)}
		out.LastTerminationState.Terminated = c.last
		out.Ready, out.ContainerID = known.ready, c.id()
	case c.last != nil && !later:
		out.State.Terminated, out.ContainerID = c.last, c.last.ContainerID
	default:
		out.State.Waiting = c.waiting.DeepCopy()
		out.LastTerminationState.Terminated = c.last
		if c.last != nil {
			out.ContainerID = c.last.ContainerID
		}
	}
	return out
}
