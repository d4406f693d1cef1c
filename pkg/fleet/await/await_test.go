// SPDX-License-Identifier: Apache-2.0

package await

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/fake"
	kubetesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var things = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "things"}

func thing(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion("example.org/v1")
	u.SetKind("Thing")
	u.SetName(name)
	return u
}

func newClient(objects ...runtime.Object) *fake.FakeDynamicClient {
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{things: "ThingList"}, objects...)
}

// nextWatch returns a channel that receives each watch when the client opens it.
func nextWatch(client *fake.FakeDynamicClient) chan *watch.FakeWatcher {
	taken := make(chan *watch.FakeWatcher, 10)
	client.PrependWatchReactor("things", func(kubetesting.Action) (bool, watch.Interface, error) {
		w := watch.NewFake()
		taken <- w
		return true, w, nil
	})
	return taken
}

func start(t *testing.T, client *fake.FakeDynamicClient, done Done) (<-chan error, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	end := make(chan error, 1)
	go func() { end <- Objects(ctx, Query{Client: client, Resource: things}, done) }()
	return end, cancel
}

func has(name string) Done {
	return func(items []*unstructured.Unstructured) (bool, error) {
		for _, u := range items {
			if u.GetName() == name {
				return true, nil
			}
		}
		return false, nil
	}
}

func TestWhatIsThereNeedsNoWatch(t *testing.T) {
	require.NoError(t, Objects(t.Context(), Query{Client: newClient(thing("a")), Resource: things}, has("a")))
}

func TestAWatchThatEndsIsResumed(t *testing.T) {
	client := newClient()
	taken := nextWatch(client)
	end, cancel := start(t, client, has("b"))
	defer cancel()
	(<-taken).Stop()
	second := <-taken
	second.Add(thing("a"))
	second.Error(&metav1.Status{Reason: metav1.StatusReasonExpired, Code: 410})
	(<-taken).Add(thing("b"))
	require.NoError(t, <-end)
}

func TestWhatIsDeletedIsNoLongerInTheSet(t *testing.T) {
	client := newClient(thing("a"))
	taken := nextWatch(client)
	end, cancel := start(t, client, func(items []*unstructured.Unstructured) (bool, error) { return len(items) == 0, nil })
	defer cancel()
	(<-taken).Delete(thing("a"))
	require.NoError(t, <-end)
}

func TestAKindThatIsNotServedYetIsEmpty(t *testing.T) {
	client := newClient(thing("a"))
	var tries atomic.Int32
	client.PrependReactor("list", "things", func(kubetesting.Action) (bool, runtime.Object, error) {
		return tries.Add(1) == 1, nil, apierrors.NewNotFound(things.GroupResource(), "")
	})
	require.NoError(t, Objects(t.Context(), Query{Client: client, Resource: things}, has("a")))
	require.EqualValues(t, 2, tries.Load())
}

func TestARefusalEndsTheWait(t *testing.T) {
	client := newClient()
	client.PrependReactor("list", "things", func(kubetesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(things.GroupResource(), "", errors.New("no"))
	})
	require.True(t, apierrors.IsForbidden(Objects(t.Context(), Query{Client: client, Resource: things}, has("a"))))
}

// expiring is a context that reaches its deadline when a test closes done.
type expiring struct {
	context.Context
	done chan struct{}
}

func (e expiring) Done() <-chan struct{} { return e.done }

func (e expiring) Err() error {
	select {
	case <-e.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestTheDeadlineTellsTheLastErrorOfTheServer(t *testing.T) {
	client := newClient()
	ctx := expiring{t.Context(), make(chan struct{})}
	client.PrependReactor("list", "things", func(kubetesting.Action) (bool, runtime.Object, error) {
		close(ctx.done)
		return true, nil, apierrors.NewInternalError(errors.New("etcd is away"))
	})
	err := Objects(ctx, Query{Client: client, Resource: things}, has("a"))
	var expired *Expired
	require.ErrorAs(t, err, &expired)
	require.ErrorContains(t, err, "etcd is away")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestTheJudgeMayEndTheWait(t *testing.T) {
	stop := errors.New("denied")
	err := Objects(t.Context(), Query{Client: newClient(thing("a")), Resource: things},
		func([]*unstructured.Unstructured) (bool, error) { return false, stop })
	require.ErrorIs(t, err, stop)
}

func TestTrueTriesUntilItIs(t *testing.T) {
	n := 0
	require.NoError(t, True(t.Context(), clock.RealClock{}, time.Millisecond,
		func(context.Context) (bool, error) { n++; return n == 3, errors.New("not yet") }))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, True(ctx, clock.RealClock{}, time.Millisecond,
		func(context.Context) (bool, error) { return false, errors.New("not yet") }),
		"not yet")
}
