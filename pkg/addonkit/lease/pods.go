// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// podPage is how many pods are read at a time; an agent has few.
const podPage = 50

var (
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// Pods returns a Check that passes while a pod of the label selector is ready or has
// succeeded, for agents that report the health of other processes. The account needs
// permission to list pods in the namespace. A selector that is empty or invalid is an
// error. A running pod that is not ready does not count.
func Pods(client dynamic.Interface, namespace, selector string) (Check, error) {
	if parsed, err := labels.Parse(selector); err != nil {
		return nil, fmt.Errorf("label selector %q: %w", selector, err)
	} else if parsed.Empty() {
		return nil, fmt.Errorf("label selector of the pods in namespace %s: must be set; any other pod would count", namespace)
	}
	return func(ctx context.Context) error {
		bad := fmt.Errorf("there is no pod of %s in namespace %s", selector, namespace)
		o := metav1.ListOptions{LabelSelector: selector, Limit: podPage}
		for first := true; ; first = false {
			list, err := client.Resource(pods).Namespace(namespace).List(ctx, o)
			if err != nil {
				return fmt.Errorf("listing the pods of %s in namespace %s: %w", selector, namespace, err)
			}
			for i := range list.Items {
				problem := podProblem(&list.Items[i])
				if problem == "" {
					return nil
				}
				if first && i == 0 {
					bad = fmt.Errorf("no pod of %s in namespace %s is ready: %s %s", selector, namespace, list.Items[i].GetName(), problem)
				}
			}
			if o.Continue = list.GetContinue(); o.Continue == "" {
				return bad
			}
		}
	}, nil
}

// podProblem returns why a pod does not count, or "" if it does.
func podProblem(u *unstructured.Unstructured) string {
	phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
	if phase == string(corev1.PodSucceeded) ||
		phase == string(corev1.PodRunning) && u.GetDeletionTimestamp() == nil && isTrue(u, string(corev1.PodReady)) {
		return ""
	}
	for _, field := range []string{"initContainerStatuses", "containerStatuses"} {
		statuses, _, _ := unstructured.NestedSlice(u.Object, "status", field)
		for _, s := range statuses {
			container, _ := s.(map[string]any)
			if reason, _, _ := unstructured.NestedString(container, "state", "waiting", "reason"); reason != "" {
				name, _, _ := unstructured.NestedString(container, "name")
				return fmt.Sprintf("is %s, container %s waits: %s", phase, name, reason)
			}
		}
	}
	return "is " + phase
}

// isTrue reports whether a condition of an object is True.
func isTrue(u *unstructured.Unstructured, kind string) bool {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == kind {
			return c["status"] == string(metav1.ConditionTrue)
		}
	}
	return false
}

// Deployment returns a Check that passes while a Deployment has a ready replica or wants
// none, as the hub does for Deployments that it reads itself. The account needs permission
// to get the Deployment.
func Deployment(client dynamic.Interface, namespace, name string) Check {
	return func(ctx context.Context) error {
		u, err := client.Resource(deployments).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading Deployment %s/%s: %w", namespace, name, err)
		}
		want, found, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
		if !found {
			want = 1
		}
		ready, _, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas")
		if want > 0 && ready < 1 {
			return fmt.Errorf("Deployment %s/%s has no ready replica of %d", namespace, name, want)
		}
		return nil
	}
}
