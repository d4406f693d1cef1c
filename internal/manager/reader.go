// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Reader reads what a Manager keeps of the kinds that its loops watch. It sends no
// requests.
type Reader interface {
	// Get reads one object into o. It returns a NotFound error of the API if there is
	// none, and another error if the kind is not watched in the form of o.
	Get(ctx context.Context, key reconcile.Key, o reconcile.Object, options ...ReadOption) error
	// List reads objects into l, in no order.
	List(ctx context.Context, l List, options ...ReadOption) error
	// of returns the kind of an object or a list, and its store.
	of(o runtime.Object) (schema.GroupVersionKind, kept, error)
}

// List is a list of objects of the API.
type List interface {
	metav1.ListInterface
	runtime.Object
}

// ReadOption restricts a read, or makes it cheaper.
type ReadOption func(*reading)

type reading struct {
	namespace string
	labels    labels.Selector
	limit     int
	shared    bool
}

// InNamespace lists only the objects of a namespace.
func InNamespace(namespace string) ReadOption {
	return func(r *reading) { r.namespace = namespace }
}

// WithLabels lists only the objects that have all these labels.
func WithLabels(all map[string]string) ReadOption {
	return func(r *reading) { r.labels = labels.SelectorFromSet(all) }
}

// AtMost lists at most n objects, in no particular order.
func AtMost(n int) ReadOption {
	return func(r *reading) { r.limit = n }
}

// NotCopied returns the objects that the Manager keeps, without a copy. The result must
// not be changed.
func NotCopied(r *reading) { r.shared = true }

func read(options []ReadOption) reading {
	out := reading{labels: labels.Everything()}
	for _, o := range options {
		o(&out)
	}
	return out
}

// reads implements Reader with the stores.
type reads struct {
	scheme *runtime.Scheme
	stores map[schema.GroupVersionKind]kept
}

// Get implements Reader.
func (r reads) Get(_ context.Context, key reconcile.Key, o reconcile.Object, options ...ReadOption) error {
	kind, s, err := r.of(o)
	if err != nil {
		return err
	}
	if reflect.TypeOf(o) != reflect.TypeOf(s.settings().Example) {
		return fmt.Errorf("reading a %s into %T: what is kept of it is %T", kind.Kind, o, s.settings().Example)
	}
	found := s.get(key)
	if found == nil {
		return apierrors.NewNotFound(reconcile.ResourceOf(kind).GroupResource(), key.Name)
	}
	if !read(options).shared {
		found = copied(s, found)
	}
	reflect.ValueOf(o).Elem().Set(reflect.ValueOf(found).Elem())
	return nil
}

// List implements Reader.
func (r reads) List(_ context.Context, l List, options ...ReadOption) error {
	kind, s, err := r.of(l)
	if err != nil {
		return err
	}
	wanted := read(options)
	var found []runtime.Object
	s.each(wanted.namespace, func(o reconcile.Object) bool {
		if wanted.labels.Matches(labels.Set(o.GetLabels())) {
			if !wanted.shared {
				o = copied(s, o)
			}
			found = append(found, o)
		}
		return wanted.limit <= 0 || len(found) < wanted.limit
	})
	if err := apimeta.SetList(l, found); err != nil {
		return fmt.Errorf("listing %s: %w", kind.Kind, err)
	}
	return nil
}

// copied returns a copy of an object, if it is the one that is kept.
func copied(s kept, o reconcile.Object) reconcile.Object {
	if s.settings().Packed {
		return o
	}
	out, _ := o.DeepCopyObject().(reconcile.Object)
	return out
}

// of implements Reader.
func (r reads) of(o runtime.Object) (schema.GroupVersionKind, kept, error) {
	kind, err := kindOf(o, r.scheme)
	if err != nil {
		return kind, nil, err
	}
	if _, many := o.(List); many {
		kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	}
	s := r.stores[kind]
	if s == nil {
		return kind, nil, fmt.Errorf("reading %s: no loop watches it", kind.Kind)
	}
	return kind, s, nil
}

// Each calls f with every object of the kind of example, one at a time: a list of all
// packed objects would temporarily need much more memory than the packed ones. f must not
// read from r.
func Each[T reconcile.Object](r Reader, example T, f func(T)) error {
	_, s, err := r.of(example)
	if err != nil {
		return err
	}
	s.each("", func(o reconcile.Object) bool {
		if t, ok := o.(T); ok {
			f(t)
		}
		return true
	})
	return nil
}

// For adapts a function of objects to a loop's keys: reconcile is called with a copy of
// the kept object, which it may change. If the object is gone, gone is called with its
// key, unless gone is nil.
func For[T any, P interface {
	*T
	reconcile.Object
}](r Reader, each func(context.Context, P) (reconcile.Result, error), gone func(reconcile.Key)) func(context.Context, reconcile.Key) (reconcile.Result, error) {
	return func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
		o := P(new(T))
		switch err := r.Get(ctx, key, o); {
		case err == nil:
			return each(ctx, o)
		case !apierrors.IsNotFound(err):
			return reconcile.Result{}, fmt.Errorf("reading %s: %w", key, err)
		case gone != nil:
			gone(key)
		}
		return reconcile.Result{}, nil
	}
}
