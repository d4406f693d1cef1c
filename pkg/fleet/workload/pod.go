// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Blocker looks for what holds up the pods of a Deployment; nil when they all run.
func Blocker(ctx context.Context, c *fleet.Cluster, namespace, name string) *fleet.Blocker {
	d, err := typed.Get[appsv1.Deployment](ctx, c.Client, fleet.Deployments, namespace, name)
	if apierrors.IsNotFound(err) && name == operatorv1.DefaultClusterManagerName {
		return &fleet.Blocker{Cause: fmt.Sprintf("there is no deployment %s/%s", namespace, name), Fix: Repair(c, false)}
	}
	if err != nil {
		return &fleet.Blocker{Cause: fleet.OneLine(err.Error())}
	}
	if ok, _ := RolledOut(d); ok {
		return nil
	}
	if ScaledDown(d) {
		return &fleet.Blocker{Cause: fmt.Sprintf("deployment %s/%s is scaled to 0", namespace, name),
			Fix: ScaleUp.On(c, "namespace", d.Namespace, "name", d.Name)}
	}
	list, err := podsOf(ctx, c, d)
	if err != nil {
		return &fleet.Blocker{Cause: fleet.OneLine(err.Error())}
	}
	logs := fleet.ShowLogs.On(c, "namespace", namespace, "name", name)
	for i := range list {
		if cause := Cause(&list[i]); cause != "" {
			return &fleet.Blocker{Cause: fmt.Sprintf("pod %s/%s: %s", namespace, list[i].Name, cause), Since: list[i].CreationTimestamp.Time, Fix: logs}
		}
	}
	for _, condition := range d.Status.Conditions {
		if condition.Status != corev1.ConditionTrue || condition.Type == appsv1.DeploymentReplicaFailure {
			return &fleet.Blocker{Cause: fmt.Sprintf("%s=%s (%s): %s", condition.Type, condition.Status, condition.Reason, fleet.OneLine(condition.Message)),
				Since: condition.LastTransitionTime.Time, Fix: DescribeDeployment.On(c, "namespace", namespace, "name", name)}
		}
	}
	if len(list) == 0 {
		return &fleet.Blocker{Cause: fmt.Sprintf("deployment/%s has no pods: does a controller manager run on this cluster?", name)}
	}
	return nil
}

func podsOf(ctx context.Context, c *fleet.Cluster, d *appsv1.Deployment) ([]corev1.Pod, error) {
	selector := metav1.FormatLabelSelector(d.Spec.Selector)
	return typed.List[corev1.Pod](ctx, c.Client, fleet.Pods, d.Namespace, metav1.ListOptions{LabelSelector: selector})
}

// Stopped returns why no pod of a Deployment runs and none will without intervention; nil when
// one runs.
func Stopped(ctx context.Context, c *fleet.Cluster, namespace, name string) *fleet.Blocker {
	d, err := typed.Get[appsv1.Deployment](ctx, c.Client, fleet.Deployments, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return &fleet.Blocker{Cause: fmt.Sprintf("there is no deployment %s/%s", namespace, name)}
	case err != nil:
		return &fleet.Blocker{Cause: fleet.OneLine(err.Error())}
	case ScaledDown(d):
		return &fleet.Blocker{Cause: fmt.Sprintf("deployment %s/%s is scaled to 0", namespace, name)}
	case d.Status.ReadyReplicas > 0:
		return nil
	}
	if b := Blocker(ctx, c, namespace, name); b != nil {
		return b
	}
	return &fleet.Blocker{Cause: fmt.Sprintf("no pod of deployment %s/%s is ready", namespace, name)}
}

// Cause returns why a pod is not ready; "" when it is.
func Cause(p *corev1.Pod) string {
	for _, s := range p.Status.ContainerStatuses {
		switch {
		case s.State.Waiting != nil && s.State.Waiting.Reason != "ContainerCreating":
			return withText(s.State.Waiting.Reason, s.State.Waiting.Message)
		case s.State.Terminated != nil:
			return withText("the process ended, "+s.State.Terminated.Reason, s.State.Terminated.Message)
		case !s.Ready && s.RestartCount > 0:
			return fmt.Sprintf("not ready, restarted %d times", s.RestartCount)
		}
	}
	for _, condition := range p.Status.Conditions {
		if condition.Status == corev1.ConditionFalse && condition.Reason != "ContainersNotReady" {
			return withText(condition.Reason, condition.Message)
		}
	}
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status != corev1.ConditionTrue {
			return withText("not ready", condition.Message)
		}
	}
	if p.Spec.NodeName == "" {
		return withText("pending, not scheduled to a node", p.Status.Message)
	}
	if p.Status.Phase == corev1.PodPending {
		return withText("pending", p.Status.Message)
	}
	return ""
}

func withText(reason, message string) string {
	return strings.TrimSuffix(reason+": "+fleet.OneLine(message), ": ")
}

const (
	// hopelessAfter is how long a pod may be held up by something that is unlikely to resolve
	// itself: a registry or a scheduler may answer late.
	hopelessAfter = 30 * time.Second
	// hopelessPause is how often the pods are checked.
	hopelessPause = 2 * time.Second
)

// Reasons of a waiting container that stay until a user changes something.
var hopelessReasons = []string{"CreateContainerConfigError", "CreateContainerError", "ErrImageNeverPull", "ImagePullBackOff", "ImageInspectError",
	"InvalidImageName"}

// hopelessCause returns what holds up a pod that waiting does not resolve; "" for nothing.
func hopelessCause(p *corev1.Pod, now time.Time) string {
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && condition.Reason == corev1.PodReasonUnschedulable &&
			now.Sub(condition.LastTransitionTime.Time) >= hopelessAfter {
			return withText("no node can run it", condition.Message)
		}
	}
	if now.Sub(p.CreationTimestamp.Time) < hopelessAfter {
		return ""
	}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if s.State.Waiting != nil && slices.Contains(hopelessReasons, s.State.Waiting.Reason) {
			return withText(s.State.Waiting.Reason, s.State.Waiting.Message)
		}
	}
	return ""
}

// hopelessPod looks for a pod of a Deployment's newest revision that cannot start. What cannot
// be read is ignored.
func hopelessPod(ctx context.Context, r *fleet.Run, c *fleet.Cluster, namespace, name string) *fleet.Error {
	d, _ := typed.Get[appsv1.Deployment](ctx, c.Client, fleet.Deployments, namespace, name)
	if d == nil || d.Spec.Selector == nil {
		return nil
	}
	if ok, _ := RolledOut(d); ok {
		return nil
	}
	list, _ := podsOf(ctx, c, d)
	if len(list) == 0 {
		return nil
	}
	newest := slices.MaxFunc(list, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	if cause := hopelessCause(&newest, r.Now()); cause != "" {
		return &fleet.Error{
			Message: fmt.Sprintf("deployment/%s cannot start, however long the wait", name),
			Cause:   fmt.Sprintf("pod %s/%s: %s", namespace, newest.Name, cause), Fix: DescribePod.On(c, "namespace", namespace, "name", newest.Name),
		}
	}
	return nil
}

// UnlessHopeless waits for something that the pods of a Deployment do, and ends early when
// they cannot start.
func UnlessHopeless(ctx context.Context, r *fleet.Run, c *fleet.Cluster, of types.NamespacedName, wait func(context.Context) error) error {
	var found *fleet.Error
	waiting, stop := context.WithCancel(ctx)
	var looks sync.WaitGroup
	looks.Go(func() {
		_ = await.True(waiting, r.Given.Clock, hopelessPause, func(ctx context.Context) (bool, error) {
			if found = hopelessPod(ctx, r, c, of.Namespace, of.Name); found != nil {
				stop()
			}
			return found != nil, nil
		})
	})
	err := wait(waiting)
	stop()
	looks.Wait()
	if err != nil && found != nil && ctx.Err() == nil {
		return found
	}
	return err
}
