// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"slices"
	"strings"
	"unique"

	"k8s.io/apimachinery/pkg/labels"
)

// tags are the labels of a cluster, sorted by key: 16 bytes each, where a map takes ten times
// as much. Keys and values are interned: clusters share one copy, which keeps nothing alive
// that they were cut from.
type tags []tag

type tag struct{ key, value unique.Handle[string] }

var _ labels.Labels = tags(nil)

func tagsOf(m map[string]string) tags {
	out := make(tags, 0, len(m))
	for key, value := range m {
		out = append(out, tag{unique.Make(key), unique.Make(value)})
	}
	slices.SortFunc(out, func(a, b tag) int { return strings.Compare(a.key.Value(), b.key.Value()) })
	return out
}

// Lookup implements labels.Labels.
func (t tags) Lookup(key string) (value string, found bool) {
	at, found := slices.BinarySearchFunc(t, key, func(l tag, key string) int { return strings.Compare(l.key.Value(), key) })
	if !found {
		return "", false
	}
	return t[at].value.Value(), true
}

// Has implements labels.Labels.
func (t tags) Has(key string) bool {
	_, found := t.Lookup(key)
	return found
}

// Get implements labels.Labels.
func (t tags) Get(key string) string {
	value, _ := t.Lookup(key)
	return value
}
