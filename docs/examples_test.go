// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
)

// yamlBlock matches an example in a page.
var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// TestTheExamplesOfTheReferenceFitTheirSchemas validates whole objects, including the
// status, which an API server drops. test/integration/hub tests that a hub admits them.
func TestTheExamplesOfTheReferenceFitTheirSchemas(t *testing.T) {
	for file, page := range referencePages(t) {
		kinds := map[string]bool{}
		for _, block := range yamlBlock.FindAllStringSubmatch(page, -1) {
			for _, document := range strings.Split(block[1], "---\n") {
				var o unstructured.Unstructured
				require.NoError(t, yaml.UnmarshalStrict([]byte(document), &o.Object), file)
				fits(t, &o)
				kinds[strings.ToLower(o.GetKind())+".md"] = true
			}
		}
		require.True(t, kinds[file] || file == "README.md", "%s has no example of its kind", file)
	}
}

// fits requires that an object is valid by its definition and has no unknown fields.
func fits(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	gvk := o.GroupVersionKind()
	u, err := crd.Any(strings.ToLower(gvk.Kind) + "s." + gvk.Group)
	require.NoError(t, err)
	var definition apiextensionsv1.CustomResourceDefinition
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &definition))
	for _, v := range definition.Spec.Versions {
		if v.Name != gvk.Version {
			continue
		}
		var schema apiextensions.JSONSchemaProps
		require.NoError(t, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, &schema, nil))
		structural, err := structuralschema.NewStructural(&schema)
		require.NoError(t, err)
		unknown := pruning.PruneWithOptions(o.DeepCopy().Object, structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
		require.Empty(t, unknown, gvk.Kind)
		defaulting.Default(o.Object, structural)
		validator, _, err := validation.NewSchemaValidator(&schema)
		require.NoError(t, err)
		require.Empty(t, validation.ValidateCustomResource(nil, o.Object, validator), gvk.Kind)
		return
	}
	require.Fail(t, "no such version", gvk)
}
