// SPDX-License-Identifier: Apache-2.0

package conversion

import "fmt"

// fields reads and moves fields of an object, and keeps the first error, so that a
// conversion does not have to check every field. After an error its functions continue with
// what they have; the result is then discarded.
type fields struct{ err error }

// fail keeps an error unless there is one already.
func (f *fields) fail(format string, arguments ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, arguments...)
	}
}

// get returns a field of a kind, or its zero value if the field is absent or null.
func get[T any](f *fields, parent map[string]any, field, kind string) T {
	value, ok := parent[field].(T)
	if !ok && parent[field] != nil {
		f.fail("field %s is %T, not %s", field, parent[field], kind)
	}
	return value
}

// object returns a field that holds an object, or nil if it is absent or null.
func (f *fields) object(parent map[string]any, field string) map[string]any {
	return get[map[string]any](f, parent, field, "an object")
}

// ensured is like object, but creates the field if it is absent.
func (f *fields) ensured(parent map[string]any, field string) map[string]any {
	value := f.object(parent, field)
	if value == nil {
		value = map[string]any{}
		parent[field] = value
	}
	return value
}

// text returns a field that holds text, or "" if it is absent or null.
func (f *fields) text(parent map[string]any, field string) string {
	return get[string](f, parent, field, "a string")
}

// take is like text, but removes the field.
func (f *fields) take(parent map[string]any, field string) string {
	value := f.text(parent, field)
	delete(parent, field)
	return value
}

// each calls change with every entry of a list of objects and replaces the entry with the
// result. A list that is absent or null has no entries.
func (f *fields) each(parent map[string]any, field string, change func(map[string]any) map[string]any) {
	list := get[[]any](f, parent, field, "a list")
	if f.err != nil {
		return
	}
	for i := range list {
		entry, ok := list[i].(map[string]any)
		if !ok {
			f.fail("entry %d of field %s is %T, not an object", i, field, list[i])
			return
		}
		list[i] = change(entry)
		if f.err != nil {
			f.err = fmt.Errorf("entry %d of field %s: %w", i, field, f.err)
			return
		}
	}
}

// put sets a field unless the value is empty.
func put[T string | map[string]any](parent map[string]any, field string, value T) {
	if len(value) > 0 {
		parent[field] = value
	}
}

// rename gives a field another name. An existing field with that name does not belong to
// this version and is dropped.
func rename(parent map[string]any, from, to string) {
	value, found := parent[from]
	delete(parent, from)
	delete(parent, to)
	if found {
		parent[to] = value
	}
}
