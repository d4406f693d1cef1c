// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
)

// within is how long a test waits for what an idle machine does at once.
const within = 60 * time.Second

func TestObjectsThatMayNotBeWatchedAreLookedAtOnceAMinute(t *testing.T) {
	maps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`))
	}))
	t.Cleanup(api.Close)
	metadata, err := MetadataOnly(&rest.Config{Host: api.URL})
	require.NoError(t, err)
	clk := clocktesting.NewFakeClock(time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC))
	woken, blind := make(chan string, 100), make(chan string, 100)
	tracker := New(Config{
		Metadata: metadata, Clock: clk, Wake: func(work string) { woken <- work }, Defined: func() {},
		OnBlind: func(work string, resource schema.GroupVersionResource, namespace string, err error) {
			blind <- work + " " + resource.Resource + " " + namespace + " " + string(apierrors.ReasonForError(err))
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- tracker.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	next := func(from <-chan string) string {
		t.Helper()
		select {
		case got := <-from:
			return got
		case <-time.After(within):
			require.Fail(t, "nothing came")
			return ""
		}
	}

	tracker.Track("w", []Object{{Resource: maps, Namespace: "n", Name: "a"}})
	require.Eventually(t, func() bool {
		_, sight := tracker.Look(maps, "n", "a")
		return sight == Blind && clk.Waiters() == 2
	}, within, 10*time.Millisecond, "a refused list makes its objects blind; the watch and the tracker have a ticker each")
	clk.Step(syncCheck)
	require.Equal(t, "w configmaps n Forbidden", next(blind))
	require.Equal(t, "w", next(woken), "it looks by itself at once")
	for range 3 {
		require.Empty(t, woken, "and not again before its time")
		clk.Step(PollEvery)
		require.Equal(t, "w", next(woken))
	}
	require.Empty(t, blind, "it is said once")
}

// A pass may still be running when its tracker ends: it must not start a watch that nobody
// waits for.
func TestNoWatchStartsWhileTheTrackerEnds(t *testing.T) {
	maps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	metadata, err := MetadataOnly(&rest.Config{Host: "http://127.0.0.1:1"})
	require.NoError(t, err)
	for range 300 {
		tracker := New(Config{
			Metadata: metadata, Clock: clocktesting.NewFakeClock(time.Now()), Wake: func(string) {}, Defined: func() {},
			OnBlind: func(string, schema.GroupVersionResource, string, error) {},
		})
		ctx, cancel := context.WithCancel(t.Context())
		var both sync.WaitGroup
		both.Go(func() { _ = tracker.Run(ctx) })
		both.Go(func() {
			tracker.Track("w", []Object{{Resource: maps, Namespace: "n", Name: "a"}})
			cancel()
			tracker.Track("w", []Object{{Resource: maps, Namespace: "m", Name: "a"}})
		})
		both.Wait()
		cancel()
		require.Nil(t, tracker.ctx, "only while it is set do watches start")
		before := len(tracker.watches)
		tracker.Track("x", []Object{{Resource: maps, Namespace: "late", Name: "a"}})
		require.Len(t, tracker.watches, before)
	}
}
