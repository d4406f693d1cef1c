// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// pageSize is the page size of lists, if the API server does not stream them.
const pageSize = 500

// ListRetry is the back-off of a failing reflector, also of a kind that is not served yet:
// half a second to five seconds.
var ListRetry = wait.Backoff{Duration: time.Second / 2, Factor: 2, Steps: 5, Cap: 5 * time.Second, Jitter: 0.5}

// handler is called for each change of an object: old is nil when it is new, current is
// nil when it is gone.
type handler func(old, current reconcile.Object)

// kept holds all objects of one kind.
type kept interface {
	// run fills it and keeps it up to date until ctx ends; it does not fail.
	run(ctx context.Context) error
	// settings returns what is kept, and whether objects are unpacked for every read.
	settings() Kind
	// filled is closed when all existing objects are stored and the handlers have been
	// called for them.
	filled() <-chan struct{}
	// addHandler adds a handler; it must be called before run.
	addHandler(handler)
	// get returns an object, or nil if there is none.
	get(reconcile.Key) reconcile.Object
	// each calls f with the objects of a namespace, or with all, until f returns false.
	// The store is locked meanwhile.
	each(namespace string, f func(reconcile.Object) bool)
}

// item is one object: its name, and what is kept of it. Packed metadata takes about 70
// bytes; the same metadata as a Go struct with its maps and strings takes more than a
// kilobyte, and a hub of 4,000 clusters has 20,000 objects. Unpacked objects share their
// strings with the packed one: clone a string before keeping it.
type item[E comparable] struct {
	name string
	kept E
}

// store keeps all objects of one kind. It is the store of a reflector, which reads them
// streamed or in pages.
type store[E comparable] struct {
	form[E]
	from      *toolscache.ListWatch
	kind      schema.GroupVersionKind
	limits    Kind
	handlers  []handler
	synced    chan struct{}
	completed sync.Once

	mu sync.RWMutex
	// spaces holds the objects of a namespace, sorted by name; the empty namespace holds
	// the cluster-scoped ones.
	spaces map[string][]item[E]
}

func newStore[E comparable](kind schema.GroupVersionKind, limits Kind, from *toolscache.ListWatch, f form[E]) *store[E] {
	if limits.Transform == nil {
		limits.Transform = Trim
	}
	return &store[E]{form: f, from: from, kind: kind, limits: limits, synced: make(chan struct{}), spaces: map[string][]item[E]{}}
}

func (c *store[E]) settings() Kind          { return c.limits }
func (c *store[E]) filled() <-chan struct{} { return c.synced }
func (c *store[E]) addHandler(h handler)    { c.handlers = append(c.handlers, h) }

func (c *store[E]) run(ctx context.Context) error {
	log := logr.FromContextOrDiscard(ctx)
	r := toolscache.NewReflectorWithOptions(watch.Guard(c.from), c.limits.Example, c, toolscache.ReflectorOptions{
		Name: c.kind.Kind, Logger: (*klog.Logger)(&log), TypeDescription: c.kind.String(), Backoff: &ListRetry,
	})
	r.WatchListPageSize = pageSize
	r.RunWithContext(ctx)
	return nil
}

// Transformer implements toolscache.TransformingStore: streamed objects are trimmed
// before they are buffered.
func (c *store[E]) Transformer() toolscache.TransformFunc { return c.limits.Transform }

// Update implements toolscache.ReflectorStore.
func (c *store[E]) Update(obj any) error { return c.Add(obj) }

// Resync implements toolscache.ReflectorStore; there is none.
func (c *store[E]) Resync() error { return nil }

// Delete implements toolscache.ReflectorStore.
func (c *store[E]) Delete(obj any) error {
	o, ok := obj.(reconcile.Object)
	if !ok {
		return fmt.Errorf("forgetting %T: not an object", obj)
	}
	c.remove(reconcile.KeyOf(o))
	return nil
}

// Replace implements toolscache.ReflectorStore.
func (c *store[E]) Replace(list []any, _ string) error {
	present := make(map[reconcile.Key]bool, len(list))
	for _, obj := range list {
		if o, ok := obj.(reconcile.Object); ok {
			present[reconcile.KeyOf(o)] = true
		}
		if err := c.Add(obj); err != nil {
			return err
		}
	}
	var gone []reconcile.Key
	c.mu.RLock()
	for namespace, items := range c.spaces {
		for _, i := range items {
			if key := (reconcile.Key{Namespace: namespace, Name: i.name}); !present[key] {
				gone = append(gone, key)
			}
		}
	}
	c.mu.RUnlock()
	c.remove(gone...)
	c.completed.Do(func() { close(c.synced) })
	return nil
}

// remove drops objects, if they are stored, and then notifies the handlers.
func (c *store[E]) remove(keys ...reconcile.Key) {
	dropped := make(map[reconcile.Key]item[E], len(keys))
	c.mu.Lock()
	for _, key := range keys {
		items := c.spaces[key.Namespace]
		at, found := indexOf(items, key.Name)
		if !found {
			continue
		}
		dropped[key] = items[at]
		if len(items) == 1 {
			delete(c.spaces, key.Namespace)
		} else {
			c.spaces[key.Namespace] = slices.Delete(items, at, at+1)
		}
	}
	c.mu.Unlock()
	for key, i := range dropped {
		c.notify(c.whole(key.Namespace, i), nil)
	}
}

// Add implements toolscache.ReflectorStore: it stores an object and notifies the handlers,
// unless this version is already stored.
func (c *store[E]) Add(obj any) error {
	trimmed, err := c.limits.Transform(obj)
	if err != nil {
		return fmt.Errorf("trimming a %s: %w", c.kind.Kind, err)
	}
	o, ok := trimmed.(reconcile.Object)
	if !ok || reflect.TypeOf(o) != reflect.TypeOf(c.limits.Example) {
		return fmt.Errorf("storing %T: not a %T", trimmed, c.limits.Example)
	}
	o.GetObjectKind().SetGroupVersionKind(c.kind)
	namespace, next := o.GetNamespace(), item[E]{name: strings.Clone(o.GetName()), kept: c.pack(o)}
	c.mu.Lock()
	items := c.spaces[namespace]
	at, found := indexOf(items, o.GetName())
	var before item[E]
	if found {
		before = items[at]
		next.name = before.name // the string that others share already
		if before.kept == next.kept {
			next.kept = before.kept // the one copy of what is equal, after a list without news
		}
		items[at] = next
	} else {
		key := namespace
		if items == nil {
			key = strings.Clone(key)
		}
		c.spaces[key] = slices.Insert(items, at, next)
	}
	c.mu.Unlock()
	current := c.whole(namespace, next)
	if !found {
		c.notify(nil, current)
		return nil
	}
	old := c.whole(namespace, before)
	if old.GetUID() != current.GetUID() || old.GetResourceVersion() != current.GetResourceVersion() {
		c.notify(old, current)
	}
	return nil
}

// whole restores the object.
func (c *store[E]) whole(namespace string, i item[E]) reconcile.Object {
	o := c.unpack(i.kept)
	if c.limits.Packed {
		o.GetObjectKind().SetGroupVersionKind(c.kind)
		o.SetNamespace(namespace)
		o.SetName(i.name)
	}
	return o
}

func indexOf[E comparable](items []item[E], name string) (int, bool) {
	return slices.BinarySearchFunc(items, name, func(i item[E], name string) int { return strings.Compare(i.name, name) })
}

func (c *store[E]) notify(old, current reconcile.Object) {
	for _, h := range c.handlers {
		h(old, current)
	}
}

func (c *store[E]) get(key reconcile.Key) reconcile.Object {
	c.mu.RLock()
	defer c.mu.RUnlock()
	items := c.spaces[key.Namespace]
	at, found := indexOf(items, key.Name)
	if !found {
		return nil
	}
	return c.whole(key.Namespace, items[at])
}

func (c *store[E]) each(namespace string, f func(reconcile.Object) bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	spaces := c.spaces
	if namespace != "" {
		spaces = map[string][]item[E]{namespace: spaces[namespace]}
	}
	for in, items := range spaces {
		for _, i := range items {
			if !f(c.whole(in, i)) {
				return
			}
		}
	}
}
