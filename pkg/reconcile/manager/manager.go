// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

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
	// kept whole, without managedFields.
	Kinds map[client.Object]cache.ByObject
	// Clock times the retries for kinds that are not served.
	Clock clock.Clock
	// Log is handed to the loops.
	Log logr.Logger
}

// Manager holds a cache and the loops that it feeds.
type Manager struct {
	o       Options
	cache   cache.Cache
	watches []watch
	loops   []running
	tasks   []func(context.Context) error
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
	c, err := cache.New(o.Config, cache.Options{
		Scheme:           o.Scheme,
		ByObject:         o.Kinds,
		DefaultTransform: Trim,
	})
	if err != nil {
		return nil, fmt.Errorf("making the cache: %w", err)
	}
	return &Manager{o: o, cache: c}, nil
}

// Reader reads from the cache. Kinds that are not watched are watched from the
// first read on.
func (m *Manager) Reader() client.Reader { return m.cache }

// Add registers a loop with its queue, before Run.
func (m *Manager) Add(l reconcile.Loop, q *reconcile.Queue) {
	m.loops = append(m.loops, running{l, q})
}

// AddTask registers something that runs beside the loops until its context
// ends, before Run. Its error ends Run.
func (m *Manager) AddTask(task func(context.Context) error) { m.tasks = append(m.tasks, task) }

// Loops returns the names of the registered loops.
func (m *Manager) Loops() []string {
	out := make([]string, 0, len(m.loops))
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
	if err := m.startWatches(ctx); err != nil {
		return ended(ctx, err)
	}
	if !m.cache.WaitForCacheSync(ctx) {
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
	for _, r := range m.loops {
		run(func(ctx context.Context) error { return r.loop.Run(ctx, r.queue) })
	}
	<-ctx.Done()
	wg.Wait()
	return errors.Join(append(failures, cacheErr)...)
}

// ended hides errors that only say that the run was stopped.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the error is that of the stop
	}
	return err
}

// startWatches registers all handlers and waits for kinds that are missing.
func (m *Manager) startWatches(ctx context.Context) error {
	for _, w := range m.watches {
		for {
			informer, err := m.cache.GetInformer(ctx, w.object, cache.BlockUntilSynced(false))
			if err == nil {
				if _, err := informer.AddEventHandler(w.handler); err != nil {
					return fmt.Errorf("watching %T: %w", w.object, err)
				}
				break
			}
			m.o.Log.Info("Kind cannot be watched yet and will be tried again", "kind", kindOf(w.object), "error", err.Error())
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-m.o.Clock.After(kindRetry):
			}
		}
	}
	return nil
}

func kindOf(o client.Object) string {
	if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return fmt.Sprintf("%T", o)
}
