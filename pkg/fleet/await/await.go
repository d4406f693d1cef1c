// SPDX-License-Identifier: Apache-2.0

package await

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
)

// Pauses between attempts. Discovery of a kind that is not served yet is retried at the
// shorter one.
const (
	shortPause = 300 * time.Millisecond
	longPause  = 2 * time.Second
)

// Query names the objects to watch.
type Query struct {
	// Client reads them.
	Client dynamic.Interface
	// Resource is their type. While it is not served the set is empty.
	Resource schema.GroupVersionResource
	// Namespace may be empty.
	Namespace string
	// Name selects one object; empty selects all.
	Name string
	// Labels is a label selector; empty selects all.
	Labels string
	// Clock paces the attempts; nil means the real clock.
	Clock clock.WithTicker
}

// Done reports whether the current set, sorted by namespace and name, is as wanted. It must
// not change the objects. An error ends the wait.
type Done func([]*unstructured.Unstructured) (bool, error)

// Expired is the error of a wait that reached its deadline.
type Expired struct {
	// LastEvent is when the set changed last; zero when it never did.
	LastEvent time.Time
	// Err is the last error of the server; nil when it answered.
	Err error
}

// Error says what was in the way, as far as it is known.
func (e *Expired) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("timed out: %v", e.Err)
	}
	return "timed out"
}

// Unwrap returns context.DeadlineExceeded and the last error of the server.
func (e *Expired) Unwrap() []error { return []error{context.DeadlineExceeded, e.Err} }

// Objects waits until done returns true for the objects of q. It returns *Expired when ctx
// ends, the error of done, or an error of the server that a retry cannot fix.
func Objects(ctx context.Context, q Query, done Done) error {
	if q.Clock == nil {
		q.Clock = clock.RealClock{}
	}
	w := &waiter{Query: q, done: done, set: map[string]*unstructured.Unstructured{}}
	for {
		finished, pause, err := w.listAndWatch(ctx)
		switch {
		case finished:
			return nil
		case ctx.Err() != nil:
			return ended(ctx, &w.end)
		case err != nil:
			return err
		}
		select {
		case <-ctx.Done():
			return ended(ctx, &w.end)
		case <-q.Clock.After(pause):
		}
	}
}

// Gone waits until the object is gone that q names and that has the uid. It calls see with
// each state of it.
func Gone(ctx context.Context, q Query, uid types.UID, see func(*unstructured.Unstructured)) error {
	return Objects(ctx, q, func(items []*unstructured.Unstructured) (bool, error) {
		if len(items) == 0 || items[0].GetUID() != uid {
			return true, nil
		}
		see(items[0])
		return false, nil
	})
}

type waiter struct {
	Query
	done    Done
	set     map[string]*unstructured.Unstructured
	version string
	// end is the error of the wait if it reaches its deadline now.
	end Expired
}

// ended returns how the wait ended with its context: interrupted, or at its deadline.
func ended(ctx context.Context, at *Expired) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return at
}

func (w *waiter) options() metav1.ListOptions {
	o := metav1.ListOptions{LabelSelector: w.Labels}
	if w.Name != "" {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", w.Name).String()
	}
	return o
}

// listAndWatch lists, unless a resource version to resume from is known, and watches until the watch
// ends. A pause above zero means that a retry makes sense.
func (w *waiter) listAndWatch(ctx context.Context) (finished bool, pause time.Duration, err error) {
	if w.version == "" {
		if finished, pause, err = w.list(ctx); finished || err != nil || pause > 0 {
			return finished, pause, err
		}
	}
	o := w.options()
	o.ResourceVersion, o.AllowWatchBookmarks = w.version, true
	stream, err := w.Client.Resource(w.Resource).Namespace(w.Namespace).Watch(ctx, o)
	if err != nil {
		w.version = ""
		return false, shortPause, w.permanentError(err)
	}
	defer stream.Stop()
	finished, err = w.follow(ctx, stream)
	return finished, shortPause, err
}

func (w *waiter) list(ctx context.Context) (bool, time.Duration, error) {
	list, err := w.Client.Resource(w.Resource).Namespace(w.Namespace).List(ctx, w.options())
	if apierrors.IsNotFound(err) {
		w.set = map[string]*unstructured.Unstructured{}
		finished, err := w.evaluate()
		return finished, shortPause, err
	}
	if err != nil {
		return false, longPause, w.permanentError(err)
	}
	w.end.Err, w.version = nil, list.GetResourceVersion()
	w.set = map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		w.set[key(&list.Items[i])] = &list.Items[i]
	}
	finished, err := w.evaluate()
	return finished, 0, err
}

// permanentError returns err when a retry cannot help.
func (w *waiter) permanentError(err error) error {
	w.end.Err = err
	if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) {
		return err
	}
	return nil
}

func (w *waiter) follow(ctx context.Context, stream watch.Interface) (bool, error) {
	for {
		select {
		case <-ctx.Done():
			return false, nil
		case event, open := <-stream.ResultChan():
			if !open {
				return false, nil
			}
			u, ok := event.Object.(*unstructured.Unstructured)
			if event.Type == watch.Error || !ok {
				w.version = ""
				return false, nil
			}
			w.version = u.GetResourceVersion()
			if event.Type == watch.Bookmark {
				continue
			}
			if event.Type == watch.Deleted {
				delete(w.set, key(u))
			} else {
				w.set[key(u)] = u
			}
			w.end.LastEvent = w.Clock.Now()
			if finished, err := w.evaluate(); finished || err != nil {
				return finished, err
			}
		}
	}
}

func (w *waiter) evaluate() (bool, error) {
	byKey := func(a, b *unstructured.Unstructured) int { return strings.Compare(key(a), key(b)) }
	return w.done(slices.SortedFunc(maps.Values(w.set), byKey))
}

func key(u *unstructured.Unstructured) string { return u.GetNamespace() + "/" + u.GetName() }

// True calls try at once and then after every pause until it returns true. It returns *Expired
// with the last error of try when ctx ends.
func True(ctx context.Context, clk clock.WithTicker, pause time.Duration, try func(context.Context) (bool, error)) error {
	var last Expired
	for {
		ok, err := try(ctx)
		if ok {
			return nil
		}
		if err != nil {
			last.Err = err
		}
		select {
		case <-ctx.Done():
			return ended(ctx, &last)
		case <-clk.After(pause):
		}
	}
}
