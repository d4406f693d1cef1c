// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// wantedPods is how many pods a Deployment has to have to do its work. One that is
// scaled to 0 has all the pods that it asks for, and does nothing.
func wantedPods(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return max(1, *d.Spec.Replicas)
}

// scaledDown tells that a Deployment asks for no pod.
func scaledDown(d *appsv1.Deployment) bool { return d.Spec.Replicas != nil && *d.Spec.Replicas == 0 }

// scaledDownText says so.
const scaledDownText = "it is scaled to 0"

// scaleLine starts the pods of a Deployment again.
func scaleLine(c *Cluster, d *appsv1.Deployment) string {
	return fmt.Sprintf("kubectl scale -n %s deploy/%s --replicas=1%s", d.Namespace, d.Name, c.flag())
}

// rolledOut tells whether all pods of a Deployment are of its newest form and
// ready, and how many are.
func rolledOut(d *appsv1.Deployment) (bool, string) {
	want := wantedPods(d)
	s := d.Status
	ready := fmt.Sprintf("%d/%d ready", s.ReadyReplicas, want)
	return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == want && s.AvailableReplicas == want && s.Replicas == want, ready
}

// deployed waits until a Deployment has rolled out.
func (r *run) deployed(ctx context.Context, c *Cluster, namespace, name string) error {
	err := r.unlessHopeless(ctx, c, namespace, name, func(ctx context.Context) error {
		q := await.Query{Client: c.Client, Resource: deployments, Namespace: namespace, Name: name, Clock: r.common.Clock}
		return await.Objects(ctx, q, func(items []*unstructured.Unstructured) (bool, error) {
			if len(items) == 0 {
				return false, nil
			}
			d, err := typed.FromUnstructured[appsv1.Deployment](items[0])
			if err != nil {
				return false, err
			}
			ok, ready := rolledOut(d)
			r.detail(ready)
			return ok, nil
		})
	})
	return r.timedOut(ctx, err, "deployment/"+name, func(ctx context.Context) *blocker {
		return podBlocker(ctx, c, namespace, name)
	})
}

// podBlocker looks for what the pods of a Deployment hang on; nil when they all
// run.
func podBlocker(ctx context.Context, c *Cluster, namespace, name string) *blocker {
	d, err := typed.Get[appsv1.Deployment](ctx, c.Client, deployments, namespace, name)
	if apierrors.IsNotFound(err) && name == operatorv1.DefaultClusterManagerName {
		return &blocker{cause: fmt.Sprintf("there is no deployment %s/%s", namespace, name), fix: repair(c, false)}
	}
	if err != nil {
		return &blocker{cause: oneLine(err.Error())}
	}
	if ok, _ := rolledOut(d); ok {
		return nil
	}
	if scaledDown(d) {
		return &blocker{cause: fmt.Sprintf("deployment %s/%s is scaled to 0", namespace, name), fix: scaleLine(c, d)}
	}
	selector := metav1.FormatLabelSelector(d.Spec.Selector)
	list, err := typed.List[corev1.Pod](ctx, c.Client, pods, namespace, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return &blocker{cause: oneLine(err.Error())}
	}
	logs := fmt.Sprintf("kubectl logs -n %s deploy/%s%s", namespace, name, c.flag())
	for i := range list {
		if cause := podCause(&list[i]); cause != "" {
			return &blocker{cause: fmt.Sprintf("pod %s/%s: %s", namespace, list[i].Name, cause), since: list[i].CreationTimestamp.Time, fix: logs}
		}
	}
	for _, condition := range d.Status.Conditions {
		if condition.Status != corev1.ConditionTrue || condition.Type == appsv1.DeploymentReplicaFailure {
			return &blocker{cause: fmt.Sprintf("%s=%s (%s): %s", condition.Type, condition.Status, condition.Reason, oneLine(condition.Message)),
				since: condition.LastTransitionTime.Time, fix: fmt.Sprintf("kubectl describe -n %s deploy/%s%s", namespace, name, c.flag())}
		}
	}
	if len(list) == 0 {
		return &blocker{cause: fmt.Sprintf("deployment/%s has no pods: does a controller manager run on this cluster?", name)}
	}
	return nil
}

// stopped tells why no pod of a Deployment runs and none will by itself; nil
// when one runs.
func stopped(ctx context.Context, c *Cluster, namespace, name string) *blocker {
	d, err := typed.Get[appsv1.Deployment](ctx, c.Client, deployments, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return &blocker{cause: fmt.Sprintf("there is no deployment %s/%s", namespace, name)}
	case err != nil:
		return &blocker{cause: oneLine(err.Error())}
	case scaledDown(d):
		return &blocker{cause: fmt.Sprintf("deployment %s/%s is scaled to 0", namespace, name)}
	case d.Status.ReadyReplicas > 0:
		return nil
	}
	if b := podBlocker(ctx, c, namespace, name); b != nil {
		return b
	}
	return &blocker{cause: fmt.Sprintf("no pod of deployment %s/%s is ready", namespace, name)}
}

// podCause tells why a pod is not ready; "" when it is.
func podCause(p *corev1.Pod) string {
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
		return withText("pending, no node has taken it", p.Status.Message)
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
	return reason + ": " + oneLine(message)
}
