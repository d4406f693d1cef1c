// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
)

// callTimeout bounds one request.
const callTimeout = 5 * time.Second

// Times are the timings of a lock. Patience must be shorter than Duration by the time
// that the work of a holder needs to end: until then two processes may be working.
type Times struct {
	// Duration is how long a holder that does not renew is considered alive.
	Duration time.Duration
	// Period is the time between renewals, Retry between attempts.
	Period, Retry time.Duration
	// Patience is how long a holder keeps working without a successful renewal.
	Patience time.Duration
}

var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// annotationAddress of a lease is the address of its holder.
const annotationAddress = "open-cluster-management.io/holder-address"

// errLost ends the work of a process that no longer holds the lock.
var errLost = errors.New("another process holds the lock, or it could not be renewed")

// Lock is the right to be the only working process.
type Lock struct {
	// Client reaches the cluster of the lease, which is Namespace/Name.
	Client          dynamic.Interface
	Namespace, Name string
	Times           Times
	// Pod is the name of the pod; Process distinguishes processes of one pod.
	Pod, Process string
	// Labels are set on the lease when it is created.
	Labels map[string]string
	// Address is where the other processes reach this one while it holds the lock, for their
	// HolderAddress; empty if they need not.
	Address string
	Clock   clock.WithTicker
	Log     logr.Logger

	// elsewhere is the address of another holder; empty if none is known.
	elsewhere atomic.Pointer[string]

	lease  *unstructured.Unstructured
	seenAt time.Time
	seen   string
	// before is when the previous holder last renewed, by its own account.
	before time.Time
}

// Gap returns how long the lock was free before it was taken, by the previous holder's
// clock; zero if it was never held before. It is for the work that Run runs.
func (l *Lock) Gap() time.Duration {
	if l.before.IsZero() {
		return 0
	}
	return max(l.Clock.Since(l.before), 0)
}

// HolderAddress returns the Address of the other process that holds the lock, as this one last saw it
// while it waited; empty if nobody does, if the holder has none, or if this process holds the lock. It
// may be called at any time.
func (l *Lock) HolderAddress() string {
	if at := l.elsewhere.Load(); at != nil {
		return *at
	}
	return ""
}

// Run waits for the lock and runs work while it is held. The context of work is cancelled
// when the lock is lost, and Run waits for it again. Run returns when ctx ends, after
// releasing the lock, or when work fails.
func (l *Lock) Run(ctx context.Context, work func(context.Context) error) error {
	for l.acquire(ctx) {
		err := l.runHeld(ctx, work)
		if ctx.Err() == nil && errors.Is(err, errLost) {
			l.Log.Info("Lock was lost; waiting for it again", "lease", l.Name)
			continue
		}
		l.release(ctx)
		return err
	}
	return nil
}

func (l *Lock) identity() string { return l.Pod + "_" + l.Process }

// acquire returns true when the lock is held, false if ctx ended first.
func (l *Lock) acquire(ctx context.Context) bool {
	reported := ""
	for {
		holder, err := l.try(ctx)
		switch {
		case ctx.Err() != nil:
			return false
		case err == nil && holder == "":
			return true
		case err != nil && reported != err.Error():
			reported = err.Error()
			l.Log.Info("Lock cannot be taken and will be tried again", "lease", l.Name, "error", reported)
		case err == nil && reported != holder:
			reported = holder
			l.Log.Info("Another process is at work; waiting for its lock", "lease", l.Name, "holder", holder)
		}
		select {
		case <-l.Clock.After(l.Times.Retry):
		case <-ctx.Done():
			return false
		}
	}
}

// try tries to take the lock once; it returns the other holder, if there is one.
func (l *Lock) try(ctx context.Context) (holder string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	api := l.Client.Resource(leases).Namespace(l.Namespace)
	live, err := api.Get(ctx, l.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		l.lease = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}}
		l.lease.SetName(l.Name)
		l.lease.SetNamespace(l.Namespace)
		l.lease.SetLabels(l.Labels)
		l.fill(true)
		l.lease, err = api.Create(ctx, l.lease, metav1.CreateOptions{})
		return "", l.wrap("creating", err)
	case err != nil:
		return "", l.wrap("reading", err)
	}
	if by := l.holder(live); by != "" {
		at := live.GetAnnotations()[annotationAddress]
		if at == l.Address { // of an earlier pod that had this process's address
			at = ""
		}
		l.elsewhere.Store(&at)
		return by, nil
	}
	l.elsewhere.Store(nil)
	l.before, l.lease = renewedAt(live), live
	return "", l.wrap("taking", l.update(ctx, true))
}

// update writes the lease as this process's own or as nobody's.
func (l *Lock) update(ctx context.Context, mine bool) error {
	l.fill(mine)
	live, err := l.Client.Resource(leases).Namespace(l.Namespace).Update(ctx, l.lease, metav1.UpdateOptions{})
	if err == nil {
		l.lease = live
	}
	return err
}

// renewedAt returns when the holder of a lease last renewed it; zero if the lease does
// not say.
func renewedAt(live *unstructured.Unstructured) time.Time {
	text, _, _ := unstructured.NestedString(live.Object, "spec", "renewTime")
	at, _ := time.Parse(metav1.RFC3339Micro, text)
	return at
}

// holder returns who else holds the lease; empty if it may be taken.
func (l *Lock) holder(live *unstructured.Unstructured) string {
	by, _, _ := unstructured.NestedString(live.Object, "spec", "holderIdentity")
	if pod, _, _ := strings.Cut(by, "_"); by == "" || pod == l.Pod {
		return ""
	}
	if v := live.GetResourceVersion(); v != l.seen {
		l.seen, l.seenAt = v, l.Clock.Now()
	}
	if l.Clock.Since(l.seenAt) >= l.Times.Duration {
		return ""
	}
	return by
}

func (l *Lock) fill(mine bool) {
	now := l.Clock.Now().UTC().Format(metav1.RFC3339Micro)
	spec, _, _ := unstructured.NestedMap(l.lease.Object, "spec")
	if spec == nil {
		spec = map[string]any{}
	}
	transitions, _, _ := unstructured.NestedInt64(l.lease.Object, "spec", "leaseTransitions")
	if before := spec["holderIdentity"]; mine && before != l.identity() {
		spec["acquireTime"] = now
		if before != nil {
			spec["leaseTransitions"] = transitions + 1
		}
	}
	spec["renewTime"], spec["holderIdentity"] = now, l.identity()
	spec["leaseDurationSeconds"] = int64(l.Times.Duration / time.Second)
	if !mine {
		spec["holderIdentity"] = ""
	}
	l.lease.Object["spec"] = spec
	annotations := l.lease.GetAnnotations()
	delete(annotations, annotationAddress)
	if mine && l.Address != "" {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[annotationAddress] = l.Address
	}
	l.lease.SetAnnotations(annotations)
}

// runHeld runs work and renews the lock meanwhile.
func (l *Lock) runHeld(ctx context.Context, work func(context.Context) error) error {
	l.Log.Info("Lock is held", "lease", l.Name, "holder", l.identity())
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan error, 1)
	go func() { done <- work(ctx) }()
	renewed := l.Clock.Now()
	wait := l.Times.Period
	for {
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return <-done
		case <-l.Clock.After(wait):
		}
		// Others count from the write, which is not before this: what an answer takes is not patience
		// gained.
		began := l.Clock.Now()
		err := l.renew(ctx, l.Times.Patience-began.Sub(renewed))
		left := l.Times.Patience - l.Clock.Since(renewed)
		switch {
		case err == nil:
			renewed, wait = began, max(0, l.Times.Period-l.Clock.Since(began))
			continue
		case apierrors.IsConflict(err) || apierrors.IsNotFound(err) || left <= 0:
			cancel(errLost)
			return errors.Join(errLost, <-done)
		}
		wait = min(max(0, l.Times.Retry-l.Clock.Since(began)), left)
	}
}

// renew writes the lease again. An attempt gets all the time that is left if that is too little for
// two: an API server that is starved answers late, and asking it again would not help.
func (l *Lock) renew(ctx context.Context, left time.Duration) error {
	limit := callTimeout
	if left < 2*callTimeout {
		limit = left
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := l.update(ctx, true)
	if apierrors.IsConflict(err) {
		err = l.renewSeen(ctx, err)
	}
	return l.wrap("renewing", err)
}

// renewSeen renews the lease as it is now, if it is still this process's: a renewal whose answer
// came too late, or never, has changed it, or somebody has labelled it.
func (l *Lock) renewSeen(ctx context.Context, conflict error) error {
	live, err := l.Client.Resource(leases).Namespace(l.Namespace).Get(ctx, l.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if by, _, _ := unstructured.NestedString(live.Object, "spec", "holderIdentity"); by != l.identity() {
		return conflict
	}
	l.lease = live
	return l.update(ctx, true)
}

// release releases the lock, so that the next process need not wait.
func (l *Lock) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	if err := l.update(ctx, false); err != nil {
		l.Log.V(1).Info("Lock was not given back", "lease", l.Name, "error", err.Error())
	}
}

func (l *Lock) wrap(verb string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s lease %s/%s: %w", verb, l.Namespace, l.Name, err)
}
