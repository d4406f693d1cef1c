// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// chart is what an installer applies, in the order of Helm.
var chart = []string{
	`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"shop","namespace":"default"}}`,
	`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"shop","namespace":"default"},"data":{"color":"blue"}}`,
	`{"apiVersion":"v1","kind":"Service","metadata":{"name":"shop","namespace":"default"},"spec":{"ports":[{"port":80}],"selector":{"app":"shop"}}}`,
	`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"shop","namespace":"default"},"spec":{"selector":{"matchLabels":{"app":"shop"}},
		"template":{"metadata":{"labels":{"app":"shop"}},"spec":{"containers":[{"name":"shop","image":"example.com/shop:1"}]}}}}`,
}

// TestAChartIsInstalledThroughTheHub sends what Helm sends: it looks up the kinds and their schemas,
// tries each object, applies it, and keeps the release in a Secret.
func TestAChartIsInstalledThroughTheHub(t *testing.T) {
	s := start(t)
	s.join(t, "charts")
	s.connect(t, "charts")
	grant(t, s.spoke.Dynamic(t), "helga", "edit", "User", "helga")
	s.allow(t, "User", "helga", "charts")
	config := through(s.personConfig(t, "helga"), "charts")
	awaitSelf(t, config)
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	require.NoError(t, err)
	groups, err := restmapper.GetAPIGroupResources(kinds)
	require.NoError(t, err)
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	paths, err := kinds.OpenAPIV3().Paths()
	require.NoError(t, err)
	schema, err := paths["apis/apps/v1"].Schema("application/json")
	require.NoError(t, err)
	require.Contains(t, string(schema), "io.k8s.api.apps.v1.Deployment")

	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	releases := client.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace("default")
	soon(t, func() error { // the rights on the cluster may not count yet
		_, err := releases.List(t.Context(), metav1.ListOptions{LabelSelector: "owner=helm,name=shop"})
		return err
	})
	for _, text := range chart {
		u := decode(t, text)
		kind := u.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		require.NoError(t, err)
		api := client.Resource(mapping.Resource).Namespace(u.GetNamespace())
		var applied *unstructured.Unstructured
		for _, dryRun := range [][]string{{metav1.DryRunAll}, nil} {
			applied, err = api.Apply(t.Context(), u.GetName(), u, metav1.ApplyOptions{FieldManager: "helm", DryRun: dryRun})
			require.NoError(t, err)
		}
		there := s.spoke.Dynamic(t).Resource(mapping.Resource).Namespace(u.GetNamespace())
		t.Cleanup(func() { _ = there.Delete(context.Background(), u.GetName(), metav1.DeleteOptions{}) })
		live, err := there.Get(t.Context(), u.GetName(), metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, applied.GetUID(), live.GetUID())
	}
	release := decode(t, `{"apiVersion":"v1","kind":"Secret","type":"helm.sh/release.v1","metadata":{"name":"sh.helm.release.v1.shop.v1",
		"namespace":"default","labels":{"owner":"helm","name":"shop","status":"deployed"}},"data":{"release":"eA=="}}`)
	_, err = releases.Create(t.Context(), release, metav1.CreateOptions{})
	require.NoError(t, err)
	found, err := releases.List(t.Context(), metav1.ListOptions{LabelSelector: "owner=helm,name=shop"})
	require.NoError(t, err)
	require.Len(t, found.Items, 1)
	require.NoError(t, releases.Delete(t.Context(), release.GetName(), metav1.DeleteOptions{}))
}
