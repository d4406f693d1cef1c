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
	"k8s.io/klog/v2"
)

// Object is a typed API object, as a pointer, with apiVersion and kind set.
type Object interface {
	metav1.Object
	runtime.Object
}

// Key names one object of a loop's kind; Namespace is empty for cluster-scoped kinds.
type Key = types.NamespacedName

// KeyOf returns the key of an object.
func KeyOf(o metav1.Object) Key { return Key{Namespace: o.GetNamespace(), Name: o.GetName()} }

// IgnoreNotFound returns nil if err says that an object does not exist, and err otherwise.
func IgnoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Result is what a pass asks of its queue.
type Result struct {
	// RequeueAfter requeues the key after that time; zero waits for the next event.
	RequeueAfter time.Duration
}

// Sooner returns the result that requeues first.
func (r Result) Sooner(o Result) Result {
	if r.RequeueAfter == 0 || (o.RequeueAfter != 0 && o.RequeueAfter < r.RequeueAfter) {
		return o
	}
	return r
}

// Event is a Kubernetes Event about the reconciled object, sent once the writes of the plan
// have succeeded.
type Event struct {
	// Type is Normal or Warning.
	Type string
	// Reason and Action are in CamelCase; Action defaults to Reason.
	Reason, Action string
	// Message is a sentence for people, at most 1,024 bytes; the rest is cut off.
	Message string
	// Namespace is where the Event is created; empty means the object's namespace, or
	// "default" for cluster-scoped objects.
	Namespace string
	// Reporter is the reporting controller, where an API contract names one; empty means
	// the loop.
	Reporter string
	// Related is another object that the Event is about, or nil. Only its kind, namespace
	// and name count.
	Related Object
	// Once sends one Event per object and reason, however often a plan contains it: a pass
	// may be repeated before the caches show what the last one did.
	Once bool
	// Of distinguishes several Once events of the same reason.
	Of string
	// After says which part of the plan has to succeed before the Event is sent.
	After Part
}

// Part is a part of a plan.
type Part int

const (
	// Everything is the whole plan.
	Everything Part = iota
	// Writes are Plan.Writes, even if the status is refused after them. They are for events about
	// these writes, which the next pass does not see.
	Writes
	// Status is the status of the reconciled object, even if other writes failed. It is for events about
	// a change of the status, which the next pass does not see.
	Status
)

// Plan is what a decision wants done.
type Plan struct {
	// Object is the reconciled object as it should be: a changed deep copy of the gathered
	// object, or nil to leave it alone. Metadata and spec are sent in one merge patch, the
	// status in another, each only if it differs.
	Object Object
	// Writes are sent after the reconciled object has its new finalizers and spec; Order
	// says how they depend on each other.
	Writes []Write
	Order  Order
	// Events are sent after the part of the plan that each is about. Failing to send one is not
	// an error.
	Events []Event
	// RequeueAfter requeues the object after that time; zero waits for the next event.
	RequeueAfter time.Duration
	// OnFailure is set as a condition of Object when a write fails, with the errors added
	// to its message. Object must not be nil then.
	OnFailure *metav1.Condition
}

// Run is one pass over obj: gather, decide, execute.
func Run[O Object, S any](ctx context.Context, e *Executor, obj O, gather func(context.Context, O) (S, error), decide func(S) Plan) (Result, error) {
	state, err := gather(ctx, obj)
	if err != nil {
		return Result{}, fmt.Errorf("gathering for %s: %w", klog.KObj(obj), err)
	}
	return e.Execute(ctx, obj, decide(state))
}
