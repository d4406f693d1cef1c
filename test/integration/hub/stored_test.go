// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

const (
	setsName       = "managedclustersets.cluster.open-cluster-management.io"
	placementsName = "placements.cluster.open-cluster-management.io"
)

// versionsOf returns the versions of a definition by name.
func versionsOf(t *testing.T, u *unstructured.Unstructured) map[string]map[string]any {
	t.Helper()
	list, _, err := unstructured.NestedSlice(u.Object, "spec", "versions")
	require.NoError(t, err)
	out := map[string]map[string]any{}
	for _, v := range list {
		of := v.(map[string]any)
		out[of["name"].(string)] = of
	}
	return out
}

// storeAsOlderHubs defines two APIs as hubs of older releases did, and stores a set: its selector
// has a type that has another name now, and placements were stored in a version that is gone.
func (s *scene) storeAsOlderHubs(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	u, err := crd.Get(setsName)
	require.NoError(t, err)
	old := versionsOf(t, u)["v1beta1"]
	old["storage"] = true
	path := []string{"schema", "openAPIV3Schema", "properties", "spec", "properties", "clusterSelector", "properties", "selectorType", "enum"}
	require.NoError(t, unstructured.SetNestedSlice(old, []any{"LegacyClusterSetLabel", "ExclusiveClusterSetLabel", "LabelSelector"}, path...))
	require.NoError(t, unstructured.SetNestedSlice(u.Object, []any{old}, "spec", "versions"))
	_, err = s.dyn.Resource(definitions).Create(ctx, u, metav1.CreateOptions{})
	require.NoError(t, err)
	soon(t, func() bool {
		err = s.makeSetAs(t, oldSets, "team", "{clusterSelector: {selectorType: LegacyClusterSetLabel}}")
		return err == nil
	}, "the old set: %v", &err)

	u, err = crd.Get(placementsName)
	require.NoError(t, err)
	now, older := versionsOf(t, u)["v1beta1"], versionsOf(t, u)["v1beta1"]
	older["name"], now["storage"] = "v1alpha1", false
	require.NoError(t, unstructured.SetNestedSlice(u.Object, []any{older, now}, "spec", "versions"))
	u, err = s.dyn.Resource(definitions).Create(ctx, u, metav1.CreateOptions{})
	require.NoError(t, err)
	older["storage"], now["storage"] = false, true
	body, err := (&unstructured.Unstructured{Object: map[string]any{
		"kind": u.GetKind(), "spec": map[string]any{"versions": []any{older, now}},
	}}).MarshalJSON()
	require.NoError(t, err)
	soon(t, func() bool {
		u, err = s.dyn.Resource(definitions).Patch(ctx, placementsName, types.MergePatchType, body, metav1.PatchOptions{})
		return err == nil && slices.Equal(storedIn(u), []string{"v1alpha1", "v1beta1"})
	}, "placements are stored in both: %v", &err)
}

func storedIn(u *unstructured.Unstructured) []string {
	list, _, _ := unstructured.NestedStringSlice(u.Object, "status", "storedVersions")
	return list
}

// testStored: a version that is gone and may still be stored is told, and the hub continues once an
// administrator says that nothing is; the set with the old name of a selector type has the new one.
func (s *scene) testStored(t *testing.T) {
	ctx := context.Background()
	s.awaitApplied(t, metav1.ConditionFalse, operatorv1.ReasonCRDApplyFailed, placementsName, "v1alpha1", "storage migration")
	_, err := s.dyn.Resource(definitions).Patch(ctx, placementsName, types.MergePatchType, []byte(`{"status":{"storedVersions":["v1beta1"]}}`),
		metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	s.awaitHub(t)
	var kind string
	soon(t, func() bool {
		set, err := s.dyn.Resource(sets).Get(ctx, "team", metav1.GetOptions{})
		require.NoError(t, err)
		kind, _, _ = unstructured.NestedString(set.Object, "spec", "clusterSelector", "selectorType")
		conditions, _, _ := unstructured.NestedSlice(set.Object, "status", "conditions")
		return kind == "ExclusiveClusterSetLabel" && len(conditions) == 1
	}, "the selector type is %s", &kind)
	u, err := s.dyn.Resource(definitions).Get(ctx, setsName, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"v1beta1", "v1beta2"}, storedIn(u))
}
