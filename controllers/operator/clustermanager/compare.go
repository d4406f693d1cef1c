// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// covers reports whether live has every field of wanted; it may have more, since an API
// server adds defaults. Lists must have the same length, and their entries are compared in
// order.
func covers(live, wanted any) bool {
	switch w := wanted.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		if !ok {
			return len(w) == 0 && live == nil
		}
		for key, value := range w {
			if !covers(l[key], value) {
				return false
			}
		}
		return true
	case []any:
		l, ok := live.([]any)
		if len(l) != len(w) || !ok && live != nil {
			return false
		}
		for i := range w {
			if !covers(l[i], w[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(live, wanted)
}

// wireForm returns an object in its wire form.
func wireForm(o reconcile.Object) map[string]any {
	raw, err := json.Marshal(o)
	if err != nil {
		return nil
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		return nil
	}
	return u.Object
}

// keepHook is keepFound for webhook configurations; their webhooks, few and small, are kept
// whole.
func keepHook(u *unstructured.Unstructured) (found, bool) {
	f, ok := keepFound(u)
	f.content = map[string]any{"webhooks": u.Object["webhooks"]}
	return f, ok
}

// keepDefinition is keepFound for definitions; of their schemas, it keeps only whether they
// are those of this program.
func keepDefinition(u *unstructured.Unstructured) (found, bool) {
	f, ok := keepFound(u)
	spec, _ := u.Object["spec"].(map[string]any)
	f.content = map[string]any{"spec": map[string]any{"conversion": spec["conversion"]}}
	if own, err := crd.Any(u.GetName()); err == nil {
		wanted, _ := own.Object["spec"].(map[string]any)
		delete(wanted, "conversion")
		f.other = !covers(spec, wanted)
	}
	return f, ok
}

// servedIn returns the namespace of the Service that a webhook configuration calls.
func (f found) servedIn() string {
	all, _ := f.content["webhooks"].([]any)
	if len(all) == 0 {
		return ""
	}
	first, _ := all[0].(map[string]any)
	at, _, _ := unstructured.NestedString(first, "clientConfig", "service", "namespace")
	return at
}

// convertedIn returns the namespace of the Service that converts the objects of a definition.
func (f found) convertedIn() string {
	at, _, _ := unstructured.NestedString(f.content, "spec", "conversion", "webhook", "clientConfig", "service", "namespace")
	return at
}

// matches reports whether the object has every field of wanted, as far as its content is
// kept.
func (f found) matches(wanted map[string]any) bool {
	if spec, ok := f.content["spec"].(map[string]any); ok {
		w, _ := wanted["spec"].(map[string]any)
		return !f.other && covers(spec["conversion"], w["conversion"])
	}
	return covers(f.content["webhooks"], wanted["webhooks"])
}
