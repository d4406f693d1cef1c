// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Both versions of the add-on kinds are read and written through the API server, which
// calls the hub's process at /convert.
func TestAddOnsAreServedInBothVersions(t *testing.T) {
	s := sharedHub(t)
	_, err := s.kube.CoreV1().Namespaces().Create(t.Context(), namespace("converted"), metav1.CreateOptions{})
	require.NoError(t, err)
	const group, installNamespace = "addon.open-cluster-management.io", "addon.open-cluster-management.io/v1alpha1-install-namespace"
	in := func(version, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
	}
	object := func(version, kind string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": group + "/" + version, "kind": kind, "metadata": map[string]any{"name": "converted"}, "spec": spec,
		}}
	}

	old := s.dyn.Resource(in("v1alpha1", "managedclusteraddons")).Namespace("converted")
	young := s.dyn.Resource(in("v1beta1", "managedclusteraddons")).Namespace("converted")
	_, err = old.Create(t.Context(), object("v1alpha1", "ManagedClusterAddOn", map[string]any{"installNamespace": "monitoring"}), metav1.CreateOptions{})
	require.NoError(t, err)
	got, err := young.Get(t.Context(), "converted", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "monitoring", got.GetAnnotations()[installNamespace])
	got.SetAnnotations(map[string]string{installNamespace: "elsewhere"})
	_, err = young.Update(t.Context(), got, metav1.UpdateOptions{})
	require.NoError(t, err)
	got, err = old.Get(t.Context(), "converted", metav1.GetOptions{})
	require.NoError(t, err)
	where, _, err := unstructured.NestedString(got.Object, "spec", "installNamespace")
	require.NoError(t, err)
	require.Equal(t, "elsewhere", where)

	defaults := []any{map[string]any{"group": group, "resource": "addondeploymentconfigs", "name": "small", "namespace": "converted"}}
	kinds := s.dyn.Resource(in("v1beta1", "clustermanagementaddons"))
	_, err = kinds.Create(t.Context(), object("v1beta1", "ClusterManagementAddOn", map[string]any{"defaultConfigs": defaults}), metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, kinds.Delete(context.Background(), "converted", metav1.DeleteOptions{})) })
	got, err = s.dyn.Resource(in("v1alpha1", "clustermanagementaddons")).Get(t.Context(), "converted", metav1.GetOptions{})
	require.NoError(t, err)
	supported, _, err := unstructured.NestedSlice(got.Object, "spec", "supportedConfigs")
	require.NoError(t, err)
	require.Equal(t, map[string]any{"name": "small", "namespace": "converted"}, supported[0].(map[string]any)["defaultConfig"])
}
