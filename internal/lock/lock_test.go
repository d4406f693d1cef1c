// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	clocktesting "k8s.io/utils/clock/testing"
)

// name and times are those of the locks in these tests.
const name = "klusterlet-agent-lock"

var times = Times{Duration: time.Minute, Period: 20 * time.Second, Retry: 2 * time.Second, Patience: 40 * time.Second}

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
		Lock: &Lock{Client: client, Namespace: namespace, Name: name, Times: times, Pod: pod, Process: process, Clock: clk, Log: logr.Discard()}}
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
	u, err := client.Resource(leases).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return u
}

func holder(u *unstructured.Unstructured) string {
	by, _, _ := unstructured.NestedString(u.Object, "spec", "holderIdentity")
	return by
}

// start returns a namespace on a real control plane.
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
	second.clock.Step(times.Retry)
	second.awaitHeld(t)
	transitions, _, _ := unstructured.NestedInt64(lease(t, client, "one").Object, "spec", "leaseTransitions")
	require.Equal(t, int64(1), transitions)
}

// TestWhoWaitsKnowsTheAddressOfTheHolder, and nobody else's: not that of one that gave the lock back.
func TestWhoWaitsKnowsTheAddressOfTheHolder(t *testing.T) {
	client := start(t, "address")
	l := func(pod, address string) *Lock {
		return &Lock{Client: client, Namespace: "address", Name: name, Times: times, Pod: pod, Process: "1", Address: address,
			Clock: clocktesting.NewFakeClock(time.Now()), Log: logr.Discard()}
	}
	first, second, silent := l("pod-a", "10.0.0.1:9445"), l("pod-b", "10.0.0.2:9445"), l("pod-c", "")
	take := func(l *Lock, holder string) {
		t.Helper()
		by, err := l.try(t.Context())
		require.NoError(t, err)
		require.Equal(t, holder, by)
	}
	take(first, "")
	require.Empty(t, first.HolderAddress())
	require.Empty(t, second.HolderAddress())
	take(second, "pod-a_1")
	require.Equal(t, "10.0.0.1:9445", second.HolderAddress())

	first.release(t.Context())
	require.Empty(t, lease(t, client, "address").GetAnnotations())
	take(second, "")
	require.Empty(t, second.HolderAddress(), "it holds the lock itself")
	take(first, "pod-b_1")
	require.Equal(t, "10.0.0.2:9445", first.HolderAddress())

	second.release(t.Context())
	take(silent, "")
	take(first, "pod-c_1")
	require.Empty(t, first.HolderAddress(), "the holder has no address")
	same := l("pod-d", "10.0.0.1:9445")
	silent.release(t.Context())
	take(first, "")
	take(same, "pod-a_1")
	require.Empty(t, same.HolderAddress(), "that is its own")
}

func TestDeadHolderIsReplacedByWhatWasSeen(t *testing.T) {
	client := start(t, "dead")
	dead := &Lock{
		Client:    client,
		Namespace: "dead",
		Name:      name,
		Times:     times,
		Pod:       "pod-a",
		Process:   "1",
		Clock:     clocktesting.NewFakeClock(time.Now().Add(time.Hour)),
		Log:       logr.Discard(),
	}
	_, err := dead.try(t.Context())
	require.NoError(t, err)
	next := contend(t, client, "dead", "pod-b", "2")
	for range int(times.Duration/times.Retry) - 1 {
		next.requireWaiting(t)
		next.clock.Step(times.Retry)
	}
	next.requireWaiting(t)
	next.clock.Step(2 * times.Retry)
	next.awaitHeld(t)
	require.Equal(t, "pod-b_2", holder(lease(t, client, "dead")))
}

func TestRestartedContainerOfTheSamePodDoesNotWait(t *testing.T) {
	client := start(t, "same")
	dead := &Lock{
		Client:    client,
		Namespace: "same",
		Name:      name,
		Times:     times,
		Pod:       "pod-a",
		Process:   "1",
		Clock:     clocktesting.NewFakeClock(time.Now()),
		Log:       logr.Discard(),
	}
	_, err := dead.try(t.Context())
	require.NoError(t, err)
	contend(t, client, "same", "pod-a", "2").awaitHeld(t)
	require.Equal(t, "pod-a_2", holder(lease(t, client, "same")))
}

func TestNameThatBeginsAlikeIsAnotherPod(t *testing.T) {
	client := start(t, "alike")
	first := &Lock{
		Client:    client,
		Namespace: "alike",
		Name:      name,
		Times:     times,
		Pod:       "pod-a",
		Process:   "1",
		Clock:     clocktesting.NewFakeClock(time.Now()),
		Log:       logr.Discard(),
	}
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
	c.clock.Step(times.Period)
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
	c.clock.Step(times.Period)
	require.Eventually(t, func() bool { return lease(t, client, "renew").GetResourceVersion() != before }, 30*time.Second, 5*time.Millisecond)
	require.NoError(t, working.Err())
}

func TestWorkThatFailsEndsTheProcess(t *testing.T) {
	client := start(t, "fails")
	broken := errors.New("broken invariant")
	l := &Lock{
		Client:    client,
		Namespace: "fails",
		Name:      name,
		Times:     times,
		Pod:       "p",
		Process:   "1",
		Clock:     clocktesting.NewFakeClock(time.Now()),
		Log:       logr.Discard(),
	}
	require.ErrorIs(t, l.Run(t.Context(), func(context.Context) error { return broken }), broken)
	require.Empty(t, holder(lease(t, client, "fails")))
	require.NoError(t, client.Resource(leases).Namespace("fails").Delete(t.Context(), name, metav1.DeleteOptions{}))
	_, err := client.Resource(leases).Namespace("fails").Get(t.Context(), name, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err))
}

// severed is a connection that can be cut, or lose the answer to the next write.
type severed struct {
	http.RoundTripper
	cut, deaf atomic.Bool
	// lost counts the answers that did not arrive.
	lost atomic.Int32
}

func (s *severed) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.cut.Load() {
		return nil, errors.New("cut")
	}
	answer, err := s.RoundTripper.RoundTrip(r)
	if err == nil && r.Method == http.MethodPut && s.deaf.CompareAndSwap(true, false) {
		s.lost.Add(1)
		return nil, errors.Join(errors.New("no answer"), answer.Body.Close())
	}
	return answer, err
}

// sever returns a connection to the control plane of start, and a client that uses it.
func sever(t *testing.T) (*severed, dynamic.Interface) {
	t.Helper()
	wire := &severed{}
	config := rest.CopyConfig(harness.Shared(t, "lock").Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { wire.RoundTripper = next; return wire })
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	return wire, client
}

// TestARenewalWithoutAnAnswerKeepsTheLock, for a write that the API server carried out, and answered
// too late, is no other holder's.
func TestARenewalWithoutAnAnswerKeepsTheLock(t *testing.T) {
	whole := start(t, "deaf")
	wire, client := sever(t)
	c := contend(t, client, "deaf", "pod-a", "1")
	working := c.awaitHeld(t)
	before := lease(t, whole, "deaf").GetResourceVersion()
	wire.deaf.Store(true)
	for _, wait := range []time.Duration{times.Period, times.Retry} {
		require.Eventually(t, c.clock.HasWaiters, 30*time.Second, 5*time.Millisecond)
		c.clock.Step(wait)
		require.Eventually(t, func() bool {
			now := lease(t, whole, "deaf").GetResourceVersion()
			defer func() { before = now }()
			return now != before
		}, 30*time.Second, 5*time.Millisecond)
	}
	require.Equal(t, int32(1), wire.lost.Load())
	require.NoError(t, working.Err())
	require.Equal(t, "pod-a_1", holder(lease(t, whole, "deaf")))
}

func TestALeaseThatIsLabelledStaysItsHolders(t *testing.T) {
	client := start(t, "labelled")
	c := contend(t, client, "labelled", "pod-a", "1")
	working := c.awaitHeld(t)
	u := lease(t, client, "labelled")
	u.SetLabels(map[string]string{"seen": "true"})
	u, err := client.Resource(leases).Namespace("labelled").Update(t.Context(), u, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Eventually(t, c.clock.HasWaiters, 30*time.Second, 5*time.Millisecond)
	c.clock.Step(times.Period)
	require.Eventually(t, func() bool { return lease(t, client, "labelled").GetResourceVersion() != u.GetResourceVersion() },
		30*time.Second, 5*time.Millisecond)
	require.NoError(t, working.Err())
	require.Equal(t, "true", lease(t, client, "labelled").GetLabels()["seen"])
}

func TestHolderThatCannotRenewEndsWithinItsPatience(t *testing.T) {
	start(t, "severed")
	wire, client := sever(t)
	c := contend(t, client, "severed", "pod-a", "1")
	working := c.awaitHeld(t)
	began := c.clock.Now()
	wire.cut.Store(true)
	for working.Err() == nil {
		select {
		case <-working.Done():
		default:
			if c.clock.HasWaiters() {
				c.clock.Step(time.Second)
			}
			runtime.Gosched()
		}
	}
	require.ErrorIs(t, context.Cause(working), errLost)
	require.GreaterOrEqual(t, c.clock.Since(began), times.Period)
	require.LessOrEqual(t, c.clock.Since(began), times.Patience+2*time.Second)
	wire.cut.Store(false)
	for len(c.held) == 0 {
		if c.clock.HasWaiters() {
			c.clock.Step(time.Second)
		}
		runtime.Gosched()
	}
}

func TestTheTimeWithoutAHolderIsKnown(t *testing.T) {
	client := start(t, "gap")
	now := time.Now()
	for name, tc := range map[string]struct {
		renewed time.Time
		want    time.Duration
	}{
		"a holder that ended five minutes ago":       {now.Add(-5 * time.Minute), 5 * time.Minute},
		"a holder whose clock is ahead":              {now.Add(time.Minute), 0},
		"nobody ever held it, and there is no lease": {time.Time{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			api := client.Resource(leases).Namespace("gap")
			err := api.Delete(t.Context(), "leader", metav1.DeleteOptions{})
			require.True(t, err == nil || apierrors.IsNotFound(err))
			lock := func(pod string, at time.Time) *Lock {
				return &Lock{
					Client:    client,
					Namespace: "gap",
					Name:      "leader",
					Times:     times,
					Pod:       pod,
					Process:   "1",
					Clock:     clocktesting.NewFakeClock(at),
					Log:       logr.Discard(),
				}
			}
			if !tc.renewed.IsZero() {
				former := lock("pod-a", tc.renewed)
				holder, err := former.try(t.Context())
				require.NoError(t, err)
				require.Empty(t, holder)
				former.release(t.Context())
			}
			l := lock("pod-b", now)
			holder, err := l.try(t.Context())
			require.NoError(t, err)
			require.Empty(t, holder)
			require.InDelta(t, tc.want, l.Gap(), float64(time.Millisecond))
		})
	}
}
