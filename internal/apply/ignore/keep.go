// SPDX-License-Identifier: Apache-2.0

package ignore

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// keepMap adds to want what our manager owns of the selected live fields, because the API
// server removes a field that an applier owns and leaves out. What another manager has
// taken over is not added, so it stays with that manager.
func (e *evaluator) keepMap(want, have map[string]any, t *tree, ours *fieldpath.Set) {
	for _, name := range slices.Sorted(maps.Keys(t.names)) {
		sub, step := t.names[name], fieldpath.FieldNameElement(name)
		live, lives := have[name]
		below := ours.WithPrefix(step)
		_, there := want[name]
		switch {
		case !lives, !ours.Members.Has(step) && below.Empty():
		case !sub.whole:
			if kept := e.keepBelow(want[name], live, sub, below); kept != nil {
				want[name] = kept
			}
		case !there:
			want[name] = e.part(live, below)
		}
	}
}

// keepBelow continues below one field and returns its new value; nil if there is nothing
// to keep and nothing was declared.
func (e *evaluator) keepBelow(declared, live any, t *tree, ours *fieldpath.Set) any {
	switch have := live.(type) {
	case map[string]any:
		into, ok := declared.(map[string]any)
		if !ok && declared != nil {
			return declared
		}
		if !ok {
			into = map[string]any{}
		}
		if e.keepMap(into, have, t, ours); ok || len(into) > 0 {
			return into
		}
	case []any:
		into, ok := declared.([]any)
		if !ok && declared != nil {
			return declared
		}
		if into = e.keepList(into, have, t, ours); ok || len(into) > 0 {
			return into
		}
	}
	return declared
}

// keepList keeps elements and fields of elements. Fields of an element that the work no
// longer declares are not kept.
func (e *evaluator) keepList(want, have []any, t *tree, ours *fieldpath.Set) []any {
	for _, i := range slices.Sorted(maps.Keys(t.places)) {
		same := e.elementOf(ours, have[i])
		if same == nil {
			continue
		}
		at, sub, below := e.position(want, same), t.places[i], ours.WithPrefix(*same)
		switch {
		case at < 0 && sub.whole:
			want = e.insert(want, withKeys(e.part(have[i], below), same), have[i+1:], ours)
		case at >= 0 && !sub.whole:
			into, ok1 := want[at].(map[string]any)
			from, ok2 := have[i].(map[string]any)
			if ok1 && ok2 {
				e.keepMap(into, from, sub, below)
			}
		}
	}
	return want
}

// insert puts an element before the first element that follows it on the live object,
// because a different order would be a change.
func (e *evaluator) insert(list []any, element any, following []any, ours *fieldpath.Set) []any {
	for _, next := range following {
		if at := e.position(list, e.elementOf(ours, next)); at >= 0 {
			return slices.Insert(list, at, element)
		}
	}
	return append(list, element)
}

// part returns what the set covers of a live value; a set without children covers all of
// it.
func (e *evaluator) part(live any, set *fieldpath.Set) any {
	if set.Empty() {
		return runtime.DeepCopyJSONValue(live)
	}
	switch v := live.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, child := range v {
			step := fieldpath.FieldNameElement(name)
			below := set.WithPrefix(step)
			if set.Members.Has(step) || !below.Empty() {
				out[name] = e.part(child, below)
			}
		}
		return out
	case []any:
		out := []any{}
		for _, child := range v {
			if same := e.elementOf(set, child); same != nil {
				out = append(out, withKeys(e.part(child, set.WithPrefix(*same)), same))
			}
		}
		return out
	}
	return runtime.DeepCopyJSONValue(live)
}

// withKeys sets the fields that identify an element in its list.
func withKeys(element any, same *fieldpath.PathElement) any {
	m, ok := element.(map[string]any)
	if !ok || same.Key == nil {
		return element
	}
	for _, k := range *same.Key {
		m[k.Name] = k.Value.Unstructured()
	}
	return m
}

// elementOf returns the path element of the set that leads to an element of a list, nil
// if there is none.
func (e *evaluator) elementOf(set *fieldpath.Set, element any) *fieldpath.PathElement {
	for step := range set.Members.All() {
		if e.same(&step, element) {
			return &step
		}
	}
	for step := range set.Children.All() {
		if e.same(&step, element) {
			return &step
		}
	}
	return nil
}

// position returns the index in a list of the element that step names, or -1.
func (e *evaluator) position(list []any, step *fieldpath.PathElement) int {
	if step == nil {
		return -1
	}
	return slices.IndexFunc(list, func(element any) bool { return e.same(step, element) })
}

// same reports whether element is the one that step names. Keys that it lacks are those
// that the API server defaults. Once the evaluation has cost too much, every element is:
// each search then ends at once, and the result is dropped.
func (e *evaluator) same(step *fieldpath.PathElement, element any) bool {
	if e.spend(1) != nil {
		return true
	}
	switch {
	case step.Value != nil:
		return value.Equals(*step.Value, value.NewValueInterface(element))
	case step.Key == nil:
		return false
	}
	m, ok := element.(map[string]any)
	if !ok {
		return false
	}
	matched := false
	for _, k := range *step.Key {
		v, there := m[k.Name]
		if there && !value.Equals(k.Value, value.NewValueInterface(v)) {
			return false
		}
		matched = matched || there
	}
	return matched
}
