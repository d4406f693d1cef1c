// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Object is a typed API object, as a pointer, with apiVersion and kind set.
type Object interface {
	metav1.Object
	runtime.Object
}

// Key names one object of a loop's kind; Namespace is empty for cluster scope.
type Key = types.NamespacedName

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

// Apply is an object to write by server-side apply.
type Apply struct {
	// Object holds exactly the fields that the loop owns.
	Object Object
	// LiveVersion is the resourceVersion that the loop's cache shows for the
	// object, empty when it is absent or not watched. When both it and the
	// intent are what the last apply left behind, nothing is sent.
	LiveVersion string
	// Create only creates the object: one that is there already, whoever made
	// it, is left as it is, and that is no error.
	Create bool
	// Exact also takes out of the object's spec what others have put beside the
	// intent, which server-side apply leaves to them.
	Exact bool
}

// Target names an object to delete.
type Target struct {
	Resource  schema.GroupVersionResource
	Namespace string
	Name      string
	// UID makes sure that only this very object is deleted; empty means
	// whatever has the name now.
	UID types.UID
	// Version, with UID, is the resourceVersion that the decision was made on: an
	// object that changed since is a conflict and stays. Empty means the version
	// that a live read finds.
	Version string
}

// String names the target for messages: "roles c1/x".
func (t Target) String() string {
	if t.Namespace == "" {
		return t.Resource.Resource + " " + t.Name
	}
	return t.Resource.Resource + " " + t.Namespace + "/" + t.Name
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
	// Steps are writes that need each other's order. They are made before Apply;
	// the first that fails ends the plan, but for OnFailure. If that is a conflict,
	// nothing more is written, and the loop comes again.
	Steps []Step
	// Apply lists objects to write, in order.
	Apply []Apply
	// Patches are patches of objects that exist, several at a time: each is tried
	// though another fails. They are sent with Apply. OnStep is not told of them.
	Patches []Step
	// Unordered says that no object of Apply needs another, nor one of Delete:
	// several are on their way at a time.
	Unordered bool
	// Delete lists objects that must not exist. It is carried out after Apply.
	Delete []Target
	// Events are sent last, but for those with the status; a failure to send one is
	// not an error.
	Events []Event
	// RequeueAfter brings the object back; zero waits for the next event.
	RequeueAfter time.Duration
	// OnFailure is set as a condition of Object, with the errors as its
	// message, when an apply or a delete failed. Object must be non-nil then.
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
