// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

const (
	// readPatience is how long something may not be readable before it is told: permissions that
	// were just given take effect after a moment.
	readPatience = 5 * time.Second
	// readCheck is how often to look whether everything has been read.
	readCheck = 100 * time.Millisecond
)

// fault is why a part of the hub cannot be applied, with the reason of the condition that tells it.
type fault struct {
	error
	reason string
}

func (f fault) Unwrap() error { return f.error }

// reasonOf returns the reason with which the condition Applied tells an error.
func reasonOf(err error) string {
	if f, ok := errors.AsType[fault](err); ok {
		return f.reason
	}
	return operatorv1.ReasonRuntimeResourceApplyFailed
}

// outcome is what the last pass of a loop came to whose errors another loop tells.
type outcome struct {
	mu  sync.Mutex
	err error
	// changed is called when there is something else to tell.
	changed func()
}

func (o *outcome) set(err error) {
	o.mu.Lock()
	changed := fmt.Sprint(err) != fmt.Sprint(o.err)
	o.err = err
	o.mu.Unlock()
	if changed && o.changed != nil {
		o.changed()
	}
}

func (o *outcome) get() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// followed is a collection that a loop depends on.
type followed interface {
	shared.Collection
	WaitSynced(context.Context) error
	OnChange(func(reconcile.Key))
	OnOutcome(func(error))
}

// onOutcome calls wake when one of the collections fails, and when it works again.
func onOutcome(list []followed, wake func()) {
	for _, one := range list {
		var failing atomic.Bool
		one.OnOutcome(func(err error) {
			if failing.Swap(err != nil) != (err != nil) {
				wake()
			}
		})
	}
}

// isRead reports whether all collections have been read.
func isRead(list []followed) bool {
	for _, one := range list {
		select {
		case <-one.Synced():
		default:
			return false
		}
	}
	return true
}

// unread is since when something cannot be read.
type unread struct{ since time.Time }

// look returns why one of the collections cannot be read, or may not be followed any more; nil while
// there is patience, which ends after wait.
func (r *unread) look(list []followed, now time.Time) (wait time.Duration, problem error) {
	for _, one := range list {
		err := one.Err()
		if err != nil && (!isRead([]followed{one}) || apierrors.IsForbidden(err)) {
			problem = fault{errors.New("the hub process cannot read what it needs: " + watch.Reason(err)), operatorv1.ReasonHubResourceApplyFailed}
			break
		}
	}
	switch {
	case problem == nil:
		r.since = time.Time{}
		return 0, nil
	case r.since.IsZero():
		r.since = now
	}
	if wait = r.since.Add(readPatience).Sub(now); wait > 0 {
		return wait, nil
	}
	return 0, problem
}

// readable remembers the last spec of the ClusterManager that could be read: with that one the hub
// goes on while a newer one cannot.
type readable struct {
	mu   sync.Mutex
	last *operatorv1.ClusterManager
}

// managed is what is cached of the ClusterManager.
type managed struct {
	*operatorv1.ClusterManager
	// problem is why its spec cannot be read; the spec is then the one before. blank is true if
	// there was none.
	problem string
	blank   bool
}

func (r *readable) keep(u *unstructured.Unstructured) (managed, bool) {
	u.SetManagedFields(nil)
	cm, problem, err := shared.Decode[operatorv1.ClusterManager](u)
	if err != nil {
		return managed{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	m := managed{ClusterManager: cm, problem: problem}
	switch {
	case problem == "":
		r.last = cm
	case r.last != nil && r.last.UID == cm.UID:
		r.last.Spec.DeepCopyInto(&cm.Spec)
	default:
		m.blank = true
	}
	return m, true
}
