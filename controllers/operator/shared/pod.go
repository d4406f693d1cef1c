// SPDX-License-Identifier: Apache-2.0

package shared

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// Pod is what the Deployment of a process says of its pods that a spec may ask for, too.
type Pod struct {
	NodeSelector      map[string]string   `json:"nodeSelector"`
	Tolerations       []corev1.Toleration `json:"tolerations"`
	PriorityClassName string              `json:"priorityClassName"`
	Containers        []Container         `json:"containers"`
}

// Container is a container of a Pod.
type Container struct {
	Resources corev1.ResourceRequirements `json:"resources"`
}

// ReadPod reads the pods of a Deployment; nil when they cannot be read.
func ReadPod(deployment *unstructured.Unstructured) *Pod {
	spec, _, _ := unstructured.NestedMap(deployment.Object, "spec", "template", "spec")
	p := &Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, p); err != nil {
		return nil
	}
	return p
}

// Lacks returns the fields with which a spec asks for other pods than these. A process that has one
// Deployment for all its parts does not change it: that belongs to whoever installs it, and a pod
// that no node takes could not take the change back. What a spec leaves out is not asked for.
func (p *Pod) Lacks(placement operatorv1.NodePlacement, priorityClass string, resources *operatorv1.ResourceRequirement) []string {
	if p == nil {
		p = &Pod{}
	}
	var out []string
	if (len(placement.NodeSelector) > 0 && !equality.Semantic.DeepEqual(placement.NodeSelector, p.NodeSelector)) ||
		(len(placement.Tolerations) > 0 && !equality.Semantic.DeepEqual(placement.Tolerations, p.Tolerations)) {
		out = append(out, "nodePlacement")
	}
	if priorityClass != "" && priorityClass != p.PriorityClassName {
		out = append(out, "priorityClassName")
	}
	if given, asked := resources.Given(); asked && !p.requests(given) {
		out = append(out, "resourceRequirement")
	}
	return out
}

// requests reports whether every container requests just that.
func (p *Pod) requests(given corev1.ResourceRequirements) bool {
	for _, c := range p.Containers {
		if !equality.Semantic.DeepEqual(c.Resources, given) {
			return false
		}
	}
	return len(p.Containers) > 0
}
