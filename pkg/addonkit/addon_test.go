// SPDX-License-Identifier: Apache-2.0

package addonkit

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

func TestOptions(t *testing.T) {
	hashing := func(configs []addonv1alpha1.ConfigGroupResource, kinds ...schema.GroupVersionResource) Options {
		return Options{Name: "web", Configs: configs, Hashed: kinds}
	}
	maps := []addonv1alpha1.ConfigGroupResource{{Resource: "configmaps"}}
	templates := []addonv1alpha1.ConfigGroupResource{{Group: addonv1alpha1.GroupName, Resource: "addontemplates"}}
	for want, o := range map[string]Options{
		"":                  {Name: "web", Configs: []addonv1alpha1.ConfigGroupResource{{Resource: "configmaps"}}},
		"name: must be set": {},
		`name "Web"`:        {Name: "Web"},
		"use at most 63":    {Name: strings.Repeat("a", 64)},
		"configs[1].resource: must be set; use the plural of the kind": {
			Name:    "web",
			Configs: []addonv1alpha1.ConfigGroupResource{{Resource: "x"}, {Group: "y"}},
		},
		"hashed[0]: configmaps is not one of configs; name it there, too": hashing(nil, schema.GroupVersionResource{
			Version:  "v1",
			Resource: "configmaps",
		}),
		"hashed[0].version: must be set; use the version that configmaps is read at": hashing(
			maps, schema.GroupVersionResource{Resource: "configmaps"},
		),
		"hashed[0]: addontemplates.addon.open-cluster-management.io is read by the hub; leave it out": hashing(
			templates, addonv1alpha1.GroupVersion.WithResource("addontemplates"),
		),
		"hashed[1]: configmaps is already named; leave it out": hashing(
			maps, corev1.SchemeGroupVersion.WithResource("configmaps"),
			corev1.SchemeGroupVersion.WithResource("configmaps"),
		),
	} {
		if want == "" {
			require.NoError(t, o.Check())
		} else {
			require.ErrorContains(t, o.Check(), want)
		}
	}
}

func deployment(name string) *appsv1.Deployment {
	return &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}
}

func TestRead(t *testing.T) {
	second := deployment("a")
	second.Labels = map[string]string{"second": "x"}
	got, err := Read([]runtime.Object{deployment("a"), deployment("b"), second})
	require.NoError(t, err)
	require.Len(t, got, 2, "one identity is one manifest")
	require.Equal(t, "Deployment n/a", got[0].String())
	require.Equal(t, "x", got[0].Object.GetLabels()["second"], "the later one counts")
	require.NotContains(t, string(got[0].Raw), "creationTimestamp")
	require.Equal(t, workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: "n", Name: "b"}, got[1].Resource())

	_, err = Read([]runtime.Object{deployment("a"), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}})
	require.ErrorContains(t, err, "manifest 1: ")
	require.ErrorContains(t, err, "apiVersion")
}

func TestHostedByAnnotation(t *testing.T) {
	var h Hosted = HostedByAnnotation{}
	i := Instance{AddOn: &addonv1alpha1.ManagedClusterAddOn{}}
	_, hosted := h.HostingCluster(i)
	require.False(t, hosted)
	i.AddOn.Annotations = map[string]string{addonv1alpha1.AnnotationHostingClusterName: ""}
	name, hosted := h.HostingCluster(i)
	require.True(t, hosted, "the annotation counts, also without a name")
	require.Empty(t, name)
	i.AddOn.Annotations[addonv1alpha1.AnnotationHostingClusterName] = "h1"
	name, _ = h.HostingCluster(i)
	require.Equal(t, "h1", name)
}
