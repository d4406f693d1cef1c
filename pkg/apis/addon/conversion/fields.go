// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"fmt"
)

// object returns a field that holds an object; nil if it is absent or null.
func object(parent map[string]any, field string) (map[string]any, error) {
	switch value := parent[field].(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return value, nil
	default:
		return nil, fmt.Errorf("field %s is %T, not an object", field, value)
	}
}

// text returns a field that holds text; empty if it is absent or null.
func text(parent map[string]any, field string) (string, error) {
	switch value := parent[field].(type) {
	case nil:
		return "", nil
	case string:
		return value, nil
	default:
		return "", fmt.Errorf("field %s is %T, not a string", field, value)
	}
}

// take is text, and removes the field.
func take(parent map[string]any, field string) (string, error) {
	value, err := text(parent, field)
	delete(parent, field)
	return value, err
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

// each calls a function with every entry of a list of objects and puts the result
// in its place. An absent list, or one that is null, has no entries.
func each(parent map[string]any, field string, change func(map[string]any) (map[string]any, error)) error {
	var list []any
	switch value := parent[field].(type) {
	case nil:
		return nil
	case []any:
		list = value
	default:
		return fmt.Errorf("field %s is %T, not a list", field, value)
	}
	for i := range list {
		entry, ok := list[i].(map[string]any)
		if !ok {
			return fmt.Errorf("entry %d of field %s is %T, not an object", i, field, list[i])
		}
		changed, err := change(entry)
		if err != nil {
			return fmt.Errorf("entry %d of field %s: %w", i, field, err)
		}
		list[i] = changed
	}
	return nil
}
