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
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// pageSize of lists, where the API server does not stream them.
const pageSize = 500

// listRetry paces the tries of a watch that fails, also because its kind is not
// served yet: from half a second to five.
var listRetry = wait.Backoff{Duration: time.Second / 2, Factor: 2, Steps: 5, Cap: 5 * time.Second, Jitter: 0.5}

// form is how objects of one kind are read and packed.
type form struct {
	kind schema.GroupVersionKind
	// example is an empty object, as the reflector expects it.
	example client.Object
	list    func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch   func(context.Context, metav1.ListOptions) (apiwatch.Interface, error)
	pack    func(client.Object) string
	unpack  func(data string) client.Object
}

// item is what is kept of one object: its name, and the rest in one string, of
// which only metadata is watched of about 70 bytes. As a Go struct with its maps
// and strings the same takes more than a kilobyte, and a hub of 4,000 clusters has
// 20,000 of them. What is unpacked shares its strings with data: who keeps one of
// them, clones it.
type item struct {
	name string
	data string
}

// store keeps all objects of one kind, packed. It is the store of a reflector,
// which reads them streamed or in pages.
type store struct {
	form
	by        cache.ByObject
	handlers  []func(old, current client.Object)
	synced    chan struct{}
	completed sync.Once

	mu sync.RWMutex
	// spaces holds the objects of a namespace, sorted by name; the empty
	// namespace those of the cluster.
	spaces map[string][]item
}

func newStore(f form, by cache.ByObject) *store {
	return &store{form: f, by: by, synced: make(chan struct{}), spaces: map[string][]item{}}
}

// run fills the store and keeps it until ctx ends.
func (c *store) run(ctx context.Context) {
	selected := func(o metav1.ListOptions) metav1.ListOptions {
		if c.by.Label != nil {
			o.LabelSelector = c.by.Label.String()
		}
		if c.by.Field != nil {
			o.FieldSelector = c.by.Field.String()
		}
		return o
	}
	log := logr.FromContextOrDiscard(ctx)
	r := toolscache.NewReflectorWithOptions(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.list(ctx, selected(o))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			return c.watch(ctx, selected(o))
		},
	}, c.example, c, toolscache.ReflectorOptions{
		Name: c.kind.Kind, Logger: (*klog.Logger)(&log), TypeDescription: c.kind.String(), Backoff: &listRetry,
	})
	r.WatchListPageSize = pageSize
	r.RunWithContext(ctx)
}

// Transformer implements toolscache.TransformingStore: what a stream brings is
// trimmed before it is put aside.
func (c *store) Transformer() toolscache.TransformFunc { return c.by.Transform }

// Add implements toolscache.ReflectorStore.
func (c *store) Add(obj any) error { return c.put(obj) }

// Update implements toolscache.ReflectorStore.
func (c *store) Update(obj any) error { return c.put(obj) }

// Resync implements toolscache.ReflectorStore; there is none.
func (c *store) Resync() error { return nil }

// Delete implements toolscache.ReflectorStore.
func (c *store) Delete(obj any) error {
	o, ok := obj.(client.Object)
	if !ok {
		return fmt.Errorf("forgetting %T: not an object", obj)
	}
	c.mu.Lock()
	before, found := c.drop(o.GetNamespace(), o.GetName())
	c.mu.Unlock()
	if found {
		c.tell(c.whole(o.GetNamespace(), before), nil)
	}
	return nil
}

// Replace implements toolscache.ReflectorStore.
func (c *store) Replace(list []any, _ string) error {
	present := make(map[reconcile.Key]bool, len(list))
	for _, obj := range list {
		if o, ok := obj.(client.Object); ok {
			present[reconcile.Key{Namespace: o.GetNamespace(), Name: o.GetName()}] = true
		}
		if err := c.put(obj); err != nil {
			return err
		}
	}
	type gone struct {
		namespace string
		item      item
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
		c.tell(c.whole(g.namespace, g.item), nil)
	}
	c.completed.Do(func() { close(c.synced) })
	return nil
}

// put notes an object and tells of it, unless it is known in that version.
func (c *store) put(obj any) error {
	if c.by.Transform != nil {
		trimmed, err := c.by.Transform(obj)
		if err != nil {
			return fmt.Errorf("trimming a %s: %w", c.kind.Kind, err)
		}
		obj = trimmed
	}
	o, ok := obj.(client.Object)
	if !ok || reflect.TypeOf(o) != reflect.TypeOf(c.example) {
		return fmt.Errorf("noting %T: not a %T", obj, c.example)
	}
	namespace, next := o.GetNamespace(), item{name: strings.Clone(o.GetName()), data: c.pack(o)}
	c.mu.Lock()
	items := c.spaces[namespace]
	at, found := find(items, o.GetName())
	var before item
	if found {
		before = items[at]
		next.name = before.name // the one that others hold already
		if before.data == next.data {
			next.data = before.data // so is this, after a list that brought nothing new
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
		c.tell(nil, current)
		return nil
	}
	old := c.whole(namespace, before)
	if old.GetUID() != current.GetUID() || old.GetResourceVersion() != current.GetResourceVersion() {
		c.tell(old, current)
	}
	return nil
}

// whole makes the object again.
func (c *store) whole(namespace string, i item) client.Object {
	o := c.unpack(i.data)
	o.GetObjectKind().SetGroupVersionKind(c.kind)
	o.SetNamespace(namespace)
	o.SetName(i.name)
	return o
}

// drop forgets an object; the caller holds the lock.
func (c *store) drop(namespace, name string) (item, bool) {
	items := c.spaces[namespace]
	at, found := find(items, name)
	if !found {
		return item{}, false
	}
	before := items[at]
	if len(items) == 1 {
		delete(c.spaces, namespace)
	} else {
		c.spaces[namespace] = slices.Delete(items, at, at+1)
	}
	return before, true
}

func find(items []item, name string) (int, bool) {
	return slices.BinarySearchFunc(items, name, func(i item, name string) int { return strings.Compare(i.name, name) })
}

func (c *store) tell(old, current client.Object) {
	for _, f := range c.handlers {
		f(old, current)
	}
}

// get reads one object into o.
func (c *store) get(key client.ObjectKey, o client.Object) error {
	if reflect.TypeOf(o) != reflect.TypeOf(c.example) {
		return fmt.Errorf("reading a %s into %T: what is kept of it is %T", c.kind.Kind, o, c.example)
	}
	c.mu.RLock()
	items := c.spaces[key.Namespace]
	at, found := find(items, key.Name)
	var i item
	if found {
		i = items[at]
	}
	c.mu.RUnlock()
	if !found {
		return apierrors.NewNotFound(reconcile.ResourceOf(c.kind).GroupResource(), key.Name)
	}
	reflect.ValueOf(o).Elem().Set(reflect.ValueOf(c.whole(key.Namespace, i)).Elem())
	return nil
}

// list reads the objects of a namespace, or all, that a selector takes.
func (c *store) listInto(into client.ObjectList, o client.ListOptions) error {
	if o.FieldSelector != nil {
		return fmt.Errorf("listing %s: there is no index of fields", c.kind.Kind)
	}
	selector := o.LabelSelector
	if selector == nil {
		selector = labels.Everything()
	}
	var found []runtime.Object
	c.each(o.Namespace, func(object client.Object) bool {
		if selector.Matches(labels.Set(object.GetLabels())) {
			found = append(found, object)
		}
		return o.Limit <= 0 || int64(len(found)) < o.Limit
	})
	if err := apimeta.SetList(into, found); err != nil {
		return fmt.Errorf("listing %s: %w", c.kind.Kind, err)
	}
	return nil
}

// each calls f with the objects of a namespace, or all, until it says no. The
// store is locked meanwhile.
func (c *store) each(namespace string, f func(client.Object) bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	in := func(namespace string, items []item) bool {
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

// reads answers reads of packed kinds from their stores, and all others from the
// cache of controller-runtime.
type reads struct {
	client.Reader
	scheme *runtime.Scheme
	packed map[schema.GroupVersionKind]*store
}

// Get implements client.Reader.
func (r reads) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	s, err := r.of(o)
	switch {
	case err != nil:
		return err
	case s == nil:
		return r.Reader.Get(ctx, key, o, opts...)
	}
	return s.get(key, o)
}

// List implements client.Reader.
func (r reads) List(ctx context.Context, l client.ObjectList, opts ...client.ListOption) error {
	s, err := r.of(l)
	switch {
	case err != nil:
		return err
	case s == nil:
		return r.Reader.List(ctx, l, opts...)
	}
	var o client.ListOptions
	return s.listInto(l, *o.ApplyOptions(opts))
}

// of is the store of an object's or a list's kind; nil if there is none.
func (r reads) of(o runtime.Object) (*store, error) {
	kind, err := apiutil.GVKForObject(o, r.scheme)
	if err != nil {
		return nil, fmt.Errorf("reading %T: %w", o, err)
	}
	if _, many := o.(client.ObjectList); many {
		kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	}
	s := r.packed[kind]
	switch o.(type) {
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		if s == nil {
			return nil, fmt.Errorf("reading metadata of %s: no loop watches it", kind.Kind)
		}
	}
	return s, nil
}

// Each calls f with every object of the kind of example, which is packed, one
// after the other: a list of all would need, for a moment, much more memory than
// the objects take at rest. r is the reader of a Manager; f must not read from it.
func Each[T client.Object](r client.Reader, example T, f func(T)) error {
	all, ok := r.(reads)
	if !ok {
		return fmt.Errorf("going through all %T: %T has no packed objects", example, r)
	}
	s, err := all.of(example)
	if err != nil {
		return err
	}
	if s == nil {
		return fmt.Errorf("going through all %T: they are not packed", example)
	}
	s.each("", func(o client.Object) bool {
		if t, ok := o.(T); ok {
			f(t)
		}
		return true
	})
	return nil
}
