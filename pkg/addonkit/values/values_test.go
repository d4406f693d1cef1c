// SPDX-License-Identifier: Apache-2.0

package values

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

func instance() addonkit.Instance {
	return addonkit.Instance{
		Cluster: &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}},
		AddOn:   &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "hello"}},
	}
}

func TestMergeGoesIntoMapsAndChangesNothing(t *testing.T) {
	weak := map[string]any{"a": map[string]any{"x": "1", "y": "1"}, "list": []any{"1"}, "map": map[string]any{"x": "1"}}
	strong := map[string]any{"a": map[string]any{"y": "2"}, "list": []any{"2"}, "map": "2"}
	require.Equal(t, map[string]any{"a": map[string]any{
		"x": "1",
		"y": "2",
	}, "list": []any{
		"2",
	}, "map": "2"}, Merge(weak, nil, strong))
	require.Equal(t, map[string]any{"x": "1", "y": "1"}, weak["a"])
	require.Equal(t, map[string]any{"y": "2"}, strong["a"])

	alone := Merge(weak)
	alone["a"].(map[string]any)["x"] = "3"
	require.Equal(t, map[string]any{"x": "1", "y": "1"}, weak["a"], "a map of an input is in the result")
}

func TestWhatIsStrongerThanWhat(t *testing.T) {
	first := map[string]any{"Image": "a", "Level": "1", HubKubeConfigSecret: "mine", ClusterName: "other", AddonInstallNamespace: map[string]any{"a": "b"}}
	got, err := All(t.Context(), instance(), Defaults(instance()), BuiltIn(instance(), "ns", true), Fixed(first), Fixed(map[string]any{"Level": "2"}))
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"Image": "a", "Level": "2", HubKubeConfigSecret: "mine", ManagedKubeConfigSecret: "hello-managed-kubeconfig",
		ClusterName: "c1", AddonName: "hello", AddonInstallNamespace: "ns", InstallMode: "Hosted",
	}, got)
	require.Equal(t, "hello-hub-kubeconfig", Defaults(instance())[HubKubeConfigSecret])
	require.Equal(t, "Default", BuiltIn(instance(), "ns", false)[InstallMode])

	_, err = All(t.Context(), instance(), nil, nil, func(context.Context, addonkit.Instance) (map[string]any, error) { return nil, errors.New("no values") })
	require.EqualError(t, err, "no values")
}

func TestValuesOfTheAnnotation(t *testing.T) {
	i := instance()
	got, err := Annotation(t.Context(), i)
	require.NoError(t, err)
	require.Empty(t, got)

	i.AddOn.Annotations = map[string]string{addonv1alpha1.AnnotationValues: `{"Replicas":2,"global":{"pullPolicy":"Always"}}`}
	got, err = Annotation(t.Context(), i)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"Replicas": int64(2), "global": map[string]any{"pullPolicy": "Always"}}, got)

	for _, text := range []string{`{`, `[]`, `"secret"`} {
		i.AddOn.Annotations[addonv1alpha1.AnnotationValues] = text
		_, err = Annotation(t.Context(), i)
		require.EqualError(
			t, err,
			`ManagedClusterAddOn c1/hello: metadata.annotations[addon.open-cluster-management.io/values]: is no JSON object; write for example {"Key":"value"}`,
		)
	}
}
