// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
)

// Back-off of one key after errors: it doubles from the first value to the last.
const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = time.Minute
)

// Loop is one control loop.
type Loop struct {
	// Name is the loop's dotted id, for example "cluster.accept". Its queue, field manager,
	// logger and metrics carry it. It is unique in a process.
	Name string
	// Workers is how many keys are reconciled concurrently; 0 means 1. One key is never
	// reconciled twice at the same time.
	Workers int
	// Reconcile moves one object closer to its desired state.
	Reconcile func(context.Context, Key) (Result, error)
}

// Queue holds the keys that a loop has to reconcile, each at most once.
type Queue struct {
	keys workqueue.TypedRateLimitingInterface[Key]
}

// NewQueue returns the queue of the loop with that name.
func NewQueue(name string) *Queue {
	return &Queue{keys: workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[Key](firstRetry, lastRetry),
		workqueue.TypedRateLimitingQueueConfig[Key]{Name: name})}
}

// Add queues the key for the next free worker.
func (q *Queue) Add(k Key) { q.keys.Add(k) }

// AddAfter queues the key after d.
func (q *Queue) AddAfter(k Key, d time.Duration) { q.keys.AddAfter(k, d) }

// Forget resets the back-off of the key, so that failures of an old intent do not delay a
// new one.
func (q *Queue) Forget(k Key) { q.keys.Forget(k) }

// Close shuts down a queue whose loop will not run. Loop.Run does so itself when it
// returns.
func (q *Queue) Close() { q.keys.ShutDown() }

// Len returns how many keys wait for a worker.
func (q *Queue) Len() int { return q.keys.Len() }

// Run works on the queue until ctx ends, and returns once the last pass has ended. An error
// requeues the key with a back-off of 5 ms to one minute. A panic in a pass is logged with
// its stack and counts as an error, so that one bad object cannot stop the others.
func (l Loop) Run(ctx context.Context, q *Queue) error {
	if l.Name == "" || l.Reconcile == nil {
		q.keys.ShutDown()
		return errNoLoop
	}
	ctx = logr.NewContext(ctx, logr.FromContextOrDiscard(ctx).WithName(l.Name))
	stop := context.AfterFunc(ctx, q.keys.ShutDown)
	defer stop()
	var wg sync.WaitGroup
	for range max(l.Workers, 1) {
		wg.Go(func() {
			for l.next(ctx, q) {
			}
		})
	}
	wg.Wait()
	return nil
}

// next reconciles one key; it returns false once the queue is closed.
func (l Loop) next(ctx context.Context, q *Queue) bool {
	key, closed := q.keys.Get()
	if closed {
		return false
	}
	defer q.keys.Done(key)
	result, err := l.guarded(ctx, key)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		logr.FromContextOrDiscard(ctx).Error(err, "Pass failed and will be repeated", "object", key.String(), "attempt", q.keys.NumRequeues(key)+1)
		q.keys.AddRateLimited(key)
	default:
		q.keys.Forget(key)
		if result.RequeueAfter > 0 {
			q.keys.AddAfter(key, result.RequeueAfter)
		}
	}
	return true
}

func (l Loop) guarded(ctx context.Context, key Key) (r Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("reconciling %s: panic: %v\n%s", key, p, debug.Stack())
		}
	}()
	return l.Reconcile(ctx, key)
}
