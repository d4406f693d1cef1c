// SPDX-License-Identifier: Apache-2.0

package status

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"
)

// server answers paths with codes, and counts requests.
type server struct {
	mu    sync.Mutex
	codes map[string]int
	asked map[string]int
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[r.URL.Path]++
	w.WriteHeader(s.codes[r.URL.Path])
	if r.URL.Path == "/version" {
		_, _ = w.Write([]byte(`{"gitVersion":"v1.2.3"}`))
		return
	}
	_, _ = w.Write([]byte("body of " + r.URL.Path))
}

func newProber(t *testing.T, codes map[string]int) (*Prober, *server, *clocktesting.FakeClock, *int) {
	t.Helper()
	s := &server{codes: codes, asked: map[string]int{}}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	clk, told := clocktesting.NewFakeClock(now), 0
	return &Prober{
		Client:   web.Client(),
		Host:     web.URL,
		Period:   time.Minute,
		Clock:    clk,
		OnChange: func() { told++ },
	}, s, clk, &told
}

func TestProbe(t *testing.T) {
	for name, tc := range map[string]struct {
		codes   map[string]int
		healthy bool
		code    int
	}{
		"livez is ok": {map[string]int{"/livez": 200, "/version": 200}, true, 200},
		"livez is not served: healthz": {
			map[string]int{"/livez": 404, "/healthz": 200, "/version": 200},
			true,
			200,
		},
		"livez is forbidden: healthz": {
			map[string]int{"/livez": 403, "/healthz": 200, "/version": 200},
			true,
			200,
		},
		"livez fails: healthz is not used": {map[string]int{"/livez": 500, "/healthz": 200}, false, 500},
		"both are missing":                 {map[string]int{"/livez": 404, "/healthz": 404}, false, 404},
	} {
		t.Run(name, func(t *testing.T) {
			p, _, _, told := newProber(t, tc.codes)
			require.Equal(t, tc.healthy, p.probe(t.Context()))
			h := p.Health()
			require.Equal(t, tc.healthy, h.Healthy())
			require.Equal(t, tc.code, h.Code)
			require.Equal(t, 1, *told)
			if tc.healthy {
				require.Equal(t, "v1.2.3", h.Version)
				require.Empty(t, h.Problem)
			} else {
				require.Contains(t, h.Problem, "body of")
			}
		})
	}
}

func TestFailureKeepsItsBeginAndRecoveryForgetsIt(t *testing.T) {
	p, s, clk, told := newProber(t, map[string]int{"/livez": 500, "/version": 200})
	p.probe(t.Context())
	clk.Step(15 * time.Second)
	p.probe(t.Context())
	require.Equal(t, now, p.Health().FailingSince)
	require.Equal(t, now.Add(15*time.Second), p.Health().Checked)
	require.Equal(t, 2, *told, "each failure is reported, because its duration matters")
	s.codes["/livez"] = 200
	p.probe(t.Context())
	require.True(t, p.Health().Healthy())
	require.Equal(t, 3, *told)
}

func TestAtRestOneRequestAMinuteAndTheVersionOnceAnHour(t *testing.T) {
	p, s, clk, told := newProber(t, map[string]int{"/livez": 200, "/version": 200})
	for range 61 {
		p.probe(t.Context())
		clk.Step(time.Minute)
	}
	require.Equal(t, map[string]int{"/livez": 61, "/version": 2}, s.asked)
	require.Equal(t, 1, *told)
}

func TestNoAnswerIsCodeZero(t *testing.T) {
	p, _, _, _ := newProber(t, nil)
	p.Host = "http://127.0.0.1:1"
	require.False(t, p.probe(t.Context()))
	require.Equal(t, 0, p.Health().Code)
	require.Contains(t, p.Health().Problem, "refused")
}
