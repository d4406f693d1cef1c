// SPDX-License-Identifier: Apache-2.0

package ignore

import (
	"errors"

	"github.com/kubectl-ocm/kubectl-ocm/internal/path"
)

// tree holds the paths of an object that expressions select.
type tree struct {
	// whole is set for a selected path; what lies below it is not listed.
	whole bool
	// names and places are the steps to selected paths below.
	names  map[string]*tree
	places map[int]*tree
}

// kept are the fields that cannot be ignored: they identify the object, or the agent
// maintains them itself.
var kept = map[string]bool{
	"apiVersion": true, "kind": true, "metadata": true,
	"metadata.name": true, "metadata.namespace": true, "metadata.ownerReferences": true,
}

// selected evaluates expressions over an object and returns the paths that they select.
func (e *evaluator) selected(expressions []expression, object map[string]any) (*tree, error) {
	t := &tree{}
	for _, x := range expressions {
		err := x.path.Each(object, e.spend, func(m path.Match) error {
			if !m.Lies {
				return errors.New("does not name a field of the object; write a path, and put comparisons into select(...)")
			}
			return e.add(t, m.Place(), object)
		})
		if err != nil {
			return nil, x.fault(err.Error())
		}
	}
	return t, nil
}

// add adds a path to the tree if it exists in the object.
func (e *evaluator) add(t *tree, keys []any, object any) error {
	if err := e.spend(1 + len(keys)); err != nil {
		return err
	}
	if !there(object, keys) {
		return nil
	}
	if err := ignorable(keys); err != nil {
		return err
	}
	for _, key := range keys {
		if t.whole {
			return nil
		}
		t = t.child(key)
	}
	*t = tree{whole: true}
	return nil
}

func ignorable(keys []any) error {
	if len(keys) == 0 {
		return errors.New("names the whole object; name a field")
	}
	name, _ := keys[0].(string)
	if len(keys) > 1 && name == "metadata" {
		second, _ := keys[1].(string)
		name += "." + second
	}
	if kept[name] {
		return errors.New("names " + name + ", which is always applied; name another field")
	}
	return nil
}

func there(value any, keys []any) bool {
	for _, key := range keys {
		switch v := value.(type) {
		case map[string]any:
			name, ok := key.(string)
			child, has := v[name]
			if !ok || !has {
				return false
			}
			value = child
		case []any:
			at, ok := key.(int)
			if !ok || at < 0 || at >= len(v) {
				return false
			}
			value = v[at]
		default:
			return false
		}
	}
	return true
}

// child returns the subtree one step below, creating it if necessary.
func (t *tree) child(key any) *tree {
	if name, ok := key.(string); ok {
		return subtree(&t.names, name)
	}
	return subtree(&t.places, key.(int))
}

func subtree[K comparable](of *map[K]*tree, key K) *tree {
	if *of == nil {
		*of = map[K]*tree{}
	}
	if (*of)[key] == nil {
		(*of)[key] = &tree{}
	}
	return (*of)[key]
}

// covers reports whether all of a value is selected.
func (t *tree) covers(value any) bool {
	if t == nil || t.whole {
		return t != nil
	}
	switch v := value.(type) {
	case map[string]any:
		for name, child := range v {
			if !t.names[name].covers(child) {
				return false
			}
		}
		return len(v) > 0
	case []any:
		for i, child := range v {
			if !t.places[i].covers(child) {
				return false
			}
		}
		return len(v) > 0
	}
	return false
}
