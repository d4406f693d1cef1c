// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
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
	settled(t, func() error { // loops of the hub write it, too
		got, err := young.Get(t.Context(), "converted", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, "monitoring", got.GetAnnotations()[installNamespace])
		got.SetAnnotations(map[string]string{installNamespace: "elsewhere"})
		_, err = young.Update(t.Context(), got, metav1.UpdateOptions{})
		return err
	})
	got, err := old.Get(t.Context(), "converted", metav1.GetOptions{})
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

// TestEveryVersionChangesWhatTheOtherMade creates each add-on kind in each of its versions, and
// reads, updates and deletes it in each of them.
func TestEveryVersionChangesWhatTheOtherMade(t *testing.T) {
	s := sharedHub(t)
	const group, place = "addon.open-cluster-management.io", "convertible"
	_, err := s.kube.CoreV1().Namespaces().Create(t.Context(), namespace(place), metav1.CreateOptions{})
	require.NoError(t, err)
	manifest := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "default", "name": "c"}}
	for kind, tc := range map[string]struct {
		resource, namespace string
		spec                map[string]any
	}{
		"ClusterManagementAddOn": {"clustermanagementaddons", "", map[string]any{"addOnMeta": map[string]any{"displayName": "d"}}},
		"ManagedClusterAddOn":    {"managedclusteraddons", place, map[string]any{}},
		"AddOnDeploymentConfig": {"addondeploymentconfigs", place, map[string]any{
			"customizedVariables": []any{map[string]any{"name": "A", "value": "b"}},
		}},
		"AddOnTemplate": {"addontemplates", "", map[string]any{
			"addonName": "x", "agentSpec": map[string]any{"workload": map[string]any{"manifests": []any{manifest}}},
		}},
	} {
		for _, by := range []string{"v1alpha1", "v1beta1"} {
			for _, through := range []string{"v1alpha1", "v1beta1"} {
				t.Run(kind+" of "+by+" through "+through, func(t *testing.T) {
					api := func(version string) dynamic.ResourceInterface {
						return s.dyn.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: tc.resource}).Namespace(tc.namespace)
					}
					name := by + "-" + through
					made, err := api(by).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
						"apiVersion": group + "/" + by, "kind": kind, "metadata": map[string]any{"name": name}, "spec": tc.spec,
					}}, metav1.CreateOptions{})
					require.NoError(t, err)
					settled(t, func() error { // loops of the hub write some of them, too
						got, err := api(through).Get(t.Context(), name, metav1.GetOptions{})
						require.NoError(t, err)
						require.Equal(t, group+"/"+through, got.GetAPIVersion())
						got.SetAnnotations(map[string]string{"note": "changed"})
						_, err = api(through).Update(t.Context(), got, metav1.UpdateOptions{})
						return err
					})
					got, err := api(by).Get(t.Context(), name, metav1.GetOptions{})
					require.NoError(t, err)
					require.Equal(t, "changed", got.GetAnnotations()["note"])
					require.Equal(t, made.Object["spec"], got.Object["spec"])
					require.NoError(t, api(through).Delete(t.Context(), name, metav1.DeleteOptions{}))
					require.True(t, eventually(func() bool {
						_, err := api(by).Get(t.Context(), name, metav1.GetOptions{})
						return apierrors.IsNotFound(err)
					}))
				})
			}
		}
	}
}
