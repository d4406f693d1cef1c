// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// pageSize is the most objects that one page of a list holds.
const pageSize = 500

// refusalRetry is how soon a request is sent again when the API server refuses it because it
// has not yet noticed new permissions or a new definition, or has just started and not yet
// read its roles: eight tries in about two seconds.
var refusalRetry = wait.Backoff{Duration: 20 * time.Millisecond, Factor: 1.8, Jitter: 0.2, Steps: 8}

// client-go returns an empty watch and no error when a watch request is not answered in
// time or its connection breaks. Here that is an error: the API server is away, and asking
// again without a pause does not help it.
var (
	unanswered    = reflect.TypeOf(apiwatch.NewEmptyWatch())
	errUnanswered = errors.New("the API server did not answer in time")
)

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
type Collection[T any] struct {
	o         Options[T]
	onChange  []func(reconcile.Key)
	onOutcome []func(error)
	// onSynced, unless nil, is called when the first list is complete.
	onSynced func()

	mu     sync.RWMutex
	items  map[reconcile.Key]T
	err    error
	newest string
	once   sync.Once
	synced chan struct{}
	// asking counts the requests in flight.
	asking atomic.Int32
}

// New returns a Collection; it is empty until Run has synced it.
func New[T any](o Options[T]) *Collection[T] {
	return &Collection[T]{o: o, items: map[reconcile.Key]T{}, synced: make(chan struct{})}
}

// OnChange registers a function that is called, in the order of the events, with the key of
// each object that was added, changed or removed. It must be called before Run, and the
// function must not block.
func (c *Collection[T]) OnChange(f func(reconcile.Key)) { c.onChange = append(c.onChange, f) }

// OnOutcome registers a function that is called with the outcome of each list and of each
// start of a watch; nil means that the API server answered. It must be called before Run,
// and the function must not block.
func (c *Collection[T]) OnOutcome(f func(error)) { c.onOutcome = append(c.onOutcome, f) }

// Get returns what is stored of an object.
func (c *Collection[T]) Get(k reconcile.Key) (T, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	item, ok := c.items[k]
	return item, ok
}

// List returns everything that is stored, in no particular order.
func (c *Collection[T]) List() []T {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.AppendSeq(make([]T, 0, len(c.items)), maps.Values(c.items))
}

// Len returns how many objects are stored.
func (c *Collection[T]) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.items)
}

// Newest returns the highest resourceVersion that the API server has shown so far, or ""
// before the first list. Later versions may be lower if the server was restored from a
// backup.
func (c *Collection[T]) Newest() string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.newest
}

// Synced returns a channel that is closed when the first list is complete. Before that, the
// absence of an object means nothing.
func (c *Collection[T]) Synced() <-chan struct{} { return c.synced }

// WaitSynced waits for Synced. If ctx ends first, it returns the context's error joined
// with the reason why the list did not succeed.
func (c *Collection[T]) WaitSynced(ctx context.Context) error {
	select {
	case <-c.synced:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("listing %s: %w", c.o.Resource.Resource, errors.Join(ctx.Err(), c.Err()))
	}
}

// Err returns why the last list or watch failed, or nil if it did not.
func (c *Collection[T]) Err() error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.err
}

// Run keeps the collection current until ctx ends. It retries forever, with client-go's
// back-off of 0.8 to 60 seconds; Err returns the reason. Only two requests are retried sooner
// when they are forbidden or not found: the first list, because a collection is often read
// right after the permission was granted, and the first request after the API server was
// away, because it answers before it has read its roles.
//
// After a failure, a beat of Options.Pulse ends the wait.
func (c *Collection[T]) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		one, cancel := context.WithCancel(ctx)
		forget := c.o.Pulse.onBeat(func() {
			if c.isBackingOff() {
				cancel()
			}
		})
		r := cache.NewReflectorWithOptions(c.listWatch(), &unstructured.Unstructured{}, (*store[T])(c),
			cache.ReflectorOptions{Name: c.o.Resource.Resource, TypeDescription: c.o.Resource.String()})
		r.WatchListPageSize = pageSize
		r.RunWithContext(one)
		forget()
		cancel()
	}
	return nil
}

// isBackingOff reports whether the collection waits because the API server was away. A
// server that answered with a refusal would do so again, so refusals do not count.
func (c *Collection[T]) isBackingOff() bool {
	return c.isAway() && c.asking.Load() == 0
}

// isAway reports whether the API server did not answer the last request.
func (c *Collection[T]) isAway() bool {
	err := c.Err()
	refused := apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsTooManyRequests(err)
	return err != nil && !refused
}

// listWatch reads through the dynamic client and records failures.
func (c *Collection[T]) listWatch() cache.ListerWatcher {
	api := c.o.Client.Resource(c.o.Resource).Namespace(c.o.Namespace)
	selected := func(o metav1.ListOptions) metav1.ListOptions {
		o.FieldSelector, o.LabelSelector = c.o.FieldSelector, c.o.LabelSelector
		return o
	}
	first := true
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			c.asking.Add(1)
			defer c.asking.Add(-1)
			patient := first || c.isAway()
			first = false
			var list *unstructured.UnstructuredList
			err := retry(ctx, patient, func() (err error) {
				list, err = api.List(ctx, selected(o))
				c.recordOutcome(ctx, "list", err)
				return err
			})
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			c.asking.Add(1)
			defer c.asking.Add(-1)
			var w apiwatch.Interface
			err := retry(ctx, c.isAway(), func() (err error) {
				w, err = api.Watch(ctx, selected(o))
				if err == nil && reflect.TypeOf(w) == unanswered {
					w, err = nil, errUnanswered
				}
				c.recordOutcome(ctx, "watch", err)
				return err
			})
			return w, err
		},
	}
}

// retry sends a request once or, if patient, until it succeeds, fails with an error other
// than forbidden or not found, or has used up its tries. It returns the error of the last
// one.
func retry(ctx context.Context, patient bool, send func() error) (err error) {
	tries := wait.Backoff{Steps: 1}
	if patient {
		tries = refusalRetry
	}
	ended := wait.ExponentialBackoffWithContext(ctx, tries, func(context.Context) (bool, error) {
		err = send()
		return !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err), nil
	})
	return cmp.Or(err, ended)
}

// recordOutcome stores the error of a request, and logs it if it is a new one.
func (c *Collection[T]) recordOutcome(ctx context.Context, verb string, err error) {
	if ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return
	}
	c.mu.Lock()
	before := c.err
	c.err = err
	c.mu.Unlock()
	for _, f := range c.onOutcome {
		f(err)
	}
	if err != nil && (before == nil || before.Error() != err.Error()) {
		c.o.Log.Info(
			"Collection cannot be read and will be tried again",
			"verb", verb, "resource", c.o.Resource.Resource, "namespace", c.o.Namespace, "error", err.Error(),
		)
	}
}

// store is the side of a Collection that the reflector writes to.
type store[T any] Collection[T]

var _ cache.TransformingStore = (*store[any])(nil)

// kept is what is stored of one object; keep is false for objects that are left out.
type kept[T any] struct {
	key  reconcile.Key
	item T
	keep bool
}

// Transformer makes the reflector hold only what will be stored of each object while it
// collects the first list, and only the key of objects that will not be stored.
func (s *store[T]) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return s.reduce(obj) }
}

// reduce returns what is stored of an API object.
func (s *store[T]) reduce(obj any) (*kept[T], error) {
	switch o := obj.(type) {
	case *kept[T]:
		return o, nil
	case *unstructured.Unstructured:
		k := &kept[T]{key: s.keyOf(o)}
		k.item, k.keep = s.o.Keep(o)
		return k, nil
	}
	return nil, fmt.Errorf("storing %T: not an object of the API", obj)
}

// Add stores an object that a watch delivered.
func (s *store[T]) Add(obj any) error {
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
func (s *store[T]) Update(obj any) error { return s.Add(obj) }

// Delete drops an object.
func (s *store[T]) Delete(obj any) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("removing %T: not an object of the API", obj)
	}
	s.drop(s.keyOf(u))
	return nil
}

// Replace stores the result of a list and reports every object in it and every object that
// is no longer there.
func (s *store[T]) Replace(list []any, version string) error {
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
		if s.onSynced != nil {
			s.onSynced()
		}
	})
	return nil
}

// Bookmark records how far an idle watch has come.
func (s *store[T]) Bookmark(version string) error {
	s.recordVersion(version)
	return nil
}

var _ cache.ReflectorBookmarkStore = (*store[any])(nil)

// recordVersion records a resourceVersion that the API server has shown.
func (s *store[T]) recordVersion(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if order, err := resourceversion.CompareResourceVersion(s.newest, version); s.newest == "" || (err == nil && order < 0) {
		s.newest = version
	}
}

// Resync is part of the reflector's interface and does nothing: loops requeue by time
// themselves.
func (s *store[T]) Resync() error { return nil }

func (s *store[T]) missing(present map[reconcile.Key]bool) []reconcile.Key {
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

func (s *store[T]) store(k *kept[T]) {
	if !k.keep {
		s.drop(k.key)
		return
	}
	s.mu.Lock()
	before, had := s.items[k.key]
	s.items[k.key] = k.item
	s.mu.Unlock()
	if !had || s.o.Same == nil || !s.o.Same(before, k.item) {
		s.notify(k.key)
	}
}

// drop removes the key and reports it if it was stored.
func (s *store[T]) drop(k reconcile.Key) {
	s.mu.Lock()
	_, had := s.items[k]
	delete(s.items, k)
	s.mu.Unlock()
	if had {
		s.notify(k)
	}
}

func (s *store[T]) notify(k reconcile.Key) {
	for _, f := range s.onChange {
		f(k)
	}
}

// keyOf returns the key of an object. All keys of one namespace share its string.
func (s *store[T]) keyOf(u *unstructured.Unstructured) reconcile.Key {
	key := reconcile.KeyOf(u)
	if key.Namespace == s.o.Namespace {
		key.Namespace = s.o.Namespace
	}
	return key
}
