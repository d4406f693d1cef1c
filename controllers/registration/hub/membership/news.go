// SPDX-License-Identifier: Apache-2.0

package membership

// news is the set of changes made by one event.
type news struct {
	objects, presence, namespaces []string
	members, bindings             [][2]string
}

// update updates the index, then calls the listeners, which may read it.
func (x *Index) update(f func(*news)) {
	n := &news{}
	x.mu.Lock()
	f(n)
	x.mu.Unlock()
	for _, l := range x.listeners {
		each(n.objects, l.Object != nil, l.Object)
		each(n.presence, l.Presence != nil, l.Presence)
		each(n.namespaces, l.Namespaces != nil, l.Namespaces)
		each(n.members, l.Member != nil, func(p [2]string) { l.Member(p[0], p[1]) })
		each(n.bindings, l.Binding != nil, func(p [2]string) { l.Binding(p[0], p[1]) })
	}
}

// each calls f with each entry of a list, if that is wanted.
func each[T any](list []T, wanted bool, f func(T)) {
	if wanted {
		for _, entry := range list {
			f(entry)
		}
	}
}
