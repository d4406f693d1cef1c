// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/packed"
)

// steadyCheck is how often queues are looked at until they are empty.
const steadyCheck = time.Second

// kindRetry is how long to wait before a kind that is not served is tried
// again.
const kindRetry = 2 * time.Second

// Options of a Manager.
type Options struct {
	// Config reaches the API server.
	Config *rest.Config
	// Scheme knows every kind that is watched.
	Scheme *runtime.Scheme
	// Kinds limits and trims single kinds. Kinds that are not named here are
	// kept whole, without managedFields. Of those that are watched as Metadata,
	// Label, Field and Transform count. No kind may be named twice.
	Kinds map[client.Object]cache.ByObject
	// Packed are whole kinds of which there are many and little is kept: each
	// object is packed into one string, and unpacked for every event and read, which
	// takes some microseconds. Of Kinds, Label, Field and Transform count for them. A
	// loop watches each. Owner references are dropped.
	Packed []client.Object
	// Clock times the retries for kinds that are not served.
	Clock clock.Clock
	// Steady, unless nil, is called once in each run, when the loops have gone through
	// all that there was at its start.
	Steady func()
	// Log is handed to the loops.
	Log logr.Logger
}

// Manager holds a cache and the loops that it feeds.
type Manager struct {
	o       Options
	cache   cache.Cache
	client  metadata.Interface
	packed  map[schema.GroupVersionKind]*store
	http    *http.Client
	words   packed.Dictionary
	watches []watch
	loops   []running
	tasks   []func(context.Context) error
	// others are the names of loops that tasks run.
	others []string
	// twice are kinds that are watched in two forms.
	twice error
}

type watch struct {
	object  client.Object
	handler toolscache.ResourceEventHandler
}

type running struct {
	loop  reconcile.Loop
	queue *reconcile.Queue
}

// New makes a Manager that watches nothing yet.
func New(o Options) (*Manager, error) {
	if err := checkKinds(o); err != nil {
		return nil, err
	}
	m := &Manager{o: o, packed: map[schema.GroupVersionKind]*store{}}
	whole := maps.Clone(o.Kinds)
	maps.DeleteFunc(whole, func(o client.Object, _ cache.ByObject) bool { return isMetadata(o) || m.isPacked(o) })
	var err error
	if m.http, err = rest.HTTPClientFor(o.Config); err != nil {
		return nil, fmt.Errorf("making the connection: %w", err)
	}
	if m.cache, err = cache.New(o.Config, cache.Options{
		HTTPClient:       m.http,
		Scheme:           o.Scheme,
		ByObject:         whole,
		DefaultTransform: Trim,
	}); err != nil {
		return nil, fmt.Errorf("making the cache: %w", err)
	}
	if m.client, err = metadata.NewForConfigAndClient(metadata.ConfigFor(o.Config), m.http); err != nil {
		return nil, fmt.Errorf("making the client of metadata: %w", err)
	}
	for _, example := range o.Packed {
		f, err := m.wholeForm(example)
		if err != nil {
			return nil, err
		}
		m.packed[f.kind] = m.newStore(f)
	}
	return m, nil
}

// isPacked tells whether objects of the type are kept packed, though whole.
func (m *Manager) isPacked(o client.Object) bool {
	return slices.ContainsFunc(m.o.Packed, func(p client.Object) bool { return reflect.TypeOf(p) == reflect.TypeOf(o) })
}

// checkKinds refuses two entries for one kind: their keys are pointers, and which
// of the two counted would be left to the order of a map.
func checkKinds(o Options) error {
	seen := map[schema.GroupVersionKind]bool{}
	for example := range o.Kinds {
		kind := example.GetObjectKind().GroupVersionKind()
		if !isMetadata(example) {
			var err error
			if kind, err = apiutil.GVKForObject(example, o.Scheme); err != nil {
				return fmt.Errorf("limiting what is kept of %T: %w", example, err)
			}
		}
		if seen[kind] {
			return fmt.Errorf("limiting what is kept of %s: there are two entries for it", kind)
		}
		seen[kind] = true
	}
	return nil
}

func isMetadata(o client.Object) bool {
	_, ok := o.(*metav1.PartialObjectMetadata)
	return ok
}

// Reader reads from the cache. Whole kinds that are not watched are watched
// from the first read on; metadata can be read of kinds that a loop watches.
func (m *Manager) Reader() client.Reader {
	return reads{Reader: m.cache, scheme: m.o.Scheme, packed: m.packed}
}

// newStore makes the store of a kind, with its limits.
func (m *Manager) newStore(f form) *store {
	by := m.limits(f.kind)
	if by.Transform == nil {
		by.Transform = Trim
	}
	return newStore(f, by)
}

// storeOf is the store of the kind of example; nil if it is not packed.
func (m *Manager) storeOf(example client.Object) *store {
	kind, err := apiutil.GVKForObject(example, m.o.Scheme)
	if err != nil {
		return nil // the watch of it will say so
	}
	s := m.packed[kind]
	switch {
	case s != nil && reflect.TypeOf(example) == reflect.TypeOf(s.example):
		return s
	case s != nil || isMetadata(example) && slices.ContainsFunc(m.watches, func(w watch) bool { return m.isOf(w.object, kind) }):
		m.twice = errors.Join(m.twice, fmt.Errorf("watching %s: it is watched in two forms", kind.Kind))
		return nil
	case !isMetadata(example):
		return nil
	}
	m.packed[kind] = m.newStore(m.metadataForm(kind))
	return m.packed[kind]
}

func (m *Manager) isOf(o client.Object, kind schema.GroupVersionKind) bool {
	k, err := apiutil.GVKForObject(o, m.o.Scheme)
	return err == nil && k == kind
}

// metadataForm reads and packs the metadata of a kind, in protobuf.
func (m *Manager) metadataForm(kind schema.GroupVersionKind) form {
	resource := m.client.Resource(reconcile.ResourceOf(kind))
	return form{
		kind: kind, example: &metav1.PartialObjectMetadata{},
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return resource.List(ctx, o)
		},
		watch: resource.Watch,
		pack: func(o client.Object) string {
			p, _ := o.(*metav1.PartialObjectMetadata)
			return m.words.PackMeta(&p.ObjectMeta)
		},
		unpack: func(data string) client.Object {
			o := &metav1.PartialObjectMetadata{}
			m.words.UnpackMeta(data, &o.ObjectMeta)
			return o
		},
	}
}

// wholeForm reads and packs whole objects of the kind of example.
func (m *Manager) wholeForm(example client.Object) (form, error) {
	kind, err := apiutil.GVKForObject(example, m.o.Scheme)
	if err != nil {
		return form{}, fmt.Errorf("packing %T: %w", example, err)
	}
	t := reflect.TypeOf(example).Elem()
	if err := packed.Packable(example); err != nil {
		return form{}, fmt.Errorf("packing %s: %w", kind.Kind, err)
	}
	requests, err := apiutil.RESTClientForGVK(kind, false, false, m.o.Config, serializer.NewCodecFactory(m.o.Scheme), m.http)
	if err != nil {
		return form{}, fmt.Errorf("making the client of %s: %w", kind.Kind, err)
	}
	resource, parameters := reconcile.ResourceOf(kind).Resource, runtime.NewParameterCodec(m.o.Scheme)
	words := &packed.Dictionary{}
	return form{
		kind: kind, example: example,
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := m.o.Scheme.New(kind.GroupVersion().WithKind(kind.Kind + "List"))
			if err != nil {
				return nil, fmt.Errorf("listing %s: %w", resource, err)
			}
			return list, requests.Get().Resource(resource).VersionedParams(&o, parameters).Do(ctx).Into(list)
		},
		watch: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			o.Watch = true
			return requests.Get().Resource(resource).VersionedParams(&o, parameters).Watch(ctx)
		},
		pack: func(o client.Object) string { return words.Pack(o) },
		unpack: func(data string) client.Object {
			o, _ := reflect.New(t).Interface().(client.Object)
			words.Unpack(data, o)
			return o
		},
	}, nil
}

// Add registers a loop with its queue, before Run.
func (m *Manager) Add(l reconcile.Loop, q *reconcile.Queue) {
	m.loops = append(m.loops, running{l, q})
}

// AddTask registers something that runs beside the loops until its context
// ends, before Run. Its error ends Run.
func (m *Manager) AddTask(task func(context.Context) error) { m.tasks = append(m.tasks, task) }

// AddLoops registers a task, as AddTask, that runs loops with queues of its own, by their
// names.
func (m *Manager) AddLoops(names []string, task func(context.Context) error) {
	m.others = append(m.others, names...)
	m.AddTask(task)
}

// Loops returns the names of the registered loops.
func (m *Manager) Loops() []string {
	out := slices.Clone(m.others)
	for _, l := range m.loops {
		out = append(out, l.loop.Name)
	}
	return out
}

// Watch calls changed with the old and the new form of each object of the kind
// of example: old is nil when the object is new, current is nil when it is
// gone. Objects belong to the cache and must not be changed. The function must
// not block.
func Watch[T client.Object](m *Manager, example T, changed func(old, current T)) {
	var none T
	if s := m.storeOf(example); s != nil {
		s.handlers = append(s.handlers, func(old, current client.Object) {
			o, _ := old.(T)
			n, _ := current.(T)
			changed(o, n)
		})
		return
	}
	m.watches = append(m.watches, watch{example, toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if o, ok := obj.(T); ok {
				changed(none, o)
			}
		},
		UpdateFunc: func(before, after any) {
			o, ok := before.(T)
			n, also := after.(T)
			if ok && also {
				changed(o, n)
			}
		},
		DeleteFunc: func(obj any) {
			if last, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			if o, ok := obj.(T); ok {
				changed(o, none)
			}
		},
	}})
}

// Run starts the informers, waits until all are complete, then runs tasks and
// loops until ctx ends. It returns when all have ended.
func (m *Manager) Run(ctx context.Context) error {
	if m.twice != nil {
		return m.twice
	}
	ctx, cancel := context.WithCancel(logr.NewContext(ctx, m.o.Log))
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	var cacheErr error
	wg.Go(func() {
		cacheErr = m.cache.Start(ctx)
		cancel()
	})
	if err := m.startPacked(ctx, &wg); err != nil {
		return ended(ctx, err)
	}
	told, err := m.startWatches(ctx)
	if err != nil {
		return ended(ctx, err)
	}
	// Handlers keep indexes, which must be complete before a loop reads them.
	if !m.cache.WaitForCacheSync(ctx) || !toolscache.WaitForCacheSync(ctx.Done(), told...) {
		return ended(ctx, errors.New("filling the cache: it did not become complete"))
	}
	var mu sync.Mutex
	var failures []error
	run := func(f func(context.Context) error) {
		wg.Go(func() {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				mu.Lock()
				failures = append(failures, err)
				mu.Unlock()
				cancel()
			}
		})
	}
	for _, task := range m.tasks {
		run(task)
	}
	run(m.untilSteady)
	for _, r := range m.loops {
		run(func(ctx context.Context) error { return r.loop.Run(ctx, r.queue) })
	}
	<-ctx.Done()
	wg.Wait()
	return errors.Join(append(failures, cacheErr)...)
}

// untilSteady waits until no key waits for a worker.
func (m *Manager) untilSteady(ctx context.Context) error {
	if m.o.Steady == nil {
		return nil
	}
	for slices.ContainsFunc(m.loops, func(r running) bool { return r.queue.Len() > 0 }) {
		select {
		case <-ctx.Done():
			return nil
		case <-m.o.Clock.After(steadyCheck):
		}
	}
	m.o.Steady()
	return nil
}

// ended hides errors that only say that the run was stopped.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the error is that of the stop
	}
	return err
}

// startPacked fills the stores of packed kinds, one after the other: what a list
// takes beside what is kept of it is then needed once, not once a kind.
func (m *Manager) startPacked(ctx context.Context, wg *sync.WaitGroup) error {
	for _, kind := range slices.SortedFunc(maps.Keys(m.packed), func(a, b schema.GroupVersionKind) int {
		return strings.Compare(a.String(), b.String())
	}) {
		c := m.packed[kind]
		wg.Go(func() { c.run(ctx) })
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.synced:
		}
	}
	return nil
}

// startWatches registers all handlers and waits for kinds that are missing. It
// returns what tells that a handler has been told of all that exists.
func (m *Manager) startWatches(ctx context.Context) (told []toolscache.InformerSynced, err error) {
	for _, w := range m.watches {
		for {
			informer, err := m.cache.GetInformer(ctx, w.object, cache.BlockUntilSynced(false))
			if err == nil {
				registration, err := informer.AddEventHandler(w.handler)
				if err != nil {
					return nil, fmt.Errorf("watching %T: %w", w.object, err)
				}
				told = append(told, registration.HasSynced)
				break
			}
			m.o.Log.Info("Kind cannot be watched yet and will be tried again", "kind", kindOf(w.object), "error", err.Error())
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-m.o.Clock.After(kindRetry):
			}
		}
	}
	return told, nil
}

func kindOf(o client.Object) string {
	if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return fmt.Sprintf("%T", o)
}
