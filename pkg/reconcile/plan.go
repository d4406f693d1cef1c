// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Object is a typed API object, as a pointer, with apiVersion and kind set.
type Object interface {
	metav1.Object
	runtime.Object
}

// Key names one object of a loop's kind; Namespace is empty for cluster scope.
type Key = types.NamespacedName

// KeyOf names an object.
func KeyOf(o metav1.Object) Key { return Key{Namespace: o.GetNamespace(), Name: o.GetName()} }

// IgnoreNotFound returns err unless it says that an object does not exist.
func IgnoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Result is what a pass asks of its queue.
type Result struct {
	// RequeueAfter brings the key back after that time; zero waits for the
	// next event.
	RequeueAfter time.Duration
}

// Sooner returns the result that comes back first.
func (r Result) Sooner(o Result) Result {
	if r.RequeueAfter == 0 || (o.RequeueAfter != 0 && o.RequeueAfter < r.RequeueAfter) {
		return o
	}
	return r
}

// Event is a Kubernetes Event about the reconciled object, sent once the writes
// of the plan have succeeded.
type Event struct {
	// Type is Normal or Warning.
	Type string
	// Reason and Action are CamelCase words; Action defaults to Reason.
	Reason, Action string
	// Message is a sentence for people, at most 1,024 bytes.
	Message string
	// Namespace holds the Event; the object's own where empty, or "default"
	// for cluster-scoped objects.
	Namespace string
	// Reporter is the reporting controller, where the API's contract names one;
	// empty means the loop.
	Reporter string
	// Related is another object that it is about, unless nil. Its kind, namespace
	// and name count.
	Related Object
	// Once lets the object have one Event of the reason, however often a plan
	// tells it: a pass may be repeated before the caches show what the last one did.
	Once bool
	// Of tells several of a reason apart that are told once each.
	Of string
	// WithStatus sends it as soon as the status of the object is written, whatever
	// became of other writes. It is for what tells of a change of the status: the next
	// pass does not see that change.
	WithStatus bool
}

// Plan is what a decision wants done.
type Plan struct {
	// Object is the reconciled object as it should be: a changed deep copy of
	// what was gathered, or nil to leave it alone. Metadata and spec are sent
	// in one merge patch, the status in another, each only if it differs.
	Object Object
	// Writes are made in this order once the reconciled object has its new finalizers
	// and spec, as Order says.
	Writes []Write
	Order  Order
	// Events are sent last, but for those with the status; a failure to send one is
	// not an error.
	Events []Event
	// RequeueAfter brings the object back; zero waits for the next event.
	RequeueAfter time.Duration
	// OnFailure is set as a condition of Object, with the errors as its
	// message, when a write failed. Object must be non-nil then.
	OnFailure *metav1.Condition
}

// Run is one pass over obj: gather, decide, execute.
func Run[O Object, S any](ctx context.Context, e *Executor, obj O, gather func(context.Context, O) (S, error), decide func(S) Plan) (Result, error) {
	state, err := gather(ctx, obj)
	if err != nil {
		return Result{}, fmt.Errorf("gathering for %s: %w", name(obj), err)
	}
	return e.Execute(ctx, obj, decide(state))
}

func name(o metav1.Object) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}
