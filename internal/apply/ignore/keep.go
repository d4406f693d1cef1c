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
func (e *evaluator) keepMap(want, have map[string]any, t *tree, ours *fieldpath.Set) error {
	for _, name := range slices.Sorted(maps.Keys(t.names)) {
		sub, step := t.names[name], fieldpath.FieldNameElement(name)
		live, lives := have[name]
		below := ours.WithPrefix(step)
		_, there := want[name]
		switch {
		case !lives, !ours.Members.Has(step) && below.Empty():
			continue
		case sub.whole:
			if !there {
				part, err := e.part(live, below)
				if err != nil {
					return err
				}
				want[name] = part
			}
			continue
		}
		kept, err := e.keepBelow(want[name], live, sub, below)
		if err != nil {
			return err
		}
		if kept != nil {
			want[name] = kept
		}
	}
	return nil
}

// keepBelow continues below one field and returns its new value; nil if there is nothing
// to keep and nothing was declared.
func (e *evaluator) keepBelow(declared, live any, t *tree, ours *fieldpath.Set) (any, error) {
	switch have := live.(type) {
	case map[string]any:
		into, ok := declared.(map[string]any)
		if !ok && declared != nil {
			return declared, nil
		}
		if !ok {
			into = map[string]any{}
		}
		if err := e.keepMap(into, have, t, ours); err != nil || (!ok && len(into) == 0) {
			return nil, err
		}
		return into, nil
	case []any:
		into, ok := declared.([]any)
		if !ok && declared != nil {
			return declared, nil
		}
		into, err := e.keepList(into, have, t, ours)
		if err != nil || (!ok && len(into) == 0) {
			return nil, err
		}
		return into, nil
	}
	return declared, nil
}

// keepList keeps elements and fields of elements. Fields of an element that the work no
// longer declares are not kept.
func (e *evaluator) keepList(want, have []any, t *tree, ours *fieldpath.Set) ([]any, error) {
	for _, i := range slices.Sorted(maps.Keys(t.places)) {
		same, err := e.elementOf(ours, have[i])
		if err != nil {
			return nil, err
		}
		if same == nil {
			continue
		}
		at, err := e.position(want, same)
		if err != nil {
			return nil, err
		}
		sub, below := t.places[i], ours.WithPrefix(*same)
		switch {
		case at < 0 && sub.whole:
			part, err := e.part(have[i], below)
			if err != nil {
				return nil, err
			}
			if want, err = e.insert(want, withKeys(part, same), have[i+1:], ours); err != nil {
				return nil, err
			}
		case at >= 0 && !sub.whole:
			into, ok1 := want[at].(map[string]any)
			from, ok2 := have[i].(map[string]any)
			if ok1 && ok2 {
				if err := e.keepMap(into, from, sub, below); err != nil {
					return nil, err
				}
			}
		}
	}
	return want, nil
}

// insert puts an element before the first element that follows it on the live object,
// because a different order would be a change.
func (e *evaluator) insert(list []any, element any, following []any, ours *fieldpath.Set) ([]any, error) {
	for _, next := range following {
		same, err := e.elementOf(ours, next)
		if err != nil {
			return nil, err
		}
		at, err := e.position(list, same)
		if err != nil {
			return nil, err
		}
		if at >= 0 {
			return slices.Insert(list, at, element), nil
		}
	}
	return append(list, element), nil
}

// part returns what the set covers of a live value; a set without children covers all of
// it.
func (e *evaluator) part(live any, set *fieldpath.Set) (any, error) {
	if set.Empty() {
		return runtime.DeepCopyJSONValue(live), nil
	}
	switch v := live.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, child := range v {
			step := fieldpath.FieldNameElement(name)
			below := set.WithPrefix(step)
			if !set.Members.Has(step) && below.Empty() {
				continue
			}
			next, err := e.part(child, below)
			if err != nil {
				return nil, err
			}
			out[name] = next
		}
		return out, nil
	case []any:
		out := []any{}
		for _, child := range v {
			same, err := e.elementOf(set, child)
			if err != nil {
				return nil, err
			}
			if same == nil {
				continue
			}
			next, err := e.part(child, set.WithPrefix(*same))
			if err != nil {
				return nil, err
			}
			out = append(out, withKeys(next, same))
		}
		return out, nil
	}
	return runtime.DeepCopyJSONValue(live), nil
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
func (e *evaluator) elementOf(set *fieldpath.Set, element any) (*fieldpath.PathElement, error) {
	for step := range set.Members.All() {
		if ok, err := e.same(&step, element); ok || err != nil {
			return &step, err
		}
	}
	for step := range set.Children.All() {
		if ok, err := e.same(&step, element); ok || err != nil {
			return &step, err
		}
	}
	return nil, nil
}

// position returns the index in a list of the element that step names, or -1.
func (e *evaluator) position(list []any, step *fieldpath.PathElement) (int, error) {
	if step == nil {
		return -1, nil
	}
	for i := range list {
		if ok, err := e.same(step, list[i]); ok || err != nil {
			return i, err
		}
	}
	return -1, nil
}

// same reports whether element is the one that step names. Keys that it lacks are those
// that the API server defaults.
func (e *evaluator) same(step *fieldpath.PathElement, element any) (bool, error) {
	if err := e.spend(1); err != nil {
		return false, err
	}
	switch {
	case step.Value != nil:
		return value.Equals(*step.Value, value.NewValueInterface(element)), nil
	case step.Key == nil:
		return false, nil
	}
	m, ok := element.(map[string]any)
	if !ok {
		return false, nil
	}
	matched := false
	for _, k := range *step.Key {
		v, there := m[k.Name]
		if there && !value.Equals(k.Value, value.NewValueInterface(v)) {
			return false, nil
		}
		matched = matched || there
	}
	return matched, nil
}
