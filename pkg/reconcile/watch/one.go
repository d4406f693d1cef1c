// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// OneOptions configure a One.
type OneOptions[T any] struct {
	// Resource is the resource of the object.
	Resource schema.GroupVersionResource
	// Keep returns what is stored of the object, as in Options.
	Keep func(*unstructured.Unstructured) (T, bool)
	// OnChange is called when there is something new to see; it must not block.
	OnChange func()
	// Log reports what cannot be read; the zero value is silent.
	Log logr.Logger
}

// Sight is what is known of an object.
type Sight[T any] struct {
	// Known is false until the API server has answered. Err is why it does not answer now,
	// or nil; while it is set, the other fields may be stale.
	Known bool
	Err   error
	// Found reports whether the object exists; Item is what was kept of it.
	Found bool
	Item  T
}

// One watches a single object by name, which is the cheapest kind of watch, from the first
// Look until Close or a Look at another object. Its methods are safe for concurrent use.
type One[T any] struct {
	o OneOptions[T]

	mu     sync.Mutex
	key    reconcile.Key
	client dynamic.Interface
	held   *Collection[T]
	stop   func()
}

// NewOne returns a One that watches nothing yet.
func NewOne[T any](o OneOptions[T]) *One[T] { return &One[T]{o: o} }

// Look returns what is known of the object and starts to watch it if necessary. The watch
// lasts until ctx ends, so ctx must outlive the call. An empty name ends the watch.
func (w *One[T]) Look(ctx context.Context, client dynamic.Interface, key reconcile.Key) Sight[T] {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.key != key || w.client != client {
		w.end()
		w.key, w.client = key, client
		if key.Name != "" {
			w.begin(ctx)
		}
	}
	if key.Name == "" {
		return Sight[T]{}
	}
	if !closed(w.held.Synced()) {
		return Sight[T]{Err: w.held.Err()}
	}
	item, ok := w.held.Get(key)
	return Sight[T]{Known: true, Err: w.held.Err(), Found: ok, Item: item}
}

func (w *One[T]) begin(ctx context.Context) {
	w.held = New(Options[T]{
		Client: w.client, Resource: w.o.Resource, Namespace: w.key.Namespace, FieldSelector: "metadata.name=" + w.key.Name,
		Keep: w.o.Keep, Log: w.o.Log,
	})
	w.held.OnChange(func(reconcile.Key) { w.o.OnChange() })
	w.held.OnOutcome(func(error) { w.o.OnChange() })
	w.held.OnSynced(w.o.OnChange)
	ctx, cancel := context.WithCancel(ctx)
	held := w.held
	var running sync.WaitGroup
	running.Go(func() { _ = held.Run(ctx) })
	w.stop = func() { cancel(); running.Wait() }
}

// end stops the watch and waits until it has stopped.
func (w *One[T]) end() {
	if w.stop != nil {
		w.stop()
	}
	w.stop, w.held = nil, nil
}

// Close ends the watch; a later Look starts it again.
func (w *One[T]) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end()
	w.key, w.client = reconcile.Key{}, nil
}
