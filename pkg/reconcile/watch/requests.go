// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/url"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// refusalRetry is how soon a request is sent again when the API server refuses it because it
// has not yet noticed new permissions or a new definition, or has just started and not yet
// read its roles: eight tries in about two seconds.
var refusalRetry = wait.Backoff{Duration: 20 * time.Millisecond, Factor: 1.8, Jitter: 0.2, Steps: 8}

// client-go returns an empty watch and no error when a watch request is not answered in
// time or its connection breaks. Here that is an error: the API server is away, and asking
// again without a pause does not help it.
var (
	unanswered    = reflect.TypeOf(apiwatch.NewEmptyWatch())
	errUnanswered = errors.New("the API server did not answer in time")
)

// requests are what a collection sends, and how that went.
type requests struct {
	client         dynamic.Interface
	resource       schema.GroupVersionResource
	namespace      string
	fields, labels string
	log            logr.Logger
	onOutcome      []func(error)

	outcome sync.Mutex
	err     error
	// asking counts the requests in flight.
	asking atomic.Int32
}

// OnOutcome registers a function that is called with the outcome of each list and of each
// start of a watch; nil means that the API server answered. It must be called before Run,
// and the function must not block.
func (r *requests) OnOutcome(f func(error)) { r.onOutcome = append(r.onOutcome, f) }

// Err returns why the last list or watch failed, or nil if it did not.
func (r *requests) Err() error {
	r.outcome.Lock()
	defer r.outcome.Unlock()
	return r.err
}

// isBackingOff reports whether the collection waits because the API server was away. A
// server that answered with a refusal would do so again, so refusals do not count.
func (r *requests) isBackingOff() bool {
	return r.isAway() && r.asking.Load() == 0
}

// isAway reports whether the API server did not answer the last request.
func (r *requests) isAway() bool {
	err := r.Err()
	refused := apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsTooManyRequests(err)
	return err != nil && !refused
}

// listWatch reads through the dynamic client and records failures.
func (r *requests) listWatch() cache.ListerWatcher {
	api := r.client.Resource(r.resource).Namespace(r.namespace)
	selected := func(o metav1.ListOptions) metav1.ListOptions {
		o.FieldSelector, o.LabelSelector = r.fields, r.labels
		return o
	}
	first := true
	return Guard(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			r.asking.Add(1)
			defer r.asking.Add(-1)
			patient := first || r.isAway()
			first = false
			var list *unstructured.UnstructuredList
			err := retry(ctx, patient, func() (err error) {
				list, err = api.List(ctx, selected(o))
				r.recordOutcome(ctx, "list", err)
				return err
			})
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			r.asking.Add(1)
			defer r.asking.Add(-1)
			var w apiwatch.Interface
			err := retry(ctx, r.isAway(), func() (err error) {
				w, err = api.Watch(ctx, selected(o))
				if err == nil && reflect.TypeOf(w) == unanswered {
					w, err = nil, errUnanswered
				}
				r.recordOutcome(ctx, "watch", err)
				return err
			})
			return w, err
		},
	})
}

// retry sends a request once or, if patient, until it succeeds, fails with an error other
// than forbidden or not found, or has used up its tries. It returns the error of the last
// one.
func retry(ctx context.Context, patient bool, send func() error) (err error) {
	tries := wait.Backoff{Steps: 1}
	if patient {
		tries = refusalRetry
	}
	ended := wait.ExponentialBackoffWithContext(ctx, tries, func(context.Context) (bool, error) {
		err = send()
		return !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err), nil
	})
	return cmp.Or(err, ended)
}

// Reason returns the text of a request's error without what differs between attempts: the query of
// the request and the local port. It is empty for nil.
func Reason(err error) string {
	if err == nil {
		return ""
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Addr != nil {
		return op.Op + " " + op.Addr.String() + ": " + op.Err.Error()
	}
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Err.Error()
	}
	return err.Error()
}

// recordOutcome stores the error of a request, and logs it if it has another reason than the last.
func (r *requests) recordOutcome(ctx context.Context, verb string, err error) {
	if ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return
	}
	r.outcome.Lock()
	before := r.err
	r.err = err
	r.outcome.Unlock()
	for _, f := range r.onOutcome {
		f(err)
	}
	if err != nil && (Reason(before) != Reason(err)) {
		r.log.Info("Collection cannot be read and will be tried again", "verb", verb, "error", err.Error())
	}
}
