// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"fmt"
)

// fields reads and moves fields of an object, and keeps the first error, so that
// a conversion is written without asking after every field. After an error its
// functions go on with what they have; the result is not used then.
type fields struct{ err error }

// fail keeps an error unless there is one already.
func (f *fields) fail(format string, arguments ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, arguments...)
	}
}

// object returns a field that holds an object; nil if it is absent or null.
func (f *fields) object(parent map[string]any, field string) map[string]any {
	value, ok := parent[field].(map[string]any)
	if !ok && parent[field] != nil {
		f.fail("field %s is %T, not an object", field, parent[field])
	}
	return value
}

// ensured is object, and makes the field if it is absent.
func (f *fields) ensured(parent map[string]any, field string) map[string]any {
	value := f.object(parent, field)
	if value == nil {
		value = map[string]any{}
		parent[field] = value
	}
	return value
}

// text returns a field that holds text; empty if it is absent or null.
func (f *fields) text(parent map[string]any, field string) string {
	value, ok := parent[field].(string)
	if !ok && parent[field] != nil {
		f.fail("field %s is %T, not a string", field, parent[field])
	}
	return value
}

// take is text, and removes the field.
func (f *fields) take(parent map[string]any, field string) string {
	value := f.text(parent, field)
	delete(parent, field)
	return value
}

// each calls a function with every entry of a list of objects and puts the result
// in its place. An absent list, or one that is null, has no entries.
func (f *fields) each(parent map[string]any, field string, change func(map[string]any) map[string]any) {
	list, ok := parent[field].([]any)
	if !ok && parent[field] != nil {
		f.fail("field %s is %T, not a list", field, parent[field])
	}
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

// put sets a field unless the text is empty.
func put(parent map[string]any, field, value string) {
	if value != "" {
		parent[field] = value
	}
}

// putObject sets a field unless the object has no fields.
func putObject(parent map[string]any, field string, value map[string]any) {
	if len(value) > 0 {
		parent[field] = value
	}
}

// rename gives a field another name. A field that has that name already is not of
// this version and goes.
func rename(parent map[string]any, from, to string) {
	value, found := parent[from]
	delete(parent, from)
	delete(parent, to)
	if found {
		parent[to] = value
	}
}
