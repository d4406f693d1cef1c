// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	clocktesting "k8s.io/utils/clock/testing"
)

// contender is a process that wants the lock of a namespace.
type contender struct {
	*Lock
	clock *clocktesting.FakeClock
	held  chan context.Context
	ended chan error
	stop  context.CancelFunc
}

func contend(t *testing.T, client dynamic.Interface, namespace, pod, process string) *contender {
	t.Helper()
	clk := clocktesting.NewFakeClock(time.Now())
	ctx, stop := context.WithCancel(t.Context())
	c := &contender{clock: clk, held: make(chan context.Context, 8), ended: make(chan error, 1), stop: stop,
		Lock: &Lock{Client: client, Namespace: namespace, Pod: pod, Process: process, Clock: clk, Log: logr.Discard()}}
	go func() {
		c.ended <- c.Run(ctx, func(ctx context.Context) error {
			c.held <- ctx
			<-ctx.Done()
			return nil
		})
	}()
	t.Cleanup(func() { require.NoError(t, c.finish()) })
	return c
}

func (c *contender) finish() error {
	c.stop()
	err := <-c.ended
	c.ended <- err
	return err
}

func (c *contender) awaitHeld(t *testing.T) context.Context {
	t.Helper()
	select {
	case ctx := <-c.held:
		return ctx
	case <-time.After(30 * time.Second):
		t.Fatal("the lock was not taken")
		return nil
	}
}

func (c *contender) requireWaiting(t *testing.T) {
	t.Helper()
	require.Eventually(t, c.clock.HasWaiters, 30*time.Second, 5*time.Millisecond)
	require.Empty(t, c.held)
}

func lease(t *testing.T, client dynamic.Interface, namespace string) *unstructured.Unstructured {
	t.Helper()
	u, err := client.Resource(leases).Namespace(namespace).Get(t.Context(), Name, metav1.GetOptions{})
	require.NoError(t, err)
	return u
}

func holder(u *unstructured.Unstructured) string {
	by, _, _ := unstructured.NestedString(u.Object, "spec", "holderIdentity")
	return by
}

// start gives a namespace on a real control plane.
func start(t *testing.T, namespace string) dynamic.Interface {
	t.Helper()
	cluster := harness.Shared(t, "lock")
	cluster.As(t, namespace, "default")
	return cluster.Dynamic(t)
}

func TestOneProcessWorksAndGivesTheLockBack(t *testing.T) {
	client := start(t, "one")
	first := contend(t, client, "one", "pod-a", "1")
	first.awaitHeld(t)
	require.Equal(t, "pod-a_1", holder(lease(t, client, "one")))
	second := contend(t, client, "one", "pod-b", "2")
	second.requireWaiting(t)
	require.NoError(t, first.finish())
	second.clock.Step(retry)
	second.awaitHeld(t)
	transitions, _, _ := unstructured.NestedInt64(lease(t, client, "one").Object, "spec", "leaseTransitions")
	require.Equal(t, int64(1), transitions)
}

func TestDeadHolderIsReplacedByWhatWasSeen(t *testing.T) {
	client := start(t, "dead")
	dead := &Lock{Client: client, Namespace: "dead", Pod: "pod-a", Process: "1", Clock: clocktesting.NewFakeClock(time.Now().Add(time.Hour)), Log: logr.Discard()}
	_, err := dead.try(t.Context())
	require.NoError(t, err)
	next := contend(t, client, "dead", "pod-b", "2")
	for range int(duration/retry) - 1 {
		next.requireWaiting(t)
		next.clock.Step(retry)
	}
	next.requireWaiting(t)
	next.clock.Step(2 * retry)
	next.awaitHeld(t)
	require.Equal(t, "pod-b_2", holder(lease(t, client, "dead")))
}

func TestRestartedContainerOfTheSamePodDoesNotWait(t *testing.T) {
	client := start(t, "same")
	dead := &Lock{Client: client, Namespace: "same", Pod: "pod-a", Process: "1", Clock: clocktesting.NewFakeClock(time.Now()), Log: logr.Discard()}
	_, err := dead.try(t.Context())
	require.NoError(t, err)
	contend(t, client, "same", "pod-a", "2").awaitHeld(t)
	require.Equal(t, "pod-a_2", holder(lease(t, client, "same")))
}

func TestNameThatBeginsAlikeIsAnotherPod(t *testing.T) {
	client := start(t, "alike")
	first := &Lock{Client: client, Namespace: "alike", Pod: "pod-a", Process: "1", Clock: clocktesting.NewFakeClock(time.Now()), Log: logr.Discard()}
	_, err := first.try(t.Context())
	require.NoError(t, err)
	contend(t, client, "alike", "pod", "2").requireWaiting(t)
}

func TestHolderThatLostTheLockStopsItsWork(t *testing.T) {
	client := start(t, "lost")
	c := contend(t, client, "lost", "pod-a", "1")
	working := c.awaitHeld(t)
	u := lease(t, client, "lost")
	require.NoError(t, unstructured.SetNestedField(u.Object, "pod-b_2", "spec", "holderIdentity"))
	_, err := client.Resource(leases).Namespace("lost").Update(t.Context(), u, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Eventually(t, c.clock.HasWaiters, 30*time.Second, 5*time.Millisecond)
	c.clock.Step(period)
	<-working.Done()
	require.ErrorIs(t, context.Cause(working), errLost)
	c.requireWaiting(t)
	require.Equal(t, "pod-b_2", holder(lease(t, client, "lost")))
}

func TestRenewalKeepsTheLock(t *testing.T) {
	client := start(t, "renew")
	c := contend(t, client, "renew", "pod-a", "1")
	working := c.awaitHeld(t)
	before := lease(t, client, "renew").GetResourceVersion()
	require.Eventually(t, c.clock.HasWaiters, 30*time.Second, 5*time.Millisecond)
	c.clock.Step(period)
	require.Eventually(t, func() bool { return lease(t, client, "renew").GetResourceVersion() != before }, 30*time.Second, 5*time.Millisecond)
	require.NoError(t, working.Err())
}

func TestWorkThatFailsEndsTheProcess(t *testing.T) {
	client := start(t, "fails")
	broken := errors.New("broken invariant")
	l := &Lock{Client: client, Namespace: "fails", Pod: "p", Process: "1", Clock: clocktesting.NewFakeClock(time.Now()), Log: logr.Discard()}
	require.ErrorIs(t, l.Run(t.Context(), func(context.Context) error { return broken }), broken)
	require.Empty(t, holder(lease(t, client, "fails")))
	require.NoError(t, client.Resource(leases).Namespace("fails").Delete(t.Context(), Name, metav1.DeleteOptions{}))
	_, err := client.Resource(leases).Namespace("fails").Get(t.Context(), Name, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err))
}
