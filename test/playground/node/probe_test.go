// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"
)

const patience = time.Minute

// answer is the timeout of a probe in these tests, in seconds.
const answer = 60

// backend is a server whose health a test controls.
type backend struct {
	healthy atomic.Bool
	asked   atomic.Int32
	local   map[int32]int
}

func newBackend(t *testing.T, secure bool) *backend {
	t.Helper()
	b := &backend{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.asked.Add(1)
		if !b.healthy.Load() || r.URL.Path != "/healthz" || r.Header.Get("Asked-By") != "test" {
			http.Error(w, "sick", http.StatusInternalServerError)
		}
	}))
	if secure {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	b.local = map[int32]int{8443: server.Listener.Addr().(*net.TCPAddr).Port}
	return b
}

func healthz(scheme corev1.URIScheme) corev1.ProbeHandler {
	return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
		Scheme: scheme, Path: "/healthz", Port: intstr.FromString("https"), HTTPHeaders: []corev1.HTTPHeader{{Name: "Asked-By", Value: "test"}},
	}}
}

func TestOneQuestion(t *testing.T) {
	plain, secure := newBackend(t, false), newBackend(t, true)
	container := &corev1.Container{Ports: []corev1.ContainerPort{{Name: "https", ContainerPort: 8443}}}
	tcp := func(port int32) corev1.ProbeHandler {
		return corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(port)}}
	}
	for name, tc := range map[string]struct {
		backend *backend
		healthy bool
		handler corev1.ProbeHandler
		err     string
	}{
		"http, well":        {plain, true, healthz(corev1.URISchemeHTTP), ""},
		"http, sick":        {plain, false, healthz(corev1.URISchemeHTTP), "500"},
		"https, well":       {secure, true, healthz(corev1.URISchemeHTTPS), ""},
		"https, sick":       {secure, false, healthz(corev1.URISchemeHTTPS), "500"},
		"tcp, somebody":     {plain, false, tcp(8443), ""},
		"tcp, no such port": {plain, true, tcp(1), "the container has no port 1"},
		"http, no such name": {
			plain,
			true,
			corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("x")}},
			"the container has no port x",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.backend.healthy.Store(tc.healthy)
			p := prober{container: container, local: tc.backend.local}
			err := p.probeOnce(t.Context(), &corev1.Probe{ProbeHandler: tc.handler, TimeoutSeconds: answer})
			if tc.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tc.err)
			}
		})
	}
}

// probing is a running prober with a clock that a test moves.
type probing struct {
	*backend
	t     *testing.T
	clock *clocktesting.FakeClock
	mu    sync.Mutex
	h     health
}

func probe(t *testing.T, b *backend, c *corev1.Container) *probing {
	t.Helper()
	c.Ports = []corev1.ContainerPort{{Name: "https", ContainerPort: 8443}}
	p := &probing{backend: b, t: t, clock: clocktesting.NewFakeClock(began), h: initialHealth(c)}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		prober{container: c, local: b.local, clock: p.clock, report: func(change func(*health)) {
			p.mu.Lock()
			defer p.mu.Unlock()
			change(&p.h)
		}}.run(ctx)
	})
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
	return p
}

func (p *probing) known() health {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.h
}

// until moves the clock by steps until the health is as wanted.
func (p *probing) until(step time.Duration, wanted func(health) bool) time.Duration {
	p.t.Helper()
	start := p.clock.Now()
	p.move(step, func() bool { return wanted(p.known()) })
	return p.clock.Since(start)
}

// move moves the clock by steps until ok. No time passes while a probe waits for its answer, however
// long that takes.
func (p *probing) move(step time.Duration, ok func() bool) {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		if ok() {
			return true
		}
		if p.clock.HasWaiters() {
			p.clock.Step(step)
		}
		return false
	}, patience, time.Millisecond)
}

func TestReadinessIsFoundEagerlyAndLostByThreshold(t *testing.T) {
	p := probe(t, newBackend(t, false), &corev1.Container{
		ReadinessProbe: &corev1.Probe{ProbeHandler: healthz("HTTP"), TimeoutSeconds: answer, PeriodSeconds: 10, FailureThreshold: 2},
	})
	require.True(t, p.known().started)
	require.False(t, p.known().ready)
	require.Eventually(t, func() bool { return p.asked.Load() > 0 }, patience, time.Millisecond)
	p.healthy.Store(true)
	require.Less(t, p.until(eager, func(h health) bool { return h.ready }), 10*time.Second)
	p.healthy.Store(false)
	require.GreaterOrEqual(t, p.until(time.Second, func(h health) bool { return !h.ready }), 20*time.Second-time.Second)
	p.healthy.Store(true)
	p.until(time.Second, func(h health) bool { return h.ready })
	require.Empty(t, p.known().unhealthy, "readiness restarts nothing")
}

func TestAContainerWithoutProbesIsReady(t *testing.T) {
	require.Equal(t, health{started: true, ready: true}, initialHealth(&corev1.Container{}))
}

func TestLivenessCountsFailuresInARow(t *testing.T) {
	b := newBackend(t, false)
	b.healthy.Store(true)
	p := probe(t, b, &corev1.Container{LivenessProbe: &corev1.Probe{ProbeHandler: healthz("HTTP"), TimeoutSeconds: answer, PeriodSeconds: 10}})
	require.True(t, p.known().ready)
	p.move(time.Second, func() bool { return p.asked.Load() > 2 })
	require.Empty(t, p.known().unhealthy)
	p.healthy.Store(false)
	asked := p.asked.Load()
	p.until(time.Second, func(h health) bool { return h.unhealthy != "" })
	require.GreaterOrEqual(t, p.asked.Load()-asked, int32(2))
	require.True(t, strings.HasPrefix(p.known().unhealthy, "liveness probe: /healthz answered 500"), p.known().unhealthy)
}

func TestLivenessBeginsWhenStartupIsOver(t *testing.T) {
	p := probe(t, newBackend(t, false), &corev1.Container{
		StartupProbe:  &corev1.Probe{ProbeHandler: healthz("HTTP"), TimeoutSeconds: answer, PeriodSeconds: 10, FailureThreshold: 30},
		LivenessProbe: &corev1.Probe{ProbeHandler: healthz("HTTP"), TimeoutSeconds: answer, PeriodSeconds: 1, FailureThreshold: 1},
	})
	require.False(t, p.known().started)
	require.False(t, p.known().ready)
	p.move(time.Second, func() bool { return p.asked.Load() > 5 })
	require.Empty(t, p.known().unhealthy)
	p.healthy.Store(true)
	p.until(eager, func(h health) bool { return h.started && h.ready })
	p.healthy.Store(false)
	p.until(time.Second, func(h health) bool { return strings.HasPrefix(h.unhealthy, "liveness") })
}

func TestAStartThatTakesTooLongIsUnhealthy(t *testing.T) {
	p := probe(t, newBackend(t, false), &corev1.Container{
		StartupProbe: &corev1.Probe{ProbeHandler: healthz("HTTP"), TimeoutSeconds: answer, PeriodSeconds: 2, FailureThreshold: 3},
	})
	took := p.until(eager, func(h health) bool { return h.unhealthy != "" })
	require.InDelta(t, 6, took.Seconds(), 0.5)
	require.False(t, p.known().started)
}
