// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/internal/packed"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// kept is an object in packed form, and what it is found by.
type kept struct {
	owner reconcile.Key
	data  string
}

// whole is what is packed of an object, with its name and owners outside of metadata.
type whole[T any] struct {
	Object                T
	APIVersion, Kind      string
	Namespace, ObjectName string
	Owners                []metav1.OwnerReference
}

// object is a pointer to a Go type of the API.
type object[T any] interface {
	*T
	reconcile.Object
}

// group is a collection of objects that are found by what they belong to. Its methods are
// safe for concurrent use.
type group[T any, P object[T]] struct {
	*watch.Collection[kept]
	words *packed.Dictionary

	mu      sync.Mutex
	owner   map[reconcile.Key]reconcile.Key
	members map[reconcile.Key][]reconcile.Key
}

// grouping says what a group holds, and what its objects belong to.
type grouping[P any] struct {
	watch.Options[kept]
	// of returns what an object belongs to.
	of func(P) reconcile.Key
	// slim, if set, drops what is not needed; false leaves the object out.
	slim func(P) bool
	// changed, if set, is called with what an added, changed or removed object belongs to.
	changed func(reconcile.Key)
}

// newGroup returns a group that keeps whole objects except for their managed fields.
func newGroup[T any, P object[T]](words *packed.Dictionary, o grouping[P]) *group[T, P] {
	g := &group[T, P]{words: words, owner: map[reconcile.Key]reconcile.Key{}, members: map[reconcile.Key][]reconcile.Key{}}
	o.Keep = func(u *unstructured.Unstructured) (kept, bool) {
		u.SetManagedFields(nil)
		read, err := typed.FromUnstructured[T](u)
		if err != nil {
			return kept{}, false
		}
		p := P(read)
		if o.slim != nil && !o.slim(p) {
			return kept{}, false
		}
		return kept{owner: cloned(o.of(p)), data: g.pack(read)}, true
	}
	o.Same = func(before, now kept) bool { return before == now }
	g.Collection = watch.New(o.Options)
	g.OnChange(func(key reconcile.Key) {
		for _, owner := range g.regroup(key) {
			if o.changed != nil {
				o.changed(owner)
			}
		}
	})
	return g
}

// cloned shares no memory with the object that the key was read from.
func cloned(k reconcile.Key) reconcile.Key {
	return reconcile.Key{Namespace: strings.Clone(k.Namespace), Name: strings.Clone(k.Name)}
}

func (g *group[T, P]) pack(read *T) string {
	p := P(read)
	annotations := p.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	kind := p.GetObjectKind().GroupVersionKind()
	return g.words.Pack(&whole[T]{
		Object: *read, APIVersion: kind.GroupVersion().String(), Kind: kind.Kind,
		Namespace: p.GetNamespace(), ObjectName: p.GetName(), Owners: p.GetOwnerReferences(),
	})
}

func (g *group[T, P]) unpack(k kept) P {
	var w whole[T]
	g.words.Unpack(k.data, &w)
	p := P(&w.Object)
	p.SetNamespace(w.Namespace)
	p.SetName(w.ObjectName)
	p.SetOwnerReferences(w.Owners)
	p.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(w.APIVersion, w.Kind))
	return p
}

// get returns an object, or nil if there is none.
func (g *group[T, P]) get(key reconcile.Key) P {
	if k, ok := g.Get(key); ok {
		return g.unpack(k)
	}
	return nil
}

// regroup indexes an object, and returns what it belongs to now and belonged to before.
func (g *group[T, P]) regroup(key reconcile.Key) []reconcile.Key {
	object, there := g.Get(key)
	g.mu.Lock()
	defer g.mu.Unlock()
	before, had := g.owner[key]
	if had && there && before == object.owner {
		return []reconcile.Key{before}
	}
	var out []reconcile.Key
	if had {
		out = append(out, before)
		delete(g.owner, key)
		left := slices.DeleteFunc(g.members[before], func(m reconcile.Key) bool { return m == key })
		if g.members[before] = left; len(left) == 0 {
			delete(g.members, before)
		}
	}
	if there {
		g.owner[key] = object.owner
		g.members[object.owner] = append(g.members[object.owner], key)
		out = append(out, object.owner)
	}
	return out
}

// keys returns those of the objects that belong to owner, in no particular order.
func (g *group[T, P]) keys(owner reconcile.Key) []reconcile.Key {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.members[owner])
}

// all returns the keys of all objects, in no particular order.
func (g *group[T, P]) all() []reconcile.Key {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Keys(g.owner))
}

// list returns the objects that belong to owner, in no particular order.
func (g *group[T, P]) list(owner reconcile.Key) []*T {
	var out []*T
	for _, key := range g.keys(owner) {
		if o := g.get(key); o != nil {
			out = append(out, o)
		}
	}
	return out
}

// each calls f with every object, in no particular order, until it returns false.
func (g *group[T, P]) each(f func(P) bool) {
	for _, k := range g.List() {
		if !f(g.unpack(k)) {
			return
		}
	}
}
