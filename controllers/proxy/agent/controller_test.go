// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
)

// away is a hub that cannot be reached.
type away struct{}

func (away) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("connection refused")
}

// pauses is a clock that reports each pause, and lets it end at once.
type pauses struct {
	*clocktesting.FakeClock
	asked chan time.Duration
}

func (p pauses) After(d time.Duration) <-chan time.Time {
	p.asked <- d
	over := make(chan time.Time, 1)
	over <- p.Now()
	return over
}

// TestAgentsComeBackSpreadOverTime: after an outage, the pause before the next attempt doubles up
// to half a minute, and each agent waits for a part of it of its own, from half to all.
func TestAgentsComeBackSpreadOverTime(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		random float64
		pauses []time.Duration
	}{
		{
			random: 0,
			pauses: []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second, 15 * time.Second},
		},
		{
			random: 1,
			pauses: []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second},
		},
	} {
		clock := pauses{clocktesting.NewFakeClock(time.Unix(0, 0)), make(chan time.Duration)}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		c := New(Config{
			Hub: "https://hub", Upgrades: away{}, Spoke: &rest.Config{Host: "https://spoke"}, Cluster: "one",
			Clock: clock, Random: func() float64 { return test.random }, Log: logr.Discard(),
		})
		go func() { ended <- c.Run(ctx) }()
		for _, want := range test.pauses {
			require.Equal(t, want, <-clock.asked)
		}
		cancel()
		select {
		case <-clock.asked: // the attempt after the last pause
			require.NoError(t, <-ended)
		case err := <-ended:
			require.NoError(t, err)
		}
	}
}
