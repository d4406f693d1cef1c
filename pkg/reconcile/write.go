// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Write is one write of a plan to an object other than the reconciled one: an Apply,
// Create, Patch or Remove.
type Write interface {
	// target names the object.
	target() Target
	// send makes the write and returns the resulting object, or nil if it is gone.
	send(ctx context.Context, e *Executor) (*unstructured.Unstructured, error)
}

// Order says how the writes of a plan depend on each other.
type Order int

const (
	// Independent writes are sent one after the other. Each is tried even if another
	// failed, unless an earlier write to the same object failed.
	Independent Order = iota
	// Strict writes are sent one after the other, each only if all before it succeeded. A
	// conflict ends the plan: nothing more is written, and the key is requeued.
	Strict
	// Parallel writes are all tried, several at a time; removals come after all others.
	Parallel
	// Chains are Strict among the writes to one object. Those to different objects do not depend on
	// each other, and are sent several at a time. A conflict ends the plan once all have been tried.
	Chains
)

// Target names an object to write.
type Target struct {
	Resource  schema.GroupVersionResource
	Namespace string
	Name      string
	// UID limits the write to the object with this UID; empty means whatever object has the
	// name now.
	UID types.UID
	// Version, together with UID, is the resourceVersion that the decision was based on: if
	// the object has changed since, the write is a conflict and the object stays. Empty
	// means the version that a live read finds. The result of an earlier write of the same
	// plan takes precedence.
	Version string
}

// String names the target for messages: "roles c1/x".
func (t Target) String() string {
	return t.Resource.Resource + " " + klog.KRef(t.Namespace, t.Name).String()
}

// targetOf returns the target of an object, by its kind.
func targetOf(o Object) Target {
	return Target{Resource: ResourceOf(o.GetObjectKind().GroupVersionKind()), Namespace: o.GetNamespace(), Name: o.GetName()}
}

// Apply writes an object by server-side apply.
type Apply struct {
	// Object holds exactly the fields that the loop owns.
	Object Object
	// LiveVersion is the object's resourceVersion in the loop's cache, empty when the
	// object is absent or not watched. Nothing is sent if both it and the intent are those
	// of the last apply.
	LiveVersion string
	// Exact also removes fields that others added to the object's spec, which server-side
	// apply would leave alone.
	Exact bool
}

func (a Apply) target() Target { return targetOf(a.Object) }

func (a Apply) send(ctx context.Context, e *Executor) (*unstructured.Unstructured, error) {
	u, err := typed.ToUnstructured(a.Object)
	if err != nil {
		return nil, err
	}
	intent, err := json.Marshal(u)
	if err != nil {
		return nil, fmt.Errorf("encoding %s %s: %w", u.GetKind(), klog.KObj(u), err)
	}
	at := targetOf(u)
	if e.applied.unchanged(at, intent, a.LiveVersion) {
		return nil, errUnchanged
	}
	live, err := e.client.Resource(at.Resource).Namespace(at.Namespace).Apply(ctx, at.Name, u,
		metav1.ApplyOptions{FieldManager: e.Manager(), Force: true})
	if err != nil {
		return nil, fmt.Errorf("applying %s %s: %w", u.GetKind(), klog.KObj(u), err)
	}
	if a.Exact && !reflect.DeepEqual(u.Object["spec"], live.Object["spec"]) {
		if live, err = e.replaceSpec(ctx, at.Resource, live, u.Object["spec"]); err != nil {
			return nil, err
		}
	}
	e.applied.remember(at, intent, live.GetResourceVersion())
	return live, nil
}

// errUnchanged reports that nothing was sent, because the object already is as desired.
var errUnchanged = errors.New("nothing to write")

// Create creates an object. It fails if the object exists.
type Create struct {
	Object Object
	// Lenient accepts an existing object as it is, no matter who created it.
	Lenient bool
}

func (c Create) target() Target { return targetOf(c.Object) }

func (c Create) send(ctx context.Context, e *Executor) (*unstructured.Unstructured, error) {
	u, err := typed.ToUnstructured(c.Object)
	if err != nil {
		return nil, err
	}
	at := targetOf(u)
	live, err := e.client.Resource(at.Resource).Namespace(at.Namespace).Create(ctx, u, metav1.CreateOptions{FieldManager: e.Manager()})
	switch {
	case c.Lenient && apierrors.IsAlreadyExists(err):
		return nil, errUnchanged
	case err != nil:
		return nil, fmt.Errorf("creating %s: %w", at, err)
	}
	return live, nil
}

// Patch changes an existing object. If the object is gone or does not match the target, the
// result is a conflict.
type Patch struct {
	Target
	// Body is a JSON merge patch, without uid and resourceVersion.
	Body map[string]any
	// Subresource is what the patch goes to; empty means the object itself.
	Subresource string
}

func (p Patch) target() Target { return p.Target }

func (p Patch) send(ctx context.Context, e *Executor) (*unstructured.Unstructured, error) {
	return e.mergePatch(ctx, p.Target, p.Body, p.Subresource)
}

// Remove deletes an object. It succeeds if the object is gone or already being deleted.
type Remove struct{ Target }

func (r Remove) target() Target { return r.Target }

func (r Remove) send(ctx context.Context, e *Executor) (*unstructured.Unstructured, error) {
	err := Delete(ctx, e.client, r.Target)
	if err == nil {
		e.applied.forget(r.Target)
	}
	return nil, err
}

func removes(w Write) bool {
	_, is := w.(Remove)
	return is
}

// Of returns the writes of one type, in their order.
func Of[W Write](writes []Write) []W {
	var out []W
	for _, w := range writes {
		if one, ok := w.(W); ok {
			out = append(out, one)
		}
	}
	return out
}

// OnWrite sets a function that is called after each write with the object as it is now, or
// nil if it is gone, but not for writes that were unnecessary. It is called before the next
// write is sent, and by several goroutines at a time if the plan's Order is Parallel.
func (e *Executor) OnWrite(f func(at Target, live *unstructured.Unstructured)) { e.onWrite = f }

// write sends the writes of a plan.
func (e *Executor) write(ctx context.Context, p Plan) error {
	switch p.Order {
	case Parallel:
		one := func(w Write) error {
			_, err := e.writeOne(ctx, w)
			return err
		}
		kept := slices.DeleteFunc(slices.Clone(p.Writes), removes)
		removed := slices.DeleteFunc(slices.Clone(p.Writes), func(w Write) bool { return !removes(w) })
		return errors.Join(each(kept, parallel, one), each(removed, parallel, one))
	case Chains:
		return each(chains(p.Writes), parallel, func(chain []Write) error { return e.writeInOrder(ctx, chain, Strict) })
	}
	return e.writeInOrder(ctx, p.Writes, p.Order)
}

// chains returns the writes to each object, in their order.
func chains(writes []Write) [][]Write {
	var out [][]Write
	at := map[Target]int{}
	for _, w := range writes {
		object := objectOf(w)
		i, known := at[object]
		if !known {
			i = len(out)
			at[object], out = i, append(out, nil)
		}
		out[i] = append(out[i], w)
	}
	return out
}

// objectOf names the object of a write, whichever version of it is meant.
func objectOf(w Write) Target {
	at := w.target()
	at.UID, at.Version = "", ""
	return at
}

// writeInOrder sends writes one after the other.
func (e *Executor) writeInOrder(ctx context.Context, writes []Write, order Order) error {
	left, failed := map[Target]*unstructured.Unstructured{}, map[Target]bool{}
	ended := false
	return each(writes, 1, func(w Write) error {
		at := objectOf(w)
		if ended || failed[at] {
			return nil
		}
		live, err := e.writeOne(ctx, following(w, left[at]))
		left[at], failed[at] = live, err != nil
		ended = err != nil && order == Strict
		return err
	})
}

// following adapts w to follow an earlier write of the plan that left live; nil means that
// there was none.
func following(w Write, live *unstructured.Unstructured) Write {
	if live == nil {
		return w
	}
	switch w := w.(type) {
	case Patch:
		w.UID, w.Version = live.GetUID(), live.GetResourceVersion()
		return w
	case Remove:
		w.UID, w.Version = live.GetUID(), live.GetResourceVersion()
		return w
	}
	return w
}

// writeOne sends one write and calls OnWrite's function.
func (e *Executor) writeOne(ctx context.Context, w Write) (*unstructured.Unstructured, error) {
	live, err := w.send(ctx, e)
	_, patched := w.(Patch)
	gone := patched && apierrors.IsNotFound(err)
	if e.onWrite != nil && (err == nil || gone) {
		// A cache that never held the object will not report that it is gone.
		e.onWrite(w.target(), live)
	}
	switch {
	case errors.Is(err, errUnchanged):
		return nil, nil
	case gone:
		at := w.target()
		return nil, apierrors.NewConflict(at.Resource.GroupResource(), at.Name, err)
	}
	return live, err
}

// TargetOf returns the target of a write.
func TargetOf(w Write) Target { return w.target() }
