// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// runLoop runs the loop for the test and returns its queue.
func runLoop(t *testing.T, reconcile func(context.Context, Key) (Result, error), workers int) *Queue {
	t.Helper()
	q := NewQueue(t.Name())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Loop{Name: "test.loop", Workers: workers, Reconcile: reconcile}.Run(ctx, q) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return q
}

// patience is longer than a machine may stand still.
const patience = 2 * time.Minute

func receive(t *testing.T, c <-chan Key) Key {
	t.Helper()
	select {
	case k := <-c:
		return k
	case <-time.After(patience):
		require.FailNow(t, "the loop did not come")
		return Key{}
	}
}

func TestALoopComesAgainAfterAnError(t *testing.T) {
	passes, calls := make(chan Key), atomic.Int32{}
	q := runLoop(t, func(_ context.Context, k Key) (Result, error) {
		passes <- k
		if calls.Add(1) == 1 {
			return Result{}, errors.New("not yet")
		}
		return Result{}, nil
	}, 1)
	q.Add(Key{Name: "a"})
	require.Equal(t, "a", receive(t, passes).Name)
	require.Equal(t, "a", receive(t, passes).Name)
}

func TestALoopSurvivesAPanic(t *testing.T) {
	passes := make(chan Key)
	q := runLoop(t, func(_ context.Context, k Key) (Result, error) {
		passes <- k
		if k.Name == "poison" {
			panic("poison")
		}
		return Result{}, nil
	}, 1)
	q.Add(Key{Name: "poison"})
	require.Equal(t, "poison", receive(t, passes).Name)
	q.Add(Key{Name: "good"})
	for receive(t, passes).Name != "good" {
	}
}

func TestALoopComesBackWhenAsked(t *testing.T) {
	passes := make(chan Key)
	q := runLoop(t, func(_ context.Context, k Key) (Result, error) {
		passes <- k
		return Result{RequeueAfter: time.Millisecond}, nil
	}, 1)
	q.Add(Key{Name: "a"})
	receive(t, passes)
	receive(t, passes)
}

func TestOneKeyIsNeverWorkedOnTwiceAtATime(t *testing.T) {
	running, passes, release := atomic.Int32{}, make(chan Key), make(chan struct{})
	q := runLoop(t, func(_ context.Context, k Key) (Result, error) {
		if running.Add(1) > 1 {
			panic("two at a time")
		}
		passes <- k
		<-release
		running.Add(-1)
		return Result{}, nil
	}, 4)
	q.Add(Key{Name: "a"})
	receive(t, passes)
	q.Add(Key{Name: "a"})
	require.Zero(t, q.Len(), "the key waits until the pass has ended")
	close(release)
	receive(t, passes)
}

func TestALoopWithoutNameIsRefused(t *testing.T) {
	require.ErrorIs(t, Loop{}.Run(t.Context(), NewQueue("x")), errNoLoop)
}

func TestAppliedCache(t *testing.T) {
	var c appliedCache
	k := Target{Name: "a"}
	require.False(t, c.unchanged(k, []byte("i"), "1"), "nothing is known")
	c.remember(k, []byte("i"), "1")
	require.True(t, c.unchanged(k, []byte("i"), "1"))
	require.False(t, c.unchanged(k, []byte("j"), "1"), "another intent")
	require.False(t, c.unchanged(k, []byte("i"), "2"), "the live object changed")
	require.False(t, c.unchanged(k, []byte("i"), ""), "the live object is not known")
}
