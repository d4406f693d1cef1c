// SPDX-License-Identifier: Apache-2.0

package ignore

import (
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// cutMap removes what t selects from want. owned are the fields that any manager owns at
// this path of the live object; they show which parts the API server merges field by
// field. In parts that it treats as one value, and in parts without an owner, the live
// values replace what is selected.
func (e *evaluator) cutMap(want map[string]any, live any, t *tree, owned *fieldpath.Set) {
	have, _ := live.(map[string]any)
	if owned.Empty() && len(have) > 0 {
		graftMap(want, have, t)
		return
	}
	for name, sub := range t.names {
		child, there := want[name]
		switch {
		case !there:
		case sub.covers(child):
			delete(want, name)
		default:
			want[name] = e.cut(child, have[name], sub, owned.WithPrefix(fieldpath.FieldNameElement(name)))
		}
	}
}

func (e *evaluator) cut(want, live any, t *tree, owned *fieldpath.Set) any {
	switch w := want.(type) {
	case map[string]any:
		e.cutMap(w, live, t, owned)
	case []any:
		have, _ := live.([]any)
		if owned.Empty() && len(have) > 0 {
			return graftList(w, have, t)
		}
		return e.cutList(w, have, t, owned)
	}
	return want
}

// cutList removes elements, or fields of elements. An element that the live object does
// not have yet is applied whole, unless it is itself selected.
func (e *evaluator) cutList(want, have []any, t *tree, owned *fieldpath.Set) []any {
	out := make([]any, 0, len(want))
	for i, child := range want {
		sub := t.places[i]
		if sub.covers(child) {
			continue
		}
		if sub != nil {
			same := e.elementOf(owned, child)
			if at := e.position(have, same); at >= 0 {
				child = e.cut(child, have[at], sub, owned.WithPrefix(*same))
			}
		}
		out = append(out, child)
	}
	return out
}

// graftMap replaces the selected values with the live ones.
func graftMap(want, have map[string]any, t *tree) {
	for name, sub := range t.names {
		child, there := want[name]
		if !there {
			continue
		}
		live, lives := have[name]
		switch {
		case !lives && sub.covers(child):
			delete(want, name)
		case lives:
			want[name] = graft(child, live, sub)
		}
	}
}

func graft(want, live any, t *tree) any {
	if t.covers(want) {
		return runtime.DeepCopyJSONValue(live)
	}
	switch w := want.(type) {
	case map[string]any:
		if have, ok := live.(map[string]any); ok {
			graftMap(w, have, t)
		}
	case []any:
		if have, ok := live.([]any); ok {
			return graftList(w, have, t)
		}
	}
	return want
}

// graftList is graftMap for a list without keys: elements at the same index correspond.
func graftList(want, have []any, t *tree) []any {
	out := make([]any, 0, len(want))
	for i, child := range want {
		sub := t.places[i]
		switch {
		case sub == nil:
			out = append(out, child)
		case i < len(have):
			out = append(out, graft(child, have[i], sub))
		case !sub.covers(child):
			out = append(out, child)
		}
	}
	return out
}
