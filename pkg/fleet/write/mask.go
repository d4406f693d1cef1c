// SPDX-License-Identifier: Apache-2.0

package write

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What replaces the values of Secrets in a diff: the same on both sides when they are equal.
const (
	maskSame   = "***"
	maskBefore = "*** (before)"
	maskAfter  = "*** (after)"
)

// Masked returns both sides of a diff without the values of a Secret, and of Secrets among the
// manifests of a work.
func Masked(before, after *unstructured.Unstructured) (b, a *unstructured.Unstructured) {
	return masked(before, after, true)
}

// masked is Masked; without itself, the own values of the objects were removed already.
func masked(before, after *unstructured.Unstructured, itself bool) (b, a *unstructured.Unstructured) {
	sides := [2]*unstructured.Unstructured{before, after}
	var found [2]map[string]map[string]any
	for i, side := range sides {
		found[i] = map[string]map[string]any{}
		if side == nil {
			continue
		}
		sides[i] = side.DeepCopy()
		secretsIn(sides[i].Object, itself, found[i])
	}
	for key, values := range found[0] {
		other := found[1][key]
		for name, value := range values {
			if now, both := other[name]; both && fmt.Sprint(now) != fmt.Sprint(value) {
				values[name], other[name] = maskBefore, maskAfter
				continue
			}
			values[name] = maskSame
		}
	}
	for _, values := range found[1] {
		for name, value := range values {
			if value != maskAfter {
				values[name] = maskSame
			}
		}
	}
	return sides[0], sides[1]
}

// secretsIn collects the values of the Secrets in a tree, keyed by what distinguishes a Secret
// and its field from others.
func secretsIn(value any, counts bool, into map[string]map[string]any) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			secretsIn(item, true, into)
		}
	case map[string]any:
		if u := (&unstructured.Unstructured{Object: v}); v["kind"] == "Secret" && v["apiVersion"] == "v1" {
			for _, field := range []string{"data", "stringData"} {
				if values, ok := v[field].(map[string]any); ok && counts {
					into[strings.Join([]string{u.GetNamespace(), u.GetName(), field}, "/")] = values
				}
			}
			return
		}
		for _, item := range v {
			secretsIn(item, true, into)
		}
	}
}
