// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
)

// Name is the name of the agent's lease.
const Name = "klusterlet-agent-lock"

const (
	// duration is how long a holder that does not renew is believed to live.
	duration = time.Minute
	// period is the time between renewals, retry between attempts.
	period, retry = 20 * time.Second, 2 * time.Second
	// patience is how long a holder works on without a successful renewal.
	patience = 40 * time.Second
	// callTimeout bounds one request.
	callTimeout = 5 * time.Second
)

var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// errLost ends the work of a holder that is none any more.
var errLost = errors.New("another process holds the lock of this agent")

// Lock is the right to be the one working process.
type Lock struct {
	// Client reaches the cluster of the agent, Namespace is the agent's.
	Client    dynamic.Interface
	Namespace string
	// Pod names the pod and Process tells processes of one pod apart.
	Pod, Process string
	// Labels are put on the lease when it is made.
	Labels map[string]string
	Clock  clock.WithTicker
	Log    logr.Logger

	lease  *unstructured.Unstructured
	seenAt time.Time
	seen   string
}

// Run waits for the lock and runs work while it is held; a context that ends
// early tells work that the lock was lost, and Run waits for it again. It
// returns when ctx ends, after giving the lock back, or when work fails.
func (l *Lock) Run(ctx context.Context, work func(context.Context) error) error {
	for l.acquire(ctx) {
		err := l.hold(ctx, work)
		if ctx.Err() == nil && errors.Is(err, errLost) {
			l.Log.Info("Lock was lost; waiting for it again", "namespace", l.Namespace)
			continue
		}
		l.release(ctx)
		return err
	}
	return nil
}

func (l *Lock) identity() string { return l.Pod + "_" + l.Process }

// acquire returns true when the lock is held, false when ctx ended before.
func (l *Lock) acquire(ctx context.Context) bool {
	told := ""
	for {
		holder, err := l.try(ctx)
		switch {
		case ctx.Err() != nil:
			return false
		case err == nil && holder == "":
			return true
		case err != nil && told != err.Error():
			told = err.Error()
			l.Log.Info("Lock cannot be taken and will be tried again", "namespace", l.Namespace, "error", told)
		case err == nil && told != holder:
			told = holder
			l.Log.Info("Another process is at work; waiting for its lock", "namespace", l.Namespace, "holder", holder)
		}
		if !l.sleep(ctx, retry) {
			return false
		}
	}
}

// try takes the lock once; it returns the holder who keeps it from us.
func (l *Lock) try(ctx context.Context) (holder string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	api := l.Client.Resource(leases).Namespace(l.Namespace)
	live, err := api.Get(ctx, Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		l.lease = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}}
		l.lease.SetName(Name)
		l.lease.SetNamespace(l.Namespace)
		l.lease.SetLabels(l.Labels)
		l.fill(true)
		l.lease, err = api.Create(ctx, l.lease, metav1.CreateOptions{})
		return "", wrap("creating", l.Namespace, err)
	}
	if err != nil {
		return "", wrap("reading", l.Namespace, err)
	}
	if by := l.holder(live); by != "" {
		return by, nil
	}
	l.lease = live
	l.fill(true)
	l.lease, err = api.Update(ctx, l.lease, metav1.UpdateOptions{})
	return "", wrap("taking", l.Namespace, err)
}

// holder is who else holds the lease; empty when it may be taken.
func (l *Lock) holder(live *unstructured.Unstructured) string {
	by, _, _ := unstructured.NestedString(live.Object, "spec", "holderIdentity")
	if by == "" || strings.HasPrefix(by, l.Pod+"_") {
		return ""
	}
	if v := live.GetResourceVersion(); v != l.seen {
		l.seen, l.seenAt = v, l.Clock.Now()
	}
	if l.Clock.Since(l.seenAt) >= duration {
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
	spec["leaseDurationSeconds"] = int64(duration / time.Second)
	if !mine {
		spec["holderIdentity"] = ""
	}
	l.lease.Object["spec"] = spec
}

// hold runs work and renews the lock beside it.
func (l *Lock) hold(ctx context.Context, work func(context.Context) error) error {
	l.Log.Info("Lock is held", "namespace", l.Namespace, "holder", l.identity())
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan error, 1)
	go func() { done <- work(ctx) }()
	renewed := l.Clock.Now()
	wait := period
	for {
		timer := l.Clock.NewTimer(wait)
		select {
		case err := <-done:
			timer.Stop()
			return err
		case <-ctx.Done():
			timer.Stop()
			return <-done
		case <-timer.C():
		}
		err := l.renew(ctx)
		switch {
		case err == nil:
			renewed, wait = l.Clock.Now(), period
			continue
		case apierrors.IsConflict(err) || apierrors.IsNotFound(err) || l.Clock.Since(renewed) > patience:
			cancel(errLost)
			return errors.Join(errLost, <-done)
		}
		wait = retry
	}
}

func (l *Lock) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	l.fill(true)
	live, err := l.Client.Resource(leases).Namespace(l.Namespace).Update(ctx, l.lease, metav1.UpdateOptions{})
	if err != nil {
		return wrap("renewing", l.Namespace, err)
	}
	l.lease = live
	return nil
}

// release gives the lock back, so that the next process need not wait.
func (l *Lock) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	l.fill(false)
	if _, err := l.Client.Resource(leases).Namespace(l.Namespace).Update(ctx, l.lease, metav1.UpdateOptions{}); err != nil {
		l.Log.V(1).Info("Lock was not given back", "namespace", l.Namespace, "error", err.Error())
	}
}

func (l *Lock) sleep(ctx context.Context, d time.Duration) bool {
	timer := l.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}

func wrap(verb, namespace string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s lease %s/%s: %w", verb, namespace, Name, err)
}
