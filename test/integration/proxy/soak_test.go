// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	proxyagent "github.com/kubectl-ocm/kubectl-ocm/controllers/proxy/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/memory"
)

// The soak of tunnels, by default that of a few seconds.
var (
	soakTunnels = flag.Int("tunnels", 24, "how many tunnels are cut")
	soakFor     = flag.Duration("soak", time.Second, "for how long tunnels are cut, at least")
	soakSeed    = flag.Uint64("soak-seed", 1, "the seed that draws what is cut")
)

const (
	// cutEvery is the time between two attempts to cut a connection, and cutsEach how many there
	// are at least for each tunnel.
	cutEvery, cutsEach = 20 * time.Millisecond, 2
	// askers send requests all the time, which may take as long as askTimeout.
	askers, askTimeout = 4, 10 * time.Second
	// moreHandles is how many goroutines, or open files, there may be more than before: there are
	// idle connections to API servers. It is less than one for each cut.
	moreHandles = 20
	// moreHeap is how much more memory may be in use, in bytes.
	moreHeap = 8 << 20
	// soakPatience is how long tunnels may take to be there again after the last cut.
	soakPatience = 3 * time.Minute
)

// holding is what the process holds.
type holding struct {
	goroutines, files int
	heap, anon        int64
}

// String prints it.
func (h holding) String() string {
	return fmt.Sprintf("%d goroutines, %d open files, heap %s, RssAnon %s", h.goroutines, h.files, memory.MiB(h.heap), memory.MiB(h.anon))
}

// held returns what the process holds after it has returned unused memory.
func held(t *testing.T) holding {
	t.Helper()
	debug.FreeOSMemory()
	var heap runtime.MemStats
	runtime.ReadMemStats(&heap)
	files, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	used, err := memory.Of(os.Getpid())
	require.NoError(t, err)
	return holding{goroutines: runtime.NumGoroutine(), files: len(files), heap: int64(heap.HeapAlloc), anon: used.Anon}
}

// brisk is the clock of agents that come back after a tenth of their pauses.
type brisk struct{ clock.RealClock }

// After implements clock.Clock.
func (c brisk) After(d time.Duration) <-chan time.Time { return c.RealClock.After(d / 10) }

// soak is a number of clusters whose agents reach the hub by one way.
type soak struct {
	*scene
	names []string
	links []*agent.Link
	way   *wire
	// users is the client of a user who may reach all clusters, and hub the address of the hub.
	users           *http.Client
	asked, answered atomic.Int64
}

// newSoak makes the clusters.
func newSoak(t *testing.T) *soak {
	t.Helper()
	s := &soak{scene: start(t)}
	s.way = newWire(t, s.hub.Config, 0, 0)
	for i := range *soakTunnels {
		name := fmt.Sprintf("soak-%d", i)
		s.join(t, name)
		access := s.access(t, name, "one")
		access.Server = s.way.server()
		link, err := agent.NewLink(access, "test")
		require.NoError(t, err)
		s.names, s.links = append(s.names, name), append(s.links, link)
	}
	var err error
	s.users, err = rest.HTTPClientFor(s.personConfig(t, "root", "system:masters"))
	require.NoError(t, err)
	return s
}

// ask asks the API server of a cluster for its version.
func (s *soak) ask(ctx context.Context, cluster string) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.hub.Config.Host+connectv1alpha1.ServerPath(cluster)+"/version", http.NoBody)
	if err != nil {
		return err
	}
	answer, err := s.users.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", cluster, answer.Status)
	}
	return nil
}

// whole waits until all clusters answer.
func (s *soak) whole(t *testing.T) {
	t.Helper()
	for _, name := range s.names {
		var err error
		require.True(t, harness.Until(soakPatience, func() bool {
			err = s.ask(t.Context(), name)
			return err == nil
		}), "%v", stringer(func() error { return err }))
	}
}

// stringer prints an error as it is when a test fails.
type stringer func() error

// String implements fmt.Stringer.
func (f stringer) String() string { return fmt.Sprint(f()) }

// life opens all tunnels, cuts connections while requests go through them, and closes the tunnels
// when all are there again. It returns how many were cut.
func (s *soak) life(t *testing.T, draw *rand.Rand, atLeast int, lasts time.Duration) (cuts int) {
	t.Helper()
	var stops []func()
	for i, name := range s.names {
		stops = append(stops, hold(t, s.links[i], proxyagent.Config{Spoke: s.asAgent, Cluster: name, Clock: brisk{}, Log: logr.Discard()}))
	}
	s.whole(t)
	ctx, cancel := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	for i := range askers {
		asking.Go(func() {
			for n := i; ctx.Err() == nil; n += askers {
				s.asked.Add(1)
				if s.ask(ctx, s.names[n%len(s.names)]) == nil {
					s.answered.Add(1)
				}
			}
		})
	}
	for began := time.Now(); cuts < atLeast || time.Since(began) < lasts; {
		<-time.After(cutEvery)
		if s.way.cut(draw) {
			cuts++
		}
	}
	cancel()
	asking.Wait()
	s.way.mend(true)
	s.whole(t)
	for i, stop := range stops {
		stop()
		s.awaitTunnel(t, s.names[i], false)
	}
	s.users.CloseIdleConnections()
	return cuts
}

// TestTunnelsThatAreCutLeaveNothing compares what the hub and the agents hold before and after their
// connections were cut many times. "make soak" does that with 200 tunnels for ten minutes.
func TestTunnelsThatAreCutLeaveNothing(t *testing.T) {
	s := newSoak(t)
	draw := rand.New(rand.NewPCG(*soakSeed, 0)) //nolint:gosec // it must be repeatable
	s.life(t, draw, 1, 0)                       // what the first tunnels leave is there for good
	before := held(t)
	s.asked.Store(0)
	s.answered.Store(0)
	cuts := s.life(t, draw, cutsEach*len(s.names), *soakFor)
	var after holding
	soon(t, func() error {
		if after = held(t); after.goroutines > before.goroutines+moreHandles || after.files > before.files+moreHandles {
			return fmt.Errorf("before: %s; after: %s", before, after)
		}
		return nil
	})
	t.Logf("measured: seed %d, %d tunnels, %d cuts, %d of %d requests answered\nbefore: %s\nafter:  %s",
		*soakSeed, len(s.names), cuts, s.answered.Load(), s.asked.Load(), before, after)
	require.Positive(t, s.answered.Load())
	require.LessOrEqual(t, after.heap, before.heap+moreHeap)
}
