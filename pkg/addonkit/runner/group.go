// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// group is a collection of objects that belong to instances, by instance. Its methods
// are safe for concurrent use.
type group[T reconcile.Object] struct {
	*watch.Collection[T]
	of func(T) reconcile.Key

	mu      sync.Mutex
	owner   map[reconcile.Key]reconcile.Key
	members map[reconcile.Key]map[reconcile.Key]bool
}

// newGroup keeps whole objects but for who wrote which field. changed is told of the
// instances whose objects came, changed or went.
func newGroup[T reconcile.Object](o watch.Options[T], of func(T) reconcile.Key, read func(*unstructured.Unstructured) (T, error), changed func(reconcile.Key)) *group[T] {
	o.Keep = func(u *unstructured.Unstructured) (T, bool) {
		u.SetManagedFields(nil)
		out, err := read(u)
		return out, err == nil
	}
	g := &group[T]{Collection: watch.New(o), of: of, owner: map[reconcile.Key]reconcile.Key{}, members: map[reconcile.Key]map[reconcile.Key]bool{}}
	g.OnChange(func(key reconcile.Key) {
		for _, instance := range g.note(key) {
			changed(instance)
		}
	})
	return g
}

// note takes an object into its group, and returns the instances that it concerns.
func (g *group[T]) note(key reconcile.Key) []reconcile.Key {
	object, there := g.Get(key)
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []reconcile.Key
	if before, had := g.owner[key]; had {
		out = append(out, before)
		delete(g.owner, key)
		delete(g.members[before], key)
		if len(g.members[before]) == 0 {
			delete(g.members, before)
		}
	}
	if !there {
		return out
	}
	now := g.of(object)
	g.owner[key] = now
	if g.members[now] == nil {
		g.members[now] = map[reconcile.Key]bool{}
	}
	g.members[now][key] = true
	if len(out) == 0 || out[0] != now {
		out = append(out, now)
	}
	return out
}

// list returns the objects of an instance, in no order. They must not be changed.
func (g *group[T]) list(instance reconcile.Key) []T {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []T
	for key := range g.members[instance] {
		if o, ok := g.Get(key); ok {
			out = append(out, o)
		}
	}
	return out
}

// pointer reads an object as a Go type.
func pointer[T any](u *unstructured.Unstructured) (*T, error) { return typed.FromUnstructured[T](u) }
