// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"fmt"
	"reflect"
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

// pageSize is how many objects one page of a list holds at most.
const pageSize = 500

// arrival is how soon the first list is tried again that an API server refuses
// because it does not know yet what was written just now, rights or a
// definition: eight times in about two seconds.
var arrival = wait.Backoff{Duration: 20 * time.Millisecond, Factor: 1.8, Jitter: 0.2, Steps: 8}

// A watch that is not answered in time, or whose connection breaks while it is
// asked for, is an empty watch to client-go and no error. Here it is one: the
// API server is away, and whoever asks again without a pause does not help it.
var (
	unanswered    = reflect.TypeOf(apiwatch.NewEmptyWatch())
	errUnanswered = errors.New("the API server did not answer in time")
)

// Options say what a Collection holds.
type Options[T any] struct {
	// Client reads the collection.
	Client dynamic.Interface
	// Resource is what to list and watch.
	Resource schema.GroupVersionResource
	// Namespace limits the collection to one namespace; empty means all.
	Namespace string
	// FieldSelector and LabelSelector limit it further. A metadata.name field
	// selector is the cheapest watch there is for the API server.
	FieldSelector, LabelSelector string
	// Keep makes of an object what is stored; false leaves the object out. It
	// must not hold on to the object it is given, or its memory stays.
	Keep func(*unstructured.Unstructured) (T, bool)
	// Same, unless nil, tells whether an object that came again is stored as
	// before; nobody is told of it then. It is for objects that change often in
	// what is not kept.
	Same func(before, now T) bool
	// Pulse is of the API server that Client leads to, where somebody has one:
	// a watch that waits after a failure is tried again when it beats.
	Pulse *Pulse
	// Log reports what the reflector cannot do; the zero value is silent.
	Log logr.Logger
}

// Collection is a local copy of a collection of API objects. Its methods are
// safe for concurrent use.
type Collection[T any] struct {
	o         Options[T]
	onChange  []func(reconcile.Key)
	onOutcome []func(error)

	mu     sync.RWMutex
	items  map[reconcile.Key]T
	err    error
	newest string
	once   sync.Once
	synced chan struct{}
	// asking counts the requests that are under way.
	asking atomic.Int32
}

// New makes a Collection; it is empty until Run has synced it.
func New[T any](o Options[T]) *Collection[T] {
	return &Collection[T]{o: o, items: map[reconcile.Key]T{}, synced: make(chan struct{})}
}

// OnChange registers a function that is called, in order of the events, with
// the key of each object that was added, changed or removed. It must be called
// before Run and the function must not block.
func (c *Collection[T]) OnChange(f func(reconcile.Key)) { c.onChange = append(c.onChange, f) }

// OnOutcome registers a function that is called with the outcome of each list
// and of each start of a watch; nil means that the API server answered. It must
// be called before Run and the function must not block.
func (c *Collection[T]) OnOutcome(f func(error)) { c.onOutcome = append(c.onOutcome, f) }

// Get returns what is stored of an object.
func (c *Collection[T]) Get(k reconcile.Key) (T, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	item, ok := c.items[k]
	return item, ok
}

// List returns all that is stored, in no order.
func (c *Collection[T]) List() []T {
	c.mu.RLock()
	defer c.mu.RUnlock()
	out := make([]T, 0, len(c.items))
	for _, item := range c.items {
		out = append(out, item)
	}
	return out
}

// Len is how many objects are stored.
func (c *Collection[T]) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.items)
}

// Newest is the highest resourceVersion that the API server has shown so far;
// empty before the first list. What it shows later may be lower, where it was
// restored from a back-up.
func (c *Collection[T]) Newest() string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.newest
}

// Synced is closed when the first list is complete. No decision may be made on
// the absence of an object before that.
func (c *Collection[T]) Synced() <-chan struct{} { return c.synced }

// WaitSynced waits for Synced; it returns the context's error, with the reason
// why the list did not succeed, when ctx ends before.
func (c *Collection[T]) WaitSynced(ctx context.Context) error {
	select {
	case <-c.synced:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("listing %s: %w", c.o.Resource.Resource, errors.Join(ctx.Err(), c.Err()))
	}
}

// Err is why the last list or watch failed; nil while all is well.
func (c *Collection[T]) Err() error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.err
}

func (c *Collection[T]) setErr(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

// Run keeps the collection current until ctx ends. It retries for ever, with
// client-go's back-off between 0.8 and 60 seconds; Err tells why it has to. Only
// the first list is tried again sooner, when it is forbidden or not found: a
// collection is often read as soon as somebody gave the right to.
//
// After a failure a beat of Options.Pulse ends the wait.
func (c *Collection[T]) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		one, cancel := context.WithCancel(ctx)
		forget := c.o.Pulse.feel(func() {
			if c.waits() {
				cancel()
			}
		})
		c.reflect(one)
		forget()
		cancel()
	}
	return nil
}

// waits tells whether the collection sits out a pause because the API server
// was away. One that answered with a refusal would do so again.
func (c *Collection[T]) waits() bool {
	err := c.Err()
	refused := apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsTooManyRequests(err)
	return err != nil && !refused && c.asking.Load() == 0
}

func (c *Collection[T]) reflect(ctx context.Context) {
	r := cache.NewReflectorWithOptions(c.listWatch(), &unstructured.Unstructured{}, (*store[T])(c),
		cache.ReflectorOptions{Name: c.o.Resource.Resource, TypeDescription: c.o.Resource.String()})
	r.WatchListPageSize = pageSize
	r.RunWithContext(ctx)
}

// listWatch reads through the dynamic client and notes what fails.
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
			tries := wait.Backoff{Steps: 1}
			if first {
				first, tries = false, arrival
			}
			list, err := retry(ctx, tries, func() (*unstructured.UnstructuredList, error) {
				list, err := api.List(ctx, selected(o))
				c.note(ctx, "list", err)
				return list, err
			})
			if err != nil {
				return nil, err
			}
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			c.asking.Add(1)
			defer c.asking.Add(-1)
			w, err := api.Watch(ctx, selected(o))
			if err == nil && reflect.TypeOf(w) == unanswered {
				w, err = nil, errUnanswered
			}
			c.note(ctx, "watch", err)
			if err != nil {
				return nil, err
			}
			return w, nil
		},
	}
}

// retry calls list until it succeeds, fails with what does not pass, or has
// failed as often as tries say. The error is that of the last call.
func retry[L any](ctx context.Context, tries wait.Backoff, list func() (L, error)) (out L, err error) {
	ended := wait.ExponentialBackoffWithContext(ctx, tries, func(context.Context) (bool, error) {
		out, err = list()
		return !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err), nil
	})
	if err == nil {
		err = ended
	}
	return out, err
}

// note keeps the error of a request, and logs it where it is a new one.
func (c *Collection[T]) note(ctx context.Context, verb string, err error) {
	if ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return
	}
	before := c.Err()
	c.setErr(err)
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

// kept is what is stored of one object; keep is false for those that are left
// out.
type kept[T any] struct {
	key  reconcile.Key
	item T
	keep bool
}

// Transformer makes the reflector hold, while it collects the first list, only
// what will be stored of each object, and a key of those that will not.
func (s *store[T]) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return s.reduce(obj) }
}

// reduce makes of an object of the API what is stored of it.
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

// Add stores an object that came by a watch.
func (s *store[T]) Add(obj any) error { return s.put(obj) }

// Update stores an object that changed.
func (s *store[T]) Update(obj any) error { return s.put(obj) }

// Delete drops an object.
func (s *store[T]) Delete(obj any) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("removing %T: not an object of the API", obj)
	}
	s.drop(s.keyOf(u))
	return nil
}

// Replace stores the result of a list: it tells of everything that is in it and
// of everything that is no longer there.
func (s *store[T]) Replace(list []any, version string) error {
	s.reached(version)
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
	s.once.Do(func() { close(s.synced) })
	return nil
}

// Bookmark notes how far a watch is that has nothing to tell.
func (s *store[T]) Bookmark(version string) error {
	s.reached(version)
	return nil
}

var _ cache.ReflectorBookmarkStore = (*store[any])(nil)

// reached notes a resourceVersion that the API server has shown.
func (s *store[T]) reached(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if order, err := resourceversion.CompareResourceVersion(s.newest, version); s.newest == "" || (err == nil && order < 0) {
		s.newest = version
	}
}

// Resync is part of the reflector's interface; there is none here, a timer is
// for time itself.
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

func (s *store[T]) put(obj any) error {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		s.reached(u.GetResourceVersion())
	}
	k, err := s.reduce(obj)
	if err != nil {
		return err
	}
	s.store(k)
	return nil
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
		s.tell(k.key)
	}
}

// drop removes the key and tells of it, if it was stored.
func (s *store[T]) drop(k reconcile.Key) {
	s.mu.Lock()
	_, had := s.items[k]
	delete(s.items, k)
	s.mu.Unlock()
	if had {
		s.tell(k)
	}
}

func (s *store[T]) tell(k reconcile.Key) {
	for _, f := range s.onChange {
		f(k)
	}
}

// keyOf is the key of an object. All keys of one namespace share its name.
func (s *store[T]) keyOf(u *unstructured.Unstructured) reconcile.Key {
	key := reconcile.Key{Namespace: u.GetNamespace(), Name: u.GetName()}
	if key.Namespace == s.o.Namespace {
		key.Namespace = s.o.Namespace
	}
	return key
}
