// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
)

// conflictDelay is how soon a key is requeued after another client wrote the object first;
// the cache usually has the newer version by then.
const conflictDelay = 50 * time.Millisecond

// Executor carries out the plans of one loop.
type Executor struct {
	client  dynamic.Interface
	name    string
	clock   clock.PassiveClock
	applied appliedCache
	onWrite func(Target, *unstructured.Unstructured)
}

// NewExecutor returns the executor of the loop with that dotted name. Objects are applied
// under the field manager "ocm."+name, and events name it as their reporting controller.
func NewExecutor(client dynamic.Interface, name string, clk clock.PassiveClock) *Executor {
	return &Executor{client: client, name: name, clock: clk}
}

// Manager returns the field manager of this executor's server-side applies.
func (e *Executor) Manager() string { return "ocm." + e.name }

// Execute carries out p for the object that was gathered as before. A failing write does
// not stop the others, unless the plan's Order says so, but finalizers are dropped only
// after everything else has succeeded. A conflict, including one among the writes, requeues
// the key soon instead of returning an error.
func (e *Executor) Execute(ctx context.Context, before Object, p Plan) (Result, error) {
	result := Result{RequeueAfter: p.RequeueAfter}
	patch, err := newObjectPatch(before, p.Object)
	if err != nil {
		return Result{}, err
	}
	if err := e.patch(ctx, patch, patch.main(), ""); err != nil {
		return e.outcome(result, err)
	}
	failure := e.write(ctx, p)
	if (p.Order == Strict || p.Order == Chains) && onlyConflicts(failure) {
		return e.outcome(result, failure)
	}
	if failure != nil && p.OnFailure != nil && !onlyConflicts(failure) {
		if err := patch.setFailure(*p.OnFailure, failure, e.clock.Now()); err != nil {
			return Result{}, err
		}
	}
	if failure == nil {
		e.send(ctx, before, p.Events, Writes)
	}
	if err := e.patch(ctx, patch, patch.status(), "status"); err != nil {
		return e.outcome(result, errors.Join(failure, err))
	}
	e.send(ctx, before, p.Events, Status)
	if failure != nil {
		return e.outcome(result, failure)
	}
	if err := e.patch(ctx, patch, patch.release(), ""); err != nil {
		return e.outcome(result, err)
	}
	e.send(ctx, before, p.Events, Everything)
	return result, nil
}

// outcome turns an error into what the queue should do.
func (e *Executor) outcome(r Result, err error) (Result, error) {
	if onlyConflicts(err) {
		return r.Sooner(Result{RequeueAfter: conflictDelay}), nil
	}
	return Result{}, err
}

// onlyConflicts reports whether every error joined in err is a write conflict.
func onlyConflicts(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !onlyConflicts(e) })
	}
	return apierrors.IsConflict(err)
}

// replaceSpec overwrites the whole spec of an object in the version just read.
func (e *Executor) replaceSpec(
	ctx context.Context, resource schema.GroupVersionResource, live *unstructured.Unstructured, spec any,
) (*unstructured.Unstructured, error) {
	body, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": live.GetUID()},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()},
		{"op": "add", "path": "/spec", "value": spec},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the spec of %s %s: %w", live.GetKind(), klog.KObj(live), err)
	}
	out, err := e.client.Resource(resource).Namespace(live.GetNamespace()).
		Patch(ctx, live.GetName(), types.JSONPatchType, body, metav1.PatchOptions{FieldManager: e.Manager()})
	if err != nil {
		return nil, fmt.Errorf("replacing the spec of %s %s: %w", live.GetKind(), klog.KObj(live), err)
	}
	return out, nil
}

// Delete removes one object in the background: it reads the object and deletes it on the
// condition that its uid and resourceVersion are unchanged, or it uses those of t without
// reading if both are set. It succeeds if the object is gone, has another UID than t.UID,
// or is already being deleted.
func Delete(ctx context.Context, client dynamic.Interface, t Target) error {
	api := client.Resource(t.Resource).Namespace(t.Namespace)
	uid, version := t.UID, t.Version
	if uid == "" || version == "" {
		live, err := api.Get(ctx, t.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading %s before deleting it: %w", t, err)
		}
		uid, version = live.GetUID(), live.GetResourceVersion()
		if (t.UID != "" && t.UID != uid) || live.GetDeletionTimestamp() != nil {
			return nil
		}
	}
	background := metav1.DeletePropagationBackground
	err := api.Delete(ctx, t.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
		PropagationPolicy: &background,
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting %s: %w", t, err)
	}
	return nil
}

// patch sends a part of p, unless it is empty, and follows the object's version.
func (e *Executor) patch(ctx context.Context, p *objectPatch, body map[string]any, subresource string) error {
	if len(body) == 0 {
		return nil
	}
	live, err := e.mergePatch(ctx, p.at, body, subresource)
	switch {
	case apierrors.IsNotFound(err):
		p.gone = true
		return nil
	case err != nil:
		return err
	}
	p.at.Version = live.GetResourceVersion()
	return nil
}

// mergePatch changes the object that t names, on the condition that it has t's uid and
// resourceVersion, and returns the result.
func (e *Executor) mergePatch(ctx context.Context, t Target, body map[string]any, subresource string) (*unstructured.Unstructured, error) {
	meta := map[string]any{}
	given, _ := body["metadata"].(map[string]any)
	maps.Copy(meta, given)
	meta["uid"], meta["resourceVersion"] = string(t.UID), t.Version
	body = maps.Clone(body)
	body["metadata"] = meta
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encoding the patch of %s: %w", t, err)
	}
	var sub []string
	if subresource != "" {
		sub = []string{subresource}
	}
	live, err := e.client.Resource(t.Resource).Namespace(t.Namespace).
		Patch(ctx, t.Name, types.MergePatchType, raw, metav1.PatchOptions{FieldManager: e.Manager()}, sub...)
	if err != nil {
		return nil, fmt.Errorf("patching %s: %w", t, err)
	}
	return live, nil
}

// send writes the events of a plan that are about a part of it. Failures are only logged,
// because an event is never worth repeating the work.
func (e *Executor) send(ctx context.Context, regarding Object, events []Event, done Part) {
	for _, ev := range events {
		if ev.After != done {
			continue
		}
		if err := e.sendOne(ctx, regarding, ev); err != nil {
			logr.FromContextOrDiscard(ctx).V(1).Info("Event was not recorded", "reason", ev.Reason, "error", err.Error())
		}
	}
}

var eventsResource = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}

// maxNote is the API's limit on an Event's note, in bytes.
const maxNote = 1024

func (e *Executor) sendOne(ctx context.Context, regarding Object, ev Event) error {
	namespace := cmp.Or(ev.Namespace, regarding.GetNamespace(), metav1.NamespaceDefault)
	gvk := regarding.GetObjectKind().GroupVersionKind()
	now := e.clock.Now()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "events.k8s.io/v1",
		"kind":       "Event",
		"metadata": map[string]any{
			"namespace": namespace,
			"name":      eventName(regarding, ev, now),
		},
		"eventTime":           now.UTC().Format(metav1.RFC3339Micro),
		"type":                ev.Type,
		"reason":              ev.Reason,
		"action":              cmp.Or(ev.Action, ev.Reason),
		"note":                excerpt.Within(ev.Message, maxNote),
		"reportingController": cmp.Or(ev.Reporter, e.Manager()),
		"reportingInstance":   e.Manager(),
		"regarding": map[string]any{
			"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind,
			// The API server rejects an event whose object is in another namespace, even
			// for cluster-scoped objects.
			"namespace": namespace, "name": regarding.GetName(), "uid": string(regarding.GetUID()),
		},
	}}
	if r := ev.Related; r != nil {
		kind := r.GetObjectKind().GroupVersionKind()
		u.Object["related"] = map[string]any{
			"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind, "namespace": r.GetNamespace(), "name": r.GetName(),
		}
	}
	_, err := e.client.Resource(eventsResource).Namespace(namespace).Create(ctx, u, metav1.CreateOptions{})
	if ev.Once && apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// eventName returns a name that is unique by time, as client-go's recorders do. An event
// that is sent once is named by its object and reason instead.
func eventName(regarding Object, ev Event, now time.Time) string {
	if !ev.Once {
		return fmt.Sprintf("%s.%x", regarding.GetName(), now.UnixNano())
	}
	which := []string{string(regarding.GetUID()), ev.Reason}
	if ev.Of != "" {
		which = append(which, ev.Of)
	}
	return fmt.Sprintf("%s.%x", regarding.GetName(), digest.OfParts(which...))
}

// ResourceOf returns the resource of a kind that this project itself writes; their plurals
// are regular. Do not use it for kinds that users bring: discovery looks those up.
func ResourceOf(gvk schema.GroupVersionKind) schema.GroupVersionResource {
	plural, _ := apimeta.UnsafeGuessKindToResource(gvk)
	return plural
}
