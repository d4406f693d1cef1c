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
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/internal/packed"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// steadyCheck is the interval at which queues are checked until they are empty.
const steadyCheck = time.Second

// Options configure a Manager.
type Options struct {
	// Config reaches the API server.
	Config *rest.Config
	// Scheme knows every kind that is watched whole.
	Scheme *runtime.Scheme
	// Kinds limits and trims single kinds. Kinds that are not listed are kept whole,
	// without managedFields. No kind may be listed twice.
	Kinds []Kind
	// Clock times the checks of the queues.
	Clock clock.Clock
	// Steady, unless nil, is called once in each run, when the loops have processed
	// everything that existed at its start.
	Steady func()
	// Log is passed to the loops.
	Log logr.Logger
}

// Manager holds the watches and the loops that they feed.
type Manager struct {
	o      Options
	client metadata.Interface
	http   *http.Client
	kinds  map[schema.GroupVersionKind]Kind
	stores map[schema.GroupVersionKind]kept
	words  packed.Dictionary
	tasks  []func(context.Context) error
	// loops are the names of the loops that tasks run, queues those of Add.
	loops  []string
	queues []*reconcile.Queue
	// unwatchable joins the errors of watches that could not be set up.
	unwatchable error
}

// New returns a Manager that watches nothing yet.
func New(o Options) (*Manager, error) {
	m := &Manager{o: o, kinds: map[schema.GroupVersionKind]Kind{}, stores: map[schema.GroupVersionKind]kept{}}
	for _, k := range o.Kinds {
		kind, err := kindOf(k.Example, o.Scheme)
		if err != nil {
			return nil, fmt.Errorf("limiting what is kept: %w", err)
		}
		if _, twice := m.kinds[kind]; twice {
			return nil, fmt.Errorf("limiting what is kept of %s: there are two entries for it", kind)
		}
		m.kinds[kind] = k
	}
	var err error
	if m.http, err = rest.HTTPClientFor(o.Config); err != nil {
		return nil, fmt.Errorf("making the connection: %w", err)
	}
	if m.client, err = metadata.NewForConfigAndClient(metadata.ConfigFor(o.Config), m.http); err != nil {
		return nil, fmt.Errorf("making the client of metadata: %w", err)
	}
	return m, nil
}

// Reader returns a Reader for the kinds that are watched.
func (m *Manager) Reader() Reader { return reads{scheme: m.o.Scheme, stores: m.stores} }

// store returns the store for the kind of example, in its form.
func (m *Manager) store(example reconcile.Object) (kept, error) {
	kind, err := kindOf(example, m.o.Scheme)
	if err != nil {
		return nil, err
	}
	limits, named := m.kinds[kind]
	if !named {
		limits.Example = example
		m.kinds[kind] = limits
	}
	if reflect.TypeOf(limits.Example) != reflect.TypeOf(example) {
		return nil, fmt.Errorf("watching %s: it is watched in two forms", kind.Kind)
	}
	if s := m.stores[kind]; s != nil {
		return s, nil
	}
	s, err := m.newStore(kind, limits)
	if err != nil {
		return nil, err
	}
	m.stores[kind] = s
	return s, nil
}

func (m *Manager) newStore(kind schema.GroupVersionKind, limits Kind) (kept, error) {
	if isMetadata(limits.Example) {
		limits.Packed = true
		return newStore(kind, limits, m.metadataSource(kind, limits), m.metadataForm()), nil
	}
	from, err := m.wholeSource(kind, limits)
	if err != nil {
		return nil, err
	}
	if !limits.Packed {
		return newStore(kind, limits, from, plainForm), nil
	}
	f, err := wholeForm(limits.Example)
	if err != nil {
		return nil, err
	}
	return newStore(kind, limits, from, f), nil
}

// Add registers a loop with its queue, before Run.
func (m *Manager) Add(l reconcile.Loop, q *reconcile.Queue) {
	m.queues = append(m.queues, q)
	m.AddLoops([]string{l.Name}, func(ctx context.Context) error { return l.Run(ctx, q) })
}

// AddTask registers a function that runs beside the loops until its context ends; call it
// before Run. Its error ends Run.
func (m *Manager) AddTask(task func(context.Context) error) { m.tasks = append(m.tasks, task) }

// AddLoops registers a task, as AddTask does, that runs the named loops with queues of
// its own.
func (m *Manager) AddLoops(names []string, task func(context.Context) error) {
	m.loops = append(m.loops, names...)
	m.AddTask(task)
}

// Loops returns the names of the registered loops.
func (m *Manager) Loops() []string { return m.loops }

// Watch calls changed with the old and the new state of each object of the kind of
// example: old is nil when the object is new, current is nil when it is gone. Objects
// belong to the Manager and must not be changed. changed must not block. A kind that
// cannot be watched ends Run.
func Watch[T reconcile.Object](m *Manager, example T, changed func(old, current T)) {
	s, err := m.store(example)
	if err != nil {
		m.unwatchable = errors.Join(m.unwatchable, err)
		return
	}
	s.addHandler(func(old, current reconcile.Object) {
		o, _ := old.(T)
		n, _ := current.(T)
		changed(o, n)
	})
}

// Keep watches the kind of example for callers that only read it.
func Keep(m *Manager, example reconcile.Object) { Watch(m, example, func(_, _ reconcile.Object) {}) }

// Run starts the watches, waits until everything that exists is known, then runs tasks
// and loops until ctx ends. It returns when all have ended.
func (m *Manager) Run(ctx context.Context) error {
	if m.unwatchable != nil {
		return m.unwatchable
	}
	group, ctx := errgroup.WithContext(logr.NewContext(ctx, m.o.Log))
	run := func(f func(context.Context) error) {
		group.Go(func() error {
			if err := f(ctx); ctx.Err() == nil {
				return err
			}
			return nil // failures that come with the end are part of it
		})
	}
	// Handlers maintain indexes, which must be complete before a loop reads them.
	if m.fill(ctx, run) {
		run(m.untilSteady)
		for _, task := range m.tasks {
			run(task)
		}
	}
	return group.Wait()
}

// fill starts all watches and waits until they are synced; it returns false if ctx ends
// first. Packed kinds, which have many objects, are filled one after the other: the
// temporary memory of a list is then needed once, not once for each kind.
func (m *Manager) fill(ctx context.Context, run func(func(context.Context) error)) bool {
	kinds := slices.SortedFunc(maps.Keys(m.stores), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	for _, kind := range kinds {
		if s := m.stores[kind]; !s.settings().Packed {
			run(s.run)
		}
	}
	for _, kind := range kinds {
		s := m.stores[kind]
		if s.settings().Packed {
			run(s.run)
		}
		select {
		case <-ctx.Done():
			return false
		case <-s.filled():
		}
	}
	return true
}

// untilSteady waits until no key waits for a worker.
func (m *Manager) untilSteady(ctx context.Context) error {
	if m.o.Steady == nil {
		return nil
	}
	for slices.ContainsFunc(m.queues, func(q *reconcile.Queue) bool { return q.Len() > 0 }) {
		select {
		case <-ctx.Done():
			return nil
		case <-m.o.Clock.After(steadyCheck):
		}
	}
	m.o.Steady()
	return nil
}
