// SPDX-License-Identifier: Apache-2.0

package shared

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// TestADeploymentHasWhatASpecAsksOfItsPods, or the fields that it lacks are named.
func TestADeploymentHasWhatASpecAsksOfItsPods(t *testing.T) {
	pods := func(spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": spec}}}}
	}
	placed := pods(map[string]any{
		"nodeSelector": map[string]any{"a": "b"}, "tolerations": []any{map[string]any{"key": "k", "operator": "Exists"}}, "priorityClassName": "high",
		"containers": []any{map[string]any{"name": "c", "resources": map[string]any{"requests": map[string]any{"cpu": "1000m"}}}},
	})
	plain := pods(map[string]any{"containers": []any{map[string]any{"name": "c", "resources": map[string]any{}}}})
	all := []string{"nodePlacement", "priorityClassName", "resourceRequirement"}
	for name, tc := range map[string]struct {
		deployment *unstructured.Unstructured
		placement  operatorv1.NodePlacement
		priority   string
		resources  *operatorv1.ResourceRequirement
		want       []string
	}{
		"what the spec leaves out is the installer's": {
			deployment: placed,
			resources:  &operatorv1.ResourceRequirement{Type: operatorv1.ResourceQosClassDefault},
		},
		"all as asked, whatever the unit": {
			deployment: placed,
			placement: operatorv1.NodePlacement{
				NodeSelector: map[string]string{"a": "b"}, Tolerations: []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}},
			},
			priority:  "high",
			resources: requirement("1"),
		},
		"nothing as asked": {
			deployment: plain,
			placement:  operatorv1.NodePlacement{NodeSelector: map[string]string{"a": "b"}},
			priority:   "high",
			resources:  requirement("1"),
			want:       all,
		},
		"other tolerations and other resources": {
			deployment: placed,
			placement:  operatorv1.NodePlacement{Tolerations: []corev1.Toleration{{Key: "other"}}},
			priority:   "low",
			resources:  requirement("2"),
			want:       all,
		},
		"no requests": {
			deployment: plain,
			resources:  &operatorv1.ResourceRequirement{Type: operatorv1.ResourceQosClassBestEffort},
		},
		"no Deployment": {
			placement: operatorv1.NodePlacement{NodeSelector: map[string]string{"a": "b"}},
			resources: &operatorv1.ResourceRequirement{Type: operatorv1.ResourceQosClassBestEffort},
			want:      []string{"nodePlacement", "resourceRequirement"},
		},
		"a Deployment that cannot be read": {
			deployment: pods(map[string]any{"tolerations": "all"}),
			priority:   "high",
			want:       []string{"priorityClassName"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var p *Pod
			if tc.deployment != nil {
				p = ReadPod(tc.deployment)
			}
			require.Equal(t, tc.want, p.Lacks(tc.placement, tc.priority, tc.resources))
		})
	}
}

func requirement(cpu string) *operatorv1.ResourceRequirement {
	return &operatorv1.ResourceRequirement{
		Type:                 operatorv1.ResourceQosClassResourceRequirement,
		ResourceRequirements: &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
	}
}
