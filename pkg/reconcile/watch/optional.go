// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

var definitionsResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Optional is a Collection of custom resources whose CustomResourceDefinition others may
// create, delete and create again. Without the definition it is empty and makes no requests
// for objects; it watches the definition by name. Its methods are safe for concurrent use.
type Optional[T any] struct {
	o Options[T]
	// definition holds the UID of the definition, empty while it is not served.
	definition *Collection[types.UID]
	onChange   []func()
	// wake holds one signal: that the definition appeared, changed or went away.
	wake chan struct{}

	mu      sync.Mutex
	current *Collection[T]
}

// NewOptional returns an Optional of the resource in o; List reports it as unknown before
// Run.
func NewOptional[T any](o Options[T]) *Optional[T] {
	p := &Optional[T]{o: o, wake: make(chan struct{}, 1)}
	p.definition = New(Options[types.UID]{
		Client: o.Client, Resource: definitionsResource, Log: o.Log,
		FieldSelector: "metadata.name=" + o.Resource.GroupResource().String(),
		Keep: func(u *unstructured.Unstructured) (types.UID, bool) {
			if !serves(u, o.Resource.Version) {
				return "", true
			}
			return u.GetUID(), true
		},
		Same: func(before, now types.UID) bool { return before == now },
	})
	p.definition.OnChange(func(reconcile.Key) { p.nudge() })
	p.definition.OnOutcome(func(error) { p.nudge() })
	p.definition.OnSynced(p.nudge)
	return p
}

// serves reports whether the API server serves that version of the definition.
func serves(definition *unstructured.Unstructured, version string) bool {
	if definition.GetDeletionTimestamp() != nil {
		return false
	}
	return holds(definition, "status", "conditions", func(c map[string]any) bool { return c["type"] == "Established" && c["status"] == "True" }) &&
		holds(definition, "spec", "versions", func(v map[string]any) bool { return v["name"] == version && v["served"] == true })
}

// holds reports whether a list of the object has an item that matches like.
func holds(u *unstructured.Unstructured, part, list string, like func(map[string]any) bool) bool {
	items, _, _ := unstructured.NestedSlice(u.Object, part, list)
	for _, item := range items {
		if m, ok := item.(map[string]any); ok && like(m) {
			return true
		}
	}
	return false
}

// OnChange registers a function that is called when the result of List may have changed. It
// must be called before Run, and the function must not block.
func (p *Optional[T]) OnChange(f func()) { p.onChange = append(p.onChange, f) }

// List returns all objects, in no particular order; known is false until the objects have
// been listed. If reading the definition is forbidden, the list is known and empty.
func (p *Optional[T]) List() (items []T, known bool) {
	p.mu.Lock()
	current := p.current
	p.mu.Unlock()
	if current == nil {
		return nil, closed(p.definition.Synced()) && p.served() == "" || apierrors.IsForbidden(p.definition.Err())
	}
	return current.List(), closed(current.Synced())
}

// Err returns why the last list or watch, of the objects or their definition, failed; nil if it did
// not.
func (p *Optional[T]) Err() error {
	p.mu.Lock()
	current := p.current
	p.mu.Unlock()
	if current != nil {
		return current.Err()
	}
	return p.definition.Err()
}

// Run keeps the collection current until ctx ends.
func (p *Optional[T]) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { _ = p.definition.Run(ctx) })
	for ctx.Err() == nil {
		p.follow(ctx)
	}
	return nil
}

// follow holds the objects from when the definition is served until it is gone. A
// definition that was deleted and created again is another one, and so are its objects; the
// watch of the old ones would be backing off.
func (p *Optional[T]) follow(ctx context.Context) {
	var which types.UID
	if !p.await(ctx, func() bool { which = p.served(); return which != "" }) {
		return
	}
	inner, cancel := context.WithCancel(ctx)
	objects := New(p.o)
	objects.OnChange(func(reconcile.Key) { p.notify() })
	// A collection without objects reports no change when its first list is complete.
	objects.OnSynced(p.notify)
	var running sync.WaitGroup
	running.Go(func() { _ = objects.Run(inner) })
	p.setCurrent(objects)
	p.await(ctx, func() bool { return p.served() != which })
	cancel()
	running.Wait()
	p.setCurrent(nil)
}

// await waits until like returns true; it returns false if ctx ends first.
func (p *Optional[T]) await(ctx context.Context, like func() bool) bool {
	for !like() {
		select {
		case <-p.wake:
			p.notify()
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// served returns the UID of the definition while it is served, and "" otherwise.
func (p *Optional[T]) served() types.UID {
	served, _ := p.definition.Get(reconcile.Key{Name: p.o.Resource.GroupResource().String()})
	return served
}

func (p *Optional[T]) setCurrent(current *Collection[T]) {
	p.mu.Lock()
	p.current = current
	p.mu.Unlock()
	p.notify()
}

func (p *Optional[T]) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *Optional[T]) notify() {
	for _, f := range p.onChange {
		f()
	}
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
