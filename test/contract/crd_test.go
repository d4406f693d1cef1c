// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
)

// servedBeside are versions that this project serves and the facts do not list: older
// guides use sets in v1beta1, and AddOnTemplate is served in v1beta1 like the other
// add-on kinds.
var servedBeside = map[string]string{
	"managedclustersets.cluster.open-cluster-management.io":        "v1beta1",
	"managedclustersetbindings.cluster.open-cluster-management.io": "v1beta1",
	"addontemplates.addon.open-cluster-management.io":              "v1beta1",
}

// columnsBeside are printer columns that the facts do not list: there, the kinds have
// none, so that "kubectl get" shows names but no state.
var columnsBeside = map[string]map[Place]Fact{
	"manifestworks.work.open-cluster-management.io": {
		{"v1", "@column Applied"}:   {"string", `{"jsonPath": ".status.conditions[?(@.type==\"Applied\")].status"}`},
		{"v1", "@column Available"}: {"string", `{"jsonPath": ".status.conditions[?(@.type==\"Available\")].status"}`},
		{"v1", "@column Complete"}:  {"string", `{"jsonPath": ".status.conditions[?(@.type==\"Complete\")].status"}`},
		{"v1", "@column Age"}:       {"date", `{"jsonPath": ".metadata.creationTimestamp"}`},
		{"v1", "@column Progressing"}: {
			"string",
			`{"jsonPath": ".status.conditions[?(@.type==\"Progressing\")].status", "priority": 1}`,
		},
		{"v1", "@column Degraded"}: {
			"string",
			`{"jsonPath": ".status.conditions[?(@.type==\"Degraded\")].status", "priority": 1}`,
		},
		{"v1", "@column Message"}: {
			"string",
			`{"jsonPath": ".status.conditions[?(@.type==\"Applied\")].message", "priority": 1}`,
		},
	},
	"appliedmanifestworks.work.open-cluster-management.io": {
		{"v1", "@column Work"}:     {"string", `{"jsonPath": ".spec.manifestWorkName"}`},
		{"v1", "@column Agent"}:    {"string", `{"jsonPath": ".spec.agentID", "priority": 1}`},
		{"v1", "@column Eviction"}: {"date", `{"jsonPath": ".status.evictionStartTime"}`},
		{"v1", "@column Age"}:      {"date", `{"jsonPath": ".metadata.creationTimestamp"}`},
	},
}

// typed decodes a definition.
func typed(t *testing.T, u *unstructured.Unstructured) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, definition, true))
	return definition
}

// definitions returns all definitions by name.
func definitions(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	hub, err := crd.Hub()
	require.NoError(t, err)
	agent, err := crd.Agent()
	require.NoError(t, err)
	all := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, u := range slices.Concat(hub, agent) {
		all[u.GetName()] = typed(t, u)
	}
	for _, name := range []string{crd.ClusterManagers, crd.Klusterlets, crd.ManagedServiceAccounts} {
		u, err := crd.Get(name)
		require.NoError(t, err)
		all[name] = typed(t, u)
	}
	permissions, err := crd.Any(crd.ClusterPermissions)
	require.NoError(t, err)
	all[permissions.GetName()] = typed(t, permissions)
	return all
}

func TestDefinitionsHoldEveryFact(t *testing.T) {
	wanted, err := ReadFacts("testdata/crds")
	require.NoError(t, err)
	have := definitions(t)
	require.Len(t, have, 18)

	total := 0
	var differences []string
	for name, facts := range wanted {
		total += len(facts)
		require.Contains(t, have, name)
		got, err := FactsOf(have[name])
		require.NoError(t, err)
		wrong, extra := Compare(name, facts, got)
		differences = append(differences, wrong...)
		for _, place := range extra {
			_, column := columnsBeside[name][place]
			if place.Version != servedBeside[name] && !column {
				differences = append(differences, name+" "+place.Version+" "+place.Path+"\n  is not in the facts")
			}
		}
		for place, column := range columnsBeside[name] {
			require.Equal(t, column, got[place], "%s %s", name, place.Path)
		}
	}
	require.Equal(t, 1590, total, "facts in testdata")
	require.Empty(t, differences, "%d of %d facts differ:\n%s", len(differences), total, strings.Join(differences, "\n"))
}

// TestCompareSeesDifferences tests Compare itself.
func TestCompareSeesDifferences(t *testing.T) {
	facts := definitions(t)["clusterclaims.cluster.open-cluster-management.io"]
	want, err := FactsOf(facts)
	require.NoError(t, err)
	got, err := FactsOf(facts)
	require.NoError(t, err)
	value := Place{"v1alpha1", ".spec.value"}
	got[value] = Fact{"string", "maxLength=1"}
	delete(got, Place{"*", "@kind"})
	got[Place{"v1", ".spec"}] = Fact{"object", ""}

	differences, extra := Compare("claims", want, got)
	require.Equal(t, []string{
		"claims * @kind\n  want  \"ClusterClaim\"\n  but it is missing",
		"claims v1alpha1 .spec.value\n  want string maxLength=1024;minLength=1\n  got  string maxLength=1",
	}, differences)
	require.Equal(t, []Place{{"v1", ".spec"}}, extra)
}

func TestVersionsServedBesideAreTheSameAsTheStoredOne(t *testing.T) {
	for name, beside := range servedBeside {
		definition := definitions(t)[name]
		require.Nil(t, definition.Spec.Conversion, name)
		got, err := FactsOf(definition)
		require.NoError(t, err)
		stored := definition.Spec.Versions[slices.IndexFunc(definition.Spec.Versions,
			func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })].Name
		require.NotEqual(t, beside, stored, name)
		found := 0
		for place, fact := range got {
			if place.Version == stored && place.Path != "@storage" {
				found++
				require.Equal(t, fact, got[Place{beside, place.Path}], "%s %s", name, place.Path)
			}
		}
		require.Greater(t, found, 10, name)
		require.Equal(t, Fact{"", "true"}, got[Place{beside, "@served"}], name)
		require.Equal(t, Fact{"", "false"}, got[Place{beside, "@storage"}], name)
	}
}

func TestDefinitionsAreValid(t *testing.T) {
	conversion := crd.Conversion{Namespace: "n", Name: "s", Path: "/convert", Port: 9443, CABundle: []byte("-")}
	for name, definition := range definitions(t) {
		t.Run(name, func(t *testing.T) {
			if crd.NeedsConversion(name) {
				u, err := crd.Get(name)
				require.NoError(t, err)
				definition = typed(t, crd.WithConversion(u, conversion))
				definition.Spec.Conversion.Webhook.ClientConfig.CABundle = nil // Only its being PEM is checked.
			}
			apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(definition)
			internal := &apiextensions.CustomResourceDefinition{}
			require.NoError(t, apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(definition, internal, nil))
			internal.Status.StoredVersions = []string{internal.Spec.Versions[0].Name}
			for _, version := range internal.Spec.Versions {
				if version.Storage {
					internal.Status.StoredVersions = []string{version.Name}
				}
			}
			require.Empty(t, validation.ValidateCustomResourceDefinition(context.Background(), internal))
		})
	}
}

func TestEveryFieldIsExplained(t *testing.T) {
	var missing []string
	var look func(path string, schema *apiextensionsv1.JSONSchemaProps)
	look = func(path string, schema *apiextensionsv1.JSONSchemaProps) {
		for name, property := range schema.Properties {
			if property.Description == "" && name != "metadata" {
				missing = append(missing, path+"."+name)
			}
			look(path+"."+name, &property)
		}
		if schema.Items != nil && schema.Items.Schema != nil {
			look(path+"[]", schema.Items.Schema)
		}
	}
	for name, definition := range definitions(t) {
		for _, version := range definition.Spec.Versions {
			require.NotEmpty(t, version.Schema.OpenAPIV3Schema.Description, name)
			look(name+" "+version.Name+" ", version.Schema.OpenAPIV3Schema)
		}
	}
	require.Empty(t, missing)
}

func TestHubDefinitionsComeInOrder(t *testing.T) {
	hub, err := crd.Hub()
	require.NoError(t, err)
	names := []string{}
	for _, u := range hub {
		plural, _, _ := strings.Cut(u.GetName(), ".")
		names = append(names, plural)
	}
	// The order in which they are applied.
	require.Equal(t, []string{
		"clustermanagementaddons", "managedclusters", "managedclustersets", "manifestworks",
		"manifestworkreplicasets", "managedclusteraddons", "managedclustersetbindings", "placements",
		"addondeploymentconfigs", "addontemplates", "placementdecisions", "addonplacementscores",
	}, names)
	agent, err := crd.Agent()
	require.NoError(t, err)
	require.Len(t, agent, 2)
	require.Equal(t, "appliedmanifestworks.work.open-cluster-management.io", agent[0].GetName())
	require.Equal(t, "clusterclaims.cluster.open-cluster-management.io", agent[1].GetName())
}

func TestDefinitionsAreFreshCopies(t *testing.T) {
	first, err := crd.Get(crd.ClusterManagers)
	require.NoError(t, err)
	before := first.DeepCopy()
	first.SetName("changed")
	require.NoError(t, unstructured.SetNestedField(first.Object, "changed", "spec", "group"))
	second, err := crd.Get(crd.ClusterManagers)
	require.NoError(t, err)
	require.Equal(t, before, second)
}

func TestUnknownDefinitionIsAnError(t *testing.T) {
	for _, name := range []string{"", "pods", "../managedclusters.cluster.open-cluster-management.io", "doc.go"} {
		_, err := crd.Get(name)
		require.ErrorContains(t, err, "reading custom resource definition "+name)
	}
}

func TestConversionStanza(t *testing.T) {
	plain, err := crd.Get(crd.ManagedClusterAddOns)
	require.NoError(t, err)
	before := plain.DeepCopy()
	converted := crd.WithConversion(plain, crd.Conversion{
		Namespace: "open-cluster-management", Name: "cluster-manager-addon-webhook", Path: "/convert", Port: 9443,
		CABundle: []byte("pem"),
	})
	require.Equal(t, before, plain, "the given definition stays as it is")
	got, found, err := unstructured.NestedMap(converted.Object, "spec", "conversion")
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, map[string]any{
		"strategy": "Webhook",
		"webhook": map[string]any{
			"conversionReviewVersions": []any{"v1", "v1beta1"},
			"clientConfig": map[string]any{
				"caBundle": base64.StdEncoding.EncodeToString([]byte("pem")),
				"service": map[string]any{
					"namespace": "open-cluster-management", "name": "cluster-manager-addon-webhook",
					"path": "/convert", "port": int64(9443),
				},
			},
		},
	}, got)
	empty := crd.WithConversion(&unstructured.Unstructured{Object: map[string]any{}}, crd.Conversion{})
	require.Contains(t, empty.Object, "spec")

	for name := range definitions(t) {
		require.Equal(t, strings.HasPrefix(name, "clustermanagementaddons.") || strings.HasPrefix(name, "managedclusteraddons."),
			crd.NeedsConversion(name), name)
	}
}
