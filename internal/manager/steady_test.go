// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

func TestSteadyIsToldWhenAllQueuesAreEmpty(t *testing.T) {
	now := testingclock.NewFakeClock(time.Unix(0, 0))
	steady := make(chan struct{})
	m := &Manager{o: Options{Clock: now, Steady: func() { close(steady) }}}
	release := make(chan struct{})
	queues := []*reconcile.Queue{reconcile.NewQueue("idle"), reconcile.NewQueue("busy")}
	queues[1].Add(reconcile.Key{Name: "first"})
	queues[1].Add(reconcile.Key{Name: "second"})
	for i, name := range []string{"idle", "busy"} {
		m.Add(reconcile.Loop{Name: name, Reconcile: func(context.Context, reconcile.Key) (reconcile.Result, error) {
			<-release
			return reconcile.Result{}, nil
		}}, queues[i])
	}
	for _, loop := range m.tasks {
		go func() { _ = loop(t.Context()) }()
	}
	ended := make(chan error, 1)
	go func() { ended <- m.untilSteady(t.Context()) }()

	for range 3 {
		require.Eventually(t, now.HasWaiters, time.Minute, time.Millisecond, "it looks again later")
		now.Step(steadyCheck)
	}
	select {
	case <-steady:
		require.Fail(t, "told while a key waits")
	default:
	}
	close(release)
	require.Eventually(t, func() bool {
		if now.HasWaiters() {
			now.Step(steadyCheck)
		}
		select {
		case <-steady:
			return true
		default:
			return false
		}
	}, time.Minute, time.Millisecond)
	require.NoError(t, <-ended)
}

func TestSteadyIsNotToldToWhoStops(t *testing.T) {
	m := &Manager{o: Options{Clock: testingclock.NewFakeClock(time.Unix(0, 0)), Steady: func() { t.Error("told") }}}
	queue := reconcile.NewQueue("busy")
	queue.Add(reconcile.Key{Name: "waits"})
	m.Add(reconcile.Loop{Name: "busy"}, queue)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	require.NoError(t, m.untilSteady(ctx))
}
