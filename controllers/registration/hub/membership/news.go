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
		callEach(n.objects, l.Object)
		callEach(n.presence, l.Presence)
		callEach(n.namespaces, l.Namespaces)
		callPairs(n.members, l.Member)
		callPairs(n.bindings, l.Binding)
	}
}

func callEach(list []string, f func(string)) {
	if f == nil {
		return
	}
	for _, name := range list {
		f(name)
	}
}

func callPairs(list [][2]string, f func(a, b string)) {
	if f == nil {
		return
	}
	for _, p := range list {
		f(p[0], p[1])
	}
}
