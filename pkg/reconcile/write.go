// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Write is one write of a plan to another object than the reconciled one: an Apply, a
// Create, a Patch or a Remove.
type Write interface {
	// target names the object.
	target() Target
	// send makes the write, and returns the object as it is then, nil where it is gone.
	send(ctx context.Context, e *Executor) (*unstructured.Unstructured, error)
}

// Order says how the writes of a plan depend on each other.
type Order int

const (
	// Independent writes are made one after the other, and each is tried though another
	// fails, but for those to the object of a write that failed.
	Independent Order = iota
	// Strict writes are each made only after those before have succeeded. A conflict ends
	// the plan: nothing more is written, and the loop comes again.
	Strict
	// Parallel writes are each tried, several at a time, and removals after all others.
	Parallel
)

// Target names an object to write.
type Target struct {
	Resource  schema.GroupVersionResource
	Namespace string
	Name      string
	// UID makes sure that only this very object is written; empty means whatever has
	// the name now.
	UID types.UID
	// Version, with UID, is the resourceVersion that the decision was made on: an
	// object that changed since is a conflict and stays. Empty means the version
	// that a live read finds. What an earlier write of the plan left counts instead.
	Version string
}

// String names the target for messages: "roles c1/x".
func (t Target) String() string {
	if t.Namespace == "" {
		return t.Resource.Resource + " " + t.Name
	}
	return t.Resource.Resource + " " + t.Namespace + "/" + t.Name
}

// bare is the target whatever state the object is in.
func (t Target) bare() Target {
	return Target{Resource: t.Resource, Namespace: t.Namespace, Name: t.Name}
}

// targetOf names an object by its kind.
func targetOf(o Object) Target {
	return Target{Resource: ResourceOf(o.GetObjectKind().GroupVersionKind()), Namespace: o.GetNamespace(), Name: o.GetName()}
}

// Apply writes an object by server-side apply.
type Apply struct {
	// Object holds exactly the fields that the loop owns.
	Object Object
	// LiveVersion is the resourceVersion that the loop's cache shows for the
	// object, empty when it is absent or not watched. When both it and the
	// intent are what the last apply left behind, nothing is sent.
	LiveVersion string
	// Exact also takes out of the object's spec what others have put beside the
	// intent, which server-side apply leaves to them.
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
		return nil, fmt.Errorf("encoding %s %s: %w", u.GetKind(), name(u), err)
	}
	at := targetOf(u)
	if e.applied.unchanged(at, intent, a.LiveVersion) {
		return nil, errUnchanged
	}
	live, err := e.client.Resource(at.Resource).Namespace(at.Namespace).Apply(ctx, at.Name, u,
		metav1.ApplyOptions{FieldManager: e.Manager(), Force: true})
	if err != nil {
		return nil, fmt.Errorf("applying %s %s: %w", u.GetKind(), name(u), err)
	}
	if a.Exact && !reflect.DeepEqual(u.Object["spec"], live.Object["spec"]) {
		if live, err = e.replaceSpec(ctx, at.Resource, live, u.Object["spec"]); err != nil {
			return nil, err
		}
	}
	e.applied.remember(at, intent, live.GetResourceVersion())
	return live, nil
}

// errUnchanged says that nothing was sent, because the object is as the write wants it.
var errUnchanged = errors.New("nothing to write")

// Create makes an object. One that is there already is an error.
type Create struct {
	Object Object
	// Lenient leaves an object that is there as it is, whoever made it, and that is no
	// error.
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

// Patch changes an object that exists. One that is gone, or that is not what the
// target says, is a conflict.
type Patch struct {
	Target
	// Body is a JSON merge patch, without uid and resourceVersion.
	Body map[string]any
	// Subresource that the patch goes to; empty is the object itself.
	Subresource string
}

func (p Patch) target() Target { return p.Target }

func (p Patch) send(ctx context.Context, e *Executor) (*unstructured.Unstructured, error) {
	body := maps.Clone(p.Body)
	meta, _ := body["metadata"].(map[string]any)
	if meta = maps.Clone(meta); meta == nil {
		meta = map[string]any{}
	}
	meta["uid"], meta["resourceVersion"] = string(p.Target.UID), p.Target.Version
	body["metadata"] = meta
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encoding the patch of %s: %w", p.Target, err)
	}
	var sub []string
	if p.Subresource != "" {
		sub = []string{p.Subresource}
	}
	live, err := e.client.Resource(p.Target.Resource).Namespace(p.Target.Namespace).
		Patch(ctx, p.Target.Name, types.MergePatchType, raw, metav1.PatchOptions{FieldManager: e.Manager()}, sub...)
	if err != nil {
		return nil, fmt.Errorf("patching %s: %w", p.Target, err)
	}
	return live, nil
}

// Remove deletes an object. One that is gone, or on its way out, is success.
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

// Of are the writes of one kind, in their order.
func Of[W Write](writes []Write) []W {
	var out []W
	for _, w := range writes {
		if one, ok := w.(W); ok {
			out = append(out, one)
		}
	}
	return out
}

// OnWrite sets what is told of each write: the object as it is now, or nil once it is
// gone. A write that was not needed is not told. It is called before the next write
// is sent, and by several goroutines at a time where writes are Parallel.
func (e *Executor) OnWrite(told func(at Target, live *unstructured.Unstructured)) { e.told = told }

// write carries out the writes of a plan.
func (e *Executor) write(ctx context.Context, p Plan) error {
	if p.Order == Parallel {
		one := func(w Write) error {
			_, err := e.writeOne(ctx, w)
			return err
		}
		kept := slices.DeleteFunc(slices.Clone(p.Writes), removes)
		removed := slices.DeleteFunc(slices.Clone(p.Writes), func(w Write) bool { return !removes(w) })
		return errors.Join(each(kept, parallel, one), each(removed, parallel, one))
	}
	left, failed := map[Target]*unstructured.Unstructured{}, map[Target]bool{}
	ended := false
	return each(p.Writes, 1, func(w Write) error {
		at := w.target().bare()
		if ended || failed[at] {
			return nil
		}
		live, err := e.writeOne(ctx, following(w, left[at]))
		left[at], failed[at] = live, err != nil
		ended = err != nil && p.Order == Strict
		return err
	})
}

// following is a write after one of the same plan that left the object so; nil for
// none.
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

// writeOne makes one write and tells of it.
func (e *Executor) writeOne(ctx context.Context, w Write) (*unstructured.Unstructured, error) {
	live, err := w.send(ctx, e)
	_, patched := w.(Patch)
	gone := patched && apierrors.IsNotFound(err)
	if e.told != nil && (err == nil || gone) {
		// A cache that never had the object will not tell that it is gone.
		e.told(w.target(), live)
	}
	switch {
	case errors.Is(err, errUnchanged):
		return nil, nil
	case gone:
		at := w.target()
		return nil, apierrors.NewConflict(schema.GroupResource{Group: at.Resource.Group, Resource: at.Resource.Resource}, at.Name, err)
	}
	return live, err
}

// TargetOf names the object of a write.
func TargetOf(w Write) Target { return w.target() }
