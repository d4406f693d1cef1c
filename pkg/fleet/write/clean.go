// SPDX-License-Identifier: Apache-2.0

package write

import (
	"fmt"
	"slices"

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
	unstructured.RemoveNestedField(out.Object, "metadata", "annotations", "deployment.kubernetes.io/revision")
	if left, found, _ := unstructured.NestedMap(out.Object, "metadata", "annotations"); found && len(left) == 0 {
		unstructured.RemoveNestedField(out.Object, "metadata", "annotations")
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
		if !ok {
			return len(w) == 0 && live == nil
		}
		return slices.EqualFunc(l, w, contains)
	}
	return fmt.Sprint(live) == fmt.Sprint(want) || live == nil && slices.Contains([]any{"", false, int64(0)}, want)
}
