// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

const (
	second      = time.Second
	millisecond = time.Millisecond

	// soon is how long a test waits for what has to happen. It is far more than a busy
	// machine needs, and costs a passing test nothing.
	soon = 5 * time.Minute
	// pollEvery is the interval at which the tests check what an agent sends.
	pollEvery = 10 * millisecond
	// An agent rests when it sends nothing for this long, which is longer than any of its
	// pauses before a request; after a change of rights, its pauses are longer.
	calm, calmOfRights = 3500 * millisecond, 7 * second
)

// wait polls until the condition is true. The condition runs in the test's own goroutine,
// so that it may end the test and share variables with it.
func wait(t testing.TB, condition func() bool, message string, args ...any) {
	t.Helper()
	if !harness.Until(soon, condition) {
		require.FailNow(t, fmt.Sprintf("after %s: ", soon)+fmt.Sprintf(message, args...))
	}
}

func (s *scene) eventually(condition func() bool, message string, args ...any) {
	s.t.Helper()
	wait(s.t, condition, message, args...)
}

// steadily is wait with a limited number of polls: while this process is not scheduled,
// the agent is not either.
func (s *scene) steadily(condition func() bool, message string, args ...any) {
	s.t.Helper()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for end := time.Now().Add(soon); !condition(); <-ticker.C {
		if time.Now().After(end) {
			require.FailNow(s.t, fmt.Sprintf("after %s: ", soon)+fmt.Sprintf(message, args...))
		}
	}
}

// never makes sure that the condition stays false for d. On a slow machine it polls less
// often, but does not fail because of that.
func (s *scene) never(condition func() bool, d time.Duration, message string, args ...any) {
	s.t.Helper()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for end := time.Now().Add(d); time.Now().Before(end); <-ticker.C {
		if condition() {
			require.FailNow(s.t, fmt.Sprintf(message, args...))
		}
	}
}

// untilRest waits until the agent rests, and returns what it sent. It counts polls
// instead of time, and an agent with a request in flight does not rest.
func (s *scene) untilRest(d time.Duration) []string {
	s.t.Helper()
	var sent []string
	var quiet time.Duration
	s.steadily(func() bool {
		more := s.sent.Take()
		sent = append(sent, more...)
		if quiet += pollEvery; len(more) > 0 || s.sent.Busy() {
			quiet = 0
		}
		return quiet > d
	}, "the agent does not come to rest")
	return sent
}

// told waits until the agent has sent the status of a work. It makes no request: a large work
// that is read again and again costs more than what the agent does with it.
func (s *scene) told(work string) {
	s.t.Helper()
	status := "hub PATCH /apis/work.open-cluster-management.io/v1/namespaces/" + s.cluster + "/manifestworks/" + work + "/status"
	s.steadily(func() bool { return slices.Contains(s.sent.Take(), status) }, "the agent does not report on work %s", work)
}

// rests waits until the agent rests.
func (s *scene) rests() {
	s.t.Helper()
	s.untilRest(calm)
}

// hands is the clock of a scene's agent: the real one, until the test stops it or sets it
// forward. Timers are not affected.
type hands struct {
	clock.RealClock

	mu    sync.Mutex
	held  time.Time
	ahead time.Duration
}

// Now returns the time that the clock shows.
func (h *hands) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.held.IsZero() {
		return h.held
	}
	return h.RealClock.Now().Add(h.ahead)
}

// Since returns the time that has passed on the clock.
func (h *hands) Since(t time.Time) time.Duration { return h.Now().Sub(t) }

// stop stops the clock: from now on, only forward moves it.
func (h *hands) stop() {
	now := h.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held = now
}

// run restarts the clock from where it is.
func (h *hands) run() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ahead, h.held = h.held.Sub(h.RealClock.Now()), time.Time{}
}

// forward sets the clock forward.
func (h *hands) forward(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ahead += d; !h.held.IsZero() {
		h.held = h.held.Add(d)
	}
}
