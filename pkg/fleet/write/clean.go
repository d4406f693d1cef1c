// SPDX-License-Identifier: Apache-2.0

package write

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Clean returns a copy without the fields that the server adds.
func Clean(u *unstructured.Unstructured) *unstructured.Unstructured {
	if u == nil {
		return nil
	}
	out := u.DeepCopy()
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"} {
		unstructured.RemoveNestedField(out.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(out.Object, "status")
	if annotations := out.GetAnnotations(); annotations != nil {
		delete(annotations, "deployment.kubernetes.io/revision")
		out.SetAnnotations(annotations)
		if len(annotations) == 0 {
			unstructured.RemoveNestedField(out.Object, "metadata", "annotations")
		}
	}
	return out
}

// contains reports whether live has everything that want names. Lists must have the same
// length and match item by item.
func contains(live, want any) bool {
	switch w := want.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		if !ok {
			return len(w) == 0 && live == nil
		}
		for k, v := range w {
			if !contains(l[k], v) {
				return false
			}
		}
		return true
	case []any:
		l, ok := live.([]any)
		if !ok || len(l) != len(w) {
			return len(w) == 0 && live == nil
		}
		for i := range w {
			if !contains(l[i], w[i]) {
				return false
			}
		}
		return true
	}
	return fmt.Sprint(live) == fmt.Sprint(want) || (live == nil && zero(want))
}

func zero(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case string:
		return x == ""
	case bool:
		return !x
	case int64:
		return x == 0
	}
	return false
}
