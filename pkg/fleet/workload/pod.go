// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
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
	selector := metav1.FormatLabelSelector(d.Spec.Selector)
	list, err := typed.List[corev1.Pod](ctx, c.Client, fleet.Pods, namespace, metav1.ListOptions{LabelSelector: selector})
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
	if message == "" {
		return reason
	}
	return reason + ": " + fleet.OneLine(message)
}
