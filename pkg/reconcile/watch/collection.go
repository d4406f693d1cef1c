// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// pageSize is the most objects that one page of a list holds.
const pageSize = 500

// Options configure a Collection.
type Options[T any] struct {
	// Client reads the collection.
	Client dynamic.Interface
	// Resource is what to list and watch.
	Resource schema.GroupVersionResource
	// Namespace limits the collection to one namespace; empty means all.
	Namespace string
	// FieldSelector and LabelSelector limit it further. A field selector on metadata.name
	// makes the cheapest watch for the API server.
	FieldSelector, LabelSelector string
	// Keep returns what is stored of an object, or false to leave it out. It must not
	// retain the object that it is given, or that memory is never freed.
	Keep func(*unstructured.Unstructured) (T, bool)
	// Same, if set, reports whether an update leaves what is stored unchanged; OnChange is
	// not called then. It is for objects that often change in parts that are not kept.
	Same func(before, now T) bool
	// Pulse, if set, is that of Client's API server: a watch that waits after a failure is
	// retried when it beats.
	Pulse *Pulse
	// Log receives what the reflector cannot read; the zero value is silent.
	Log logr.Logger
}

// Collection is a local copy of a collection of API objects. Its methods are
// safe for concurrent use.
type Collection[T any] struct{ *collection }

// collection is a Collection of items of any type. An agent has a Collection for each of some
// twenty types, and with one copy of this code for each it would need 0.3 MiB more memory.
type collection struct {
	requests
	keep     func(*unstructured.Unstructured) (any, bool)
	same     func(before, now any) bool
	pulse    *Pulse
	onChange []func(reconcile.Key)
	onSynced []func()

	mu     sync.RWMutex
	items  map[reconcile.Key]any
	newest string
	once   sync.Once
	synced chan struct{}
}

// New returns a Collection; it is empty until Run has synced it.
func New[T any](o Options[T]) *Collection[T] {
	c := &collection{
		requests: requests{
			client: o.Client, resource: o.Resource, namespace: o.Namespace, fields: o.FieldSelector, labels: o.LabelSelector,
			log: o.Log.WithValues("resource", o.Resource.Resource, "namespace", o.Namespace),
		},
		keep:  func(u *unstructured.Unstructured) (any, bool) { return o.Keep(u) },
		pulse: o.Pulse, items: map[reconcile.Key]any{}, synced: make(chan struct{}),
	}
	if o.Same != nil {
		c.same = func(before, now any) bool { return o.Same(before.(T), now.(T)) }
	}
	return &Collection[T]{c}
}

// Get returns what is stored of an object.
func (c *Collection[T]) Get(k reconcile.Key) (T, bool) {
	item, ok := c.get(k)
	kept, _ := item.(T)
	return kept, ok
}

// List returns everything that is stored, in no particular order.
func (c *Collection[T]) List() []T {
	c.mu.RLock()
	defer c.mu.RUnlock()
	out := make([]T, 0, len(c.items))
	for _, item := range c.items {
		kept, _ := item.(T)
		out = append(out, kept)
	}
	return out
}

// OnChange registers a function that is called, in the order of the events, with the key of
// each object that was added, changed or removed. It must be called before Run, and the
// function must not block.
func (c *collection) OnChange(f func(reconcile.Key)) { c.onChange = append(c.onChange, f) }

// OnSynced registers a function that is called when the first list is complete, even if it
// holds no object. It must be called before Run, and the function must not block.
func (c *collection) OnSynced(f func()) { c.onSynced = append(c.onSynced, f) }

func (c *collection) get(k reconcile.Key) (item any, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	item, ok = c.items[k]
	return item, ok
}

// Len returns how many objects are stored.
func (c *collection) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.items)
}

// Newest returns the highest resourceVersion that the API server has shown so far, or ""
// before the first list. Later versions may be lower if the server was restored from a
// backup.
func (c *collection) Newest() string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.newest
}

// Synced returns a channel that is closed when the first list is complete. Before that, the
// absence of an object means nothing.
func (c *collection) Synced() <-chan struct{} { return c.synced }

// WaitSynced waits for Synced. If ctx ends first, it returns the context's error joined
// with the reason why the list did not succeed.
func (c *collection) WaitSynced(ctx context.Context) error {
	select {
	case <-c.synced:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("listing %s: %w", c.resource.Resource, errors.Join(ctx.Err(), c.Err()))
	}
}

// Run keeps the collection current until ctx ends. It retries forever, with client-go's
// back-off of 0.8 to 60 seconds, which starts anew every two minutes; Err returns the reason. Only two requests are retried sooner
// when they are forbidden or not found: the first list, because a collection is often read
// right after the permission was granted, and the first request after the API server was
// away, because it answers before it has read its roles.
//
// After a failure, a beat of Options.Pulse ends the wait.
func (c *collection) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		one, cancel := context.WithCancel(ctx)
		forget := c.pulse.onBeat(func() {
			if c.isBackingOff() {
				cancel()
			}
		})
		r := cache.NewReflectorWithOptions(c.listWatch(), &unstructured.Unstructured{}, (*store)(c),
			cache.ReflectorOptions{Name: c.resource.Resource, TypeDescription: c.resource.String()})
		r.WatchListPageSize = pageSize
		r.RunWithContext(one)
		forget()
		cancel()
	}
	return nil
}

// store is the side of a Collection that the reflector writes to.
type store collection

var _ cache.TransformingStore = (*store)(nil)

// kept is what is stored of one object; keep is false for objects that are left out.
type kept struct {
	key  reconcile.Key
	item any
	keep bool
}

// Transformer makes the reflector hold only what will be stored of each object while it
// collects the first list, and only the key of objects that will not be stored.
func (s *store) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return s.reduce(obj) }
}

// reduce returns what is stored of an API object.
func (s *store) reduce(obj any) (*kept, error) {
	switch o := obj.(type) {
	case *kept:
		return o, nil
	case *unstructured.Unstructured:
		k := &kept{key: s.keyOf(o)}
		if item, ok := s.keep(o); ok {
			k.item, k.keep = item, true
		}
		return k, nil
	}
	return nil, fmt.Errorf("storing %T: not an object of the API", obj)
}

// Add stores an object that a watch delivered.
func (s *store) Add(obj any) error {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		s.recordVersion(u.GetResourceVersion())
	}
	k, err := s.reduce(obj)
	if err != nil {
		return err
	}
	s.store(k)
	return nil
}

// Update stores a changed object.
func (s *store) Update(obj any) error { return s.Add(obj) }

// Delete drops an object.
func (s *store) Delete(obj any) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("removing %T: not an object of the API", obj)
	}
	s.drop(s.keyOf(u))
	return nil
}

// Replace stores the result of a list and reports every object in it and every object that
// is no longer there.
func (s *store) Replace(list []any, version string) error {
	s.recordVersion(version)
	present := make(map[reconcile.Key]bool, len(list))
	for _, obj := range list {
		k, err := s.reduce(obj)
		if err != nil {
			return err
		}
		if k.keep {
			present[k.key] = true
		}
		s.store(k)
	}
	for _, k := range s.missing(present) {
		s.drop(k)
	}
	s.once.Do(func() {
		close(s.synced)
		for _, f := range s.onSynced {
			f()
		}
	})
	return nil
}

// Bookmark records how far an idle watch has come.
func (s *store) Bookmark(version string) error {
	s.recordVersion(version)
	return nil
}

var _ cache.ReflectorBookmarkStore = (*store)(nil)

// recordVersion records a resourceVersion that the API server has shown.
func (s *store) recordVersion(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if order, err := resourceversion.CompareResourceVersion(s.newest, version); s.newest == "" || (err == nil && order < 0) {
		s.newest = version
	}
}

// Resync is part of the reflector's interface and does nothing: loops requeue by time
// themselves.
func (s *store) Resync() error { return nil }

func (s *store) missing(present map[reconcile.Key]bool) []reconcile.Key {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []reconcile.Key
	for k := range s.items {
		if !present[k] {
			out = append(out, k)
		}
	}
	return out
}

func (s *store) store(k *kept) {
	if !k.keep {
		s.drop(k.key)
		return
	}
	s.mu.Lock()
	before, had := s.items[k.key]
	s.items[k.key] = k.item
	s.mu.Unlock()
	if !had || s.same == nil || !s.same(before, k.item) {
		s.notify(k.key)
	}
}

// drop removes the key and reports it if it was stored.
func (s *store) drop(k reconcile.Key) {
	s.mu.Lock()
	_, had := s.items[k]
	delete(s.items, k)
	s.mu.Unlock()
	if had {
		s.notify(k)
	}
}

func (s *store) notify(k reconcile.Key) {
	for _, f := range s.onChange {
		f(k)
	}
}

// keyOf returns the key of an object. All keys of one namespace share its string.
func (s *store) keyOf(u *unstructured.Unstructured) reconcile.Key {
	key := reconcile.KeyOf(u)
	if key.Namespace == s.namespace {
		key.Namespace = s.namespace
	}
	return key
}
