// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// wrongValue is a value that a field must not have.
type wrongValue struct {
	// field is where the API server says that it is wrong, and path leads there: names, and "[]" for
	// the first item of a list.
	field string
	path  []string
	value any
}

// wrongValues returns values that the schema of a field, and of those below it, excludes.
func wrongValues(field string, path []string, schema map[string]any) []wrongValue {
	var out []wrongValue
	add := func(value any) { out = append(out, wrongValue{field, path, value}) }
	below := func(name string, schema any) {
		s, _ := schema.(map[string]any)
		at := field + "." + name
		if name == "[]" {
			at = field + "[0]"
		}
		out = append(out, wrongValues(at, append(append([]string{}, path...), name), s)...)
	}
	if schema["x-kubernetes-int-or-string"] == true {
		add(true)
		return out
	}
	switch schema["type"] {
	case "object":
		add("wrong")
		properties, _ := schema["properties"].(map[string]any)
		for name, s := range properties {
			below(name, s)
		}
		if each, ok := schema["additionalProperties"].(map[string]any); ok {
			below("key", each)
		}
	case "array":
		add("wrong")
		below("[]", schema["items"])
	case "boolean":
		add("wrong")
	case "integer":
		add("wrong")
		if most, ok := schema["maximum"]; ok {
			add(numberOf(most) + 1)
		}
		if least, ok := schema["minimum"]; ok {
			add(numberOf(least) - 1)
		}
	default:
		add(int64(1))
		if _, ok := schema["enum"]; ok {
			add("no-such-value")
		}
		if text, ok := schema["pattern"].(string); ok && !regexp.MustCompile(text).MatchString("Not Valid!") {
			add("Not Valid!")
		}
		if most, ok := schema["maxLength"]; ok {
			add(strings.Repeat("a", int(numberOf(most))+1))
		}
	}
	return out
}

func numberOf(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case float64:
		return int64(v)
	}
	return 0
}

// object returns an object of a kind in which nothing but that field is set.
func (w wrongValue) object(kind string) *unstructured.Unstructured {
	value := w.value
	for i := len(w.path) - 1; i >= 0; i-- {
		if w.path[i] == "[]" {
			value = []any{value}
			continue
		}
		value = map[string]any{w.path[i]: value}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": operatorv1.GroupVersion.String(), "kind": kind, "metadata": map[string]any{"name": "wrong"}, "spec": value,
	}}
}

// TestTheDefinitionsRefuseWrongValues gives every field of a ClusterManager and of a Klusterlet values
// that its schema excludes: the API server refuses each, and names the field.
func TestTheDefinitionsRefuseWrongValues(t *testing.T) {
	t.Parallel()
	dyn := emptyHub(t).dyn
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	for resource, kind := range map[string]string{"clustermanagers": "ClusterManager", "klusterlets": "Klusterlet"} {
		t.Run(kind, func(t *testing.T) {
			u, err := crd.Get(resource + "." + operatorv1.GroupVersion.Group)
			require.NoError(t, err)
			_, err = dyn.Resource(definitions).Create(context.Background(), u, metav1.CreateOptions{})
			require.NoError(t, err)
			versions, _, err := unstructured.NestedSlice(u.Object, "spec", "versions")
			require.NoError(t, err)
			spec, found, err := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec")
			require.NoError(t, err)
			require.True(t, found)
			api := dyn.Resource(operatorv1.GroupVersion.WithResource(resource))
			settled(t, func() error { _, err := api.List(context.Background(), metav1.ListOptions{}); return err })
			all := wrongValues("spec", nil, spec)
			require.Greater(t, len(all), 60, "the schema is read")
			for _, w := range all {
				_, err := api.Create(context.Background(), w.object(kind), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				text := fmt.Sprintf("%s=%v: %v", w.field, w.value, err)
				require.True(t, apierrors.IsInvalid(err), text)
				require.Contains(t, strings.ReplaceAll(err.Error(), "[key]", ".key"), w.field, text)
			}
			t.Logf("measured: %d values", len(all))
		})
	}
}
