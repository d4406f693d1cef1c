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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// pageSize is the page size of lists, if the API server does not stream them.
const pageSize = 500

// listRetry is the back-off of a failing watch, also of a kind that is not served yet:
// half a second to five seconds.
var listRetry = wait.Backoff{Duration: time.Second / 2, Factor: 2, Steps: 5, Cap: 5 * time.Second, Jitter: 0.5}

// handler is called for each change of an object: old is nil when it is new, current is
// nil when it is gone.
type handler func(old, current reconcile.Object)

// kept holds all objects of one kind.
type kept interface {
	// run fills it and keeps it up to date until ctx ends.
	run(ctx context.Context)
	// isPacked reports whether objects are unpacked for every read.
	isPacked() bool
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
type item[E any] struct {
	name string
	kept E
}

// store keeps all objects of one kind. It is the store of a reflector, which reads them
// streamed or in pages.
type store[E any] struct {
	form[E]
	source
	kind      schema.GroupVersionKind
	limits    Kind
	packed    bool
	handlers  []handler
	synced    chan struct{}
	completed sync.Once

	mu sync.RWMutex
	// spaces holds the objects of a namespace, sorted by name; the empty namespace holds
	// the cluster-scoped ones.
	spaces map[string][]item[E]
}

func newStore[E any](kind schema.GroupVersionKind, limits Kind, s source, f form[E], packed bool) *store[E] {
	if limits.Transform == nil {
		limits.Transform = Trim
	}
	return &store[E]{form: f, source: s, kind: kind, limits: limits, packed: packed, synced: make(chan struct{}), spaces: map[string][]item[E]{}}
}

func (c *store[E]) isPacked() bool          { return c.packed }
func (c *store[E]) settings() Kind          { return c.limits }
func (c *store[E]) filled() <-chan struct{} { return c.synced }
func (c *store[E]) addHandler(h handler)    { c.handlers = append(c.handlers, h) }

func (c *store[E]) run(ctx context.Context) {
	log := logr.FromContextOrDiscard(ctx)
	r := toolscache.NewReflectorWithOptions(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.list(ctx, c.limits.query(o))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			return c.watch(ctx, c.limits.query(o))
		},
	}, c.limits.Example, c, toolscache.ReflectorOptions{
		Name: c.kind.Kind, Logger: (*klog.Logger)(&log), TypeDescription: c.kind.String(), Backoff: &listRetry,
	})
	r.WatchListPageSize = pageSize
	r.RunWithContext(ctx)
}

// Transformer implements toolscache.TransformingStore: streamed objects are trimmed
// before they are buffered.
func (c *store[E]) Transformer() toolscache.TransformFunc { return c.limits.Transform }

// Add implements toolscache.ReflectorStore.
func (c *store[E]) Add(obj any) error { return c.upsert(obj) }

// Update implements toolscache.ReflectorStore.
func (c *store[E]) Update(obj any) error { return c.upsert(obj) }

// Resync implements toolscache.ReflectorStore; there is none.
func (c *store[E]) Resync() error { return nil }

// Delete implements toolscache.ReflectorStore.
func (c *store[E]) Delete(obj any) error {
	o, ok := obj.(reconcile.Object)
	if !ok {
		return fmt.Errorf("forgetting %T: not an object", obj)
	}
	c.mu.Lock()
	before, found := c.drop(o.GetNamespace(), o.GetName())
	c.mu.Unlock()
	if found {
		c.notify(c.whole(o.GetNamespace(), before), nil)
	}
	return nil
}

// Replace implements toolscache.ReflectorStore.
func (c *store[E]) Replace(list []any, _ string) error {
	present := make(map[reconcile.Key]bool, len(list))
	for _, obj := range list {
		if o, ok := obj.(reconcile.Object); ok {
			present[reconcile.Key{Namespace: o.GetNamespace(), Name: o.GetName()}] = true
		}
		if err := c.upsert(obj); err != nil {
			return err
		}
	}
	type gone struct {
		namespace string
		item      item[E]
	}
	var all []gone
	c.mu.Lock()
	for namespace, items := range c.spaces {
		for _, i := range items {
			if !present[reconcile.Key{Namespace: namespace, Name: i.name}] {
				all = append(all, gone{namespace, i})
			}
		}
	}
	for _, g := range all {
		c.drop(g.namespace, g.item.name)
	}
	c.mu.Unlock()
	for _, g := range all {
		c.notify(c.whole(g.namespace, g.item), nil)
	}
	c.completed.Do(func() { close(c.synced) })
	return nil
}

// upsert stores an object and notifies the handlers, unless this version is already
// stored.
func (c *store[E]) upsert(obj any) error {
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
		if c.same(before.kept, next.kept) {
			next.kept = before.kept // shared too, after a list without news
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
	if c.packed {
		o.GetObjectKind().SetGroupVersionKind(c.kind)
		o.SetNamespace(namespace)
		o.SetName(i.name)
	}
	return o
}

// drop removes an object; the caller holds the lock.
func (c *store[E]) drop(namespace, name string) (item[E], bool) {
	items := c.spaces[namespace]
	at, found := indexOf(items, name)
	if !found {
		return item[E]{}, false
	}
	before := items[at]
	if len(items) == 1 {
		delete(c.spaces, namespace)
	} else {
		c.spaces[namespace] = slices.Delete(items, at, at+1)
	}
	return before, true
}

func indexOf[E any](items []item[E], name string) (int, bool) {
	return slices.BinarySearchFunc(items, name, func(i item[E], name string) int { return strings.Compare(i.name, name) })
}

func (c *store[E]) notify(old, current reconcile.Object) {
	for _, h := range c.handlers {
		h(old, current)
	}
}

func (c *store[E]) get(key reconcile.Key) reconcile.Object {
	c.mu.RLock()
	items := c.spaces[key.Namespace]
	at, found := indexOf(items, key.Name)
	var i item[E]
	if found {
		i = items[at]
	}
	c.mu.RUnlock()
	if !found {
		return nil
	}
	return c.whole(key.Namespace, i)
}

func (c *store[E]) each(namespace string, f func(reconcile.Object) bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	in := func(namespace string, items []item[E]) bool {
		for _, i := range items {
			if !f(c.whole(namespace, i)) {
				return false
			}
		}
		return true
	}
	if namespace != "" {
		in(namespace, c.spaces[namespace])
		return
	}
	for namespace, items := range c.spaces {
		if !in(namespace, items) {
			return
		}
	}
}

// notFound returns the error of a read of a missing object.
func notFound(kind schema.GroupVersionKind, name string) error {
	return apierrors.NewNotFound(reconcile.ResourceOf(kind).GroupResource(), name)
}
