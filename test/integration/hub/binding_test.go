// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

func TestBindingASetNeedsTheRightInEveryVersion(t *testing.T) {
	s := sharedHub(t)
	_, err := s.kube.CoreV1().Namespaces().Create(context.Background(), namespace("binders"), metav1.CreateOptions{})
	require.NoError(t, err)
	edit := rbacv1.PolicyRule{APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclustersetbindings"}, Verbs: []string{"*"}}
	bind := rbacv1.PolicyRule{
		APIGroups:     []string{clusterv1.GroupName},
		Resources:     []string{"managedclustersets/bind"},
		ResourceNames: []string{"tools"},
		Verbs:         []string{"create"},
	}
	user := s.user(t, "binder", edit, bind)
	for _, version := range []string{"v1beta2", "v1beta1"} {
		resource := schema.GroupVersionResource{Group: clusterv1.GroupName, Version: version, Resource: "managedclustersetbindings"}
		try := func(name, set string) error {
			u := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": clusterv1.GroupName + "/" + version, "kind": "ManagedClusterSetBinding",
				"metadata": map[string]any{"namespace": "binders", "name": name}, "spec": map[string]any{"clusterSet": set},
			}}
			_, err := user.Resource(resource).Namespace("binders").Create(context.Background(), u, metav1.CreateOptions{})
			return err
		}
		settled(t, func() error { return try("tools", "tools") })
		err := try("default", "default")
		require.True(t, apierrors.IsForbidden(err), "%s: %v", version, err)
		require.ErrorContains(t, err, "bind", version)
		err = try("other", "tools")
		require.True(t, apierrors.IsBadRequest(err), "%s: %v", version, err)
		require.NoError(t, user.Resource(resource).Namespace("binders").Delete(context.Background(), "tools", metav1.DeleteOptions{}))
	}
}
