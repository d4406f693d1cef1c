// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

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
	newest := newestPod(ctx, c, namespace, name)
	if newest == nil {
		return nil
	}
	if cause := hopelessCause(newest, r.Now()); cause != "" {
		return &fleet.Error{
			Message: fmt.Sprintf("deployment/%s cannot start, however long the wait", name),
			Cause:   fmt.Sprintf("pod %s/%s: %s", namespace, newest.Name, cause), Fix: DescribePod.On(c, "namespace", namespace, "name", newest.Name),
		}
	}
	return nil
}

// newestPod returns the newest pod of a Deployment that has not rolled out; nil when none can
// be read.
func newestPod(ctx context.Context, c *fleet.Cluster, namespace, name string) *corev1.Pod {
	var newest *corev1.Pod
	d, err := typed.Get[appsv1.Deployment](ctx, c.Client, fleet.Deployments, namespace, name)
	if err == nil && d.Spec.Selector != nil {
		if ok, _ := RolledOut(d); ok {
			return nil
		}
		// An error of the list counts as an empty list.
		list, _ := typed.List[corev1.Pod](ctx, c.Client, fleet.Pods, namespace, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(d.Spec.Selector)})
		for i := range list {
			if newest == nil || newest.CreationTimestamp.Before(&list[i].CreationTimestamp) {
				newest = &list[i]
			}
		}
	}
	return newest
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
