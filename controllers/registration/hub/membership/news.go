// SPDX-License-Identifier: Apache-2.0

package membership

// news is what one event changed.
type news struct {
	objects, presence, namespaces []string
	members, bindings             [][2]string
}

// change changes the index, then tells the listeners, who may read it.
func (x *Index) change(f func(*news)) {
	n := &news{}
	x.mu.Lock()
	f(n)
	x.mu.Unlock()
	for _, l := range x.listeners {
		each(n.objects, l.Object)
		each(n.presence, l.Presence)
		each(n.namespaces, l.Namespaces)
		pairs(n.members, l.Member)
		pairs(n.bindings, l.Binding)
	}
}

func each(list []string, f func(string)) {
	if f == nil {
		return
	}
	for _, name := range list {
		f(name)
	}
}

func pairs(list [][2]string, f func(a, b string)) {
	if f == nil {
		return
	}
	for _, p := range list {
		f(p[0], p[1])
	}
}
