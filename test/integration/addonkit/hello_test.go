// SPDX-License-Identifier: Apache-2.0

package addonkit_test

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/registration"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// hello is a complete add-on: a ConfigMap on each cluster, a Job before it is deleted,
// and an agent that may read ConfigMaps of its cluster on the hub.
type hello struct{ registration.KubeClient }

func (hello) Options() addonkit.Options { return addonkit.Options{Name: "hello"} }

func (hello) Manifests(_ context.Context, i addonkit.Instance) ([]runtime.Object, error) {
	namespace := registration.InstallNamespace(i.AddOn, "")
	return []runtime.Object{
		&corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hello"},
			Data:       map[string]string{"cluster": i.Cluster.Name},
		},
		&batchv1.Job{
			TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: "goodbye", Annotations: map[string]string{addonv1alpha1.AnnotationPreDelete: ""},
			},
		},
	}, nil
}

func (hello) Permissions(context.Context, addonkit.Instance) ([]addonkit.Permission, error) {
	return []addonkit.Permission{
		{Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""},
			Resources: []string{"configmaps"},
			Verbs:     []string{"get", "list", "watch"},
		}}},
	}, nil
}

func (hello) Health() addonkit.Health { return addonkit.Health{Mode: addonkit.HealthWork} }
