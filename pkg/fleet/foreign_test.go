// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhatOthersPutIntoTheHubsDeploymentIsTold(t *testing.T) {
	own := corev1.Container{Name: "cluster-manager", Image: "ocm-hub"}
	wrote := func(manager, subresource, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}}
	}
	for name, tc := range map[string]struct {
		pod    corev1.PodSpec
		fields []metav1.ManagedFieldsEntry
		want   string
	}{
		"as it was made": {
			corev1.PodSpec{Containers: []corev1.Container{own}},
			[]metav1.ManagedFieldsEntry{wrote(FieldManager, "", `{"f:spec":{"f:replicas":{},"f:image":{}}}`), wrote("kube-controller-manager", "status", `{"f:status":{"f:replicas":{}}}`)}, "",
		},
		"a container more": {
			corev1.PodSpec{Containers: []corev1.Container{own, {Name: "miner", Image: "m:1"}}, InitContainers: []corev1.Container{{Name: "first", Image: "f:1"}}},
			nil, "container first (f:1), container miner (m:1)",
		},
		"another image": {
			corev1.PodSpec{Containers: []corev1.Container{own}}, []metav1.ManagedFieldsEntry{wrote("kubectl-set", "", `{"f:image":{}}`)}, "image set by kubectl-set",
		},
		"another number of replicas": {
			corev1.PodSpec{Containers: []corev1.Container{own}}, []metav1.ManagedFieldsEntry{wrote("kubectl", "scale", `{"f:spec":{"f:replicas":{}}}`)}, "replicas set by kubectl",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{ManagedFields: tc.fields}}
			d.Spec.Template.Spec = tc.pod
			require.Equal(t, tc.want, strays(d))
		})
	}
}
