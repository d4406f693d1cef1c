// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

func TestWhatIsThereIsComparedWithWhatIsWanted(t *testing.T) {
	wanted := func() map[string]any { return wireForm(hooks[0].object(place{namespace: hub.Namespace}, []byte("ca"))) }
	for name, tc := range map[string]struct {
		change func(hook map[string]any)
		same   bool
	}{
		"as it was applied":    {func(map[string]any) {}, true},
		"with a default more":  {func(h map[string]any) { h["matchPolicy"] = "Equivalent" }, true},
		"without its CA":       {func(h map[string]any) { delete(h["clientConfig"].(map[string]any), "caBundle") }, false},
		"without its rules":    {func(h map[string]any) { delete(h, "rules") }, false},
		"with a rule more":     {func(h map[string]any) { h["rules"] = append(h["rules"].([]any), map[string]any{}) }, false},
		"with another failure": {func(h map[string]any) { h["failurePolicy"] = "Ignore" }, false},
		"for another service": {func(h map[string]any) {
			h["clientConfig"].(map[string]any)["service"].(map[string]any)["name"] = "other"
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{Object: wanted()}
			tc.change(live.Object["webhooks"].([]any)[0].(map[string]any))
			f, ok := keepHook(live)
			require.True(t, ok)
			require.Equal(t, tc.same, f.matches(wanted()))
		})
	}
}

func TestADefinitionThatLostAFieldIsNotTheOneOfThisProgram(t *testing.T) {
	for _, name := range definitionNames {
		u, err := crd.Get(name)
		require.NoError(t, err)
		conversion, _, _ := unstructured.NestedMap(u.Object, "spec", "conversion")
		f, _ := keepDefinition(u)
		require.True(t, f.matches(map[string]any{"spec": map[string]any{"conversion": conversion}}), name)
		versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
		unstructured.RemoveNestedField(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties")
		require.NoError(t, unstructured.SetNestedSlice(u.Object, versions, "spec", "versions"))
		f, _ = keepDefinition(u)
		require.False(t, f.matches(map[string]any{}), name)
	}
}

func TestTheStatusNamesAllPartsOfTheHub(t *testing.T) {
	parts, err := installedObjects(Config{Version: "v1.2.3"})
	require.NoError(t, err)
	s := state(t, func(s *State) { s.Installed, s.Deployment = parts, 7 })
	cm := Decide(s).Object.(*operatorv1.ClusterManager)
	require.Equal(
		t,
		[]operatorv1.GenerationStatus{
			{Group: "apps", Version: "v1", Resource: "deployments", Namespace: hub.Namespace, Name: hub.Name, LastGeneration: 7},
		},
		cm.Status.Generations,
	)
	count := map[string]int{}
	for _, r := range cm.Status.RelatedResources {
		require.NotEmpty(t, r.Name)
		count[r.Resource]++
	}
	require.Equal(t, 13, count["customresourcedefinitions"])
	require.Equal(t, 13, count["validatingwebhookconfigurations"])
	require.Equal(t, 1, count["mutatingwebhookconfigurations"])
	require.Equal(t, 4, count["secrets"])
	require.Equal(t, 1, count["deployments"])
	require.Equal(t, 6, count["services"])
	require.Equal(
		t, cm.Status.RelatedResources, Decide(s).Object.(*operatorv1.ClusterManager).Status.RelatedResources,
		"repeated calls do not make it grow",
	)
}
