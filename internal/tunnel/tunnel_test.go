// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/yamux"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/internal/tunnel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is a bound for what must happen, not a time that is waited.
const patience = 30 * time.Second

var errTest = errors.New("ended by the test")

// ends are both ends of a tunnel.
type ends struct {
	hub   *tunnel.Tunnel
	agent *tunnel.Listener
	clock *clocktesting.FakeClock
}

// connected returns two connected ends of a TCP connection.
func connected(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	a, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	b, err = l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return a, b
}

// open opens a tunnel.
func open(t *testing.T) ends {
	t.Helper()
	e := ends{clock: clocktesting.NewFakeClock(time.Unix(1e9, 0))}
	near, far := connected(t)
	offered := make(chan error, 1)
	go func() {
		var err error
		e.agent, _, err = tunnel.Offer(context.Background(), far, tunnel.Hello{Program: "agent", Serves: []string{"this"}}, e.clock)
		offered <- err
	}()
	hub, hello, err := tunnel.Accept(t.Context(), near, "hub", e.clock)
	require.NoError(t, err)
	require.NoError(t, <-offered)
	require.Equal(t, "agent", hello.Program)
	require.True(t, hub.Serves("this"))
	require.False(t, hub.Serves("that"))
	e.hub = hub
	t.Cleanup(func() {
		hub.Close(errTest)
		_ = e.agent.Close()
	})
	return e
}

func TestStreamsCarryBytesBothWays(t *testing.T) {
	e := open(t)
	go func() {
		conn, err := e.agent.Accept()
		if err != nil {
			return
		}
		_, _ = io.CopyN(conn, conn, 5)
		_ = conn.Close()
	}()
	conn, err := e.hub.Open("ada")
	require.NoError(t, err)
	_, err = conn.Write([]byte("hello"))
	require.NoError(t, err)
	got, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, "hello", string(got))
	require.NoError(t, conn.Close())
}

// TestAReaderThatStopsHoldsUpNobody: the far side of the first stream writes until nothing more
// fits, and the second stream goes on.
func TestAReaderThatStopsHoldsUpNobody(t *testing.T) {
	e := open(t)
	go func() {
		for {
			conn, err := e.agent.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = conn.Write(make([]byte, 4<<20))
				_ = conn.Close()
			}()
		}
	}()
	slow, err := e.hub.Open("slow")
	require.NoError(t, err)
	fast, err := e.hub.Open("fast")
	require.NoError(t, err)
	n, err := io.Copy(io.Discard, fast)
	require.NoError(t, err)
	require.EqualValues(t, 4<<20, n)
	require.NoError(t, fast.Close())
	n, err = io.Copy(io.Discard, slow)
	require.NoError(t, err)
	require.EqualValues(t, 4<<20, n, "what was not read has waited")
}

// TestAMegabyteIsSentBeforeItIsRead: answers of a distant cluster do not wait for a round trip after
// every small part.
func TestAMegabyteIsSentBeforeItIsRead(t *testing.T) {
	e := open(t)
	conn, err := e.hub.Open("ada")
	require.NoError(t, err)
	there, err := e.agent.Accept()
	require.NoError(t, err)
	_, err = there.Write(make([]byte, 1<<20))
	require.NoError(t, err, "nobody has read any of it")
	require.NoError(t, there.Close())
	n, err := io.Copy(io.Discard, conn)
	require.NoError(t, err)
	require.EqualValues(t, 1<<20, n)
}

func TestStreamsAreLimited(t *testing.T) {
	e := open(t)
	var mine []net.Conn
	for range tunnel.MaxUserStreams {
		conn, err := e.hub.Open("ada")
		require.NoError(t, err)
		mine = append(mine, conn)
	}
	_, err := e.hub.Open("ada")
	require.ErrorIs(t, err, tunnel.ErrUserFull)
	for i := range tunnel.MaxStreams - tunnel.MaxUserStreams {
		_, err := e.hub.Open(fmt.Sprint("other", i))
		require.NoError(t, err, "others are not affected")
	}
	_, err = e.hub.Open("one more")
	require.ErrorIs(t, err, tunnel.ErrTunnelFull)
	require.NoError(t, mine[0].Close())
	require.NoError(t, mine[0].Close(), "closing twice counts once")
	_, err = e.hub.Open("one more")
	require.NoError(t, err)
	_, err = e.hub.Open("two more")
	require.ErrorIs(t, err, tunnel.ErrTunnelFull)
}

// TestASilentLinkIsDead: the other side of the connection answers nothing.
func TestASilentLinkIsDead(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	near, far := connected(t)
	go func() { _ = tunnel.WriteHello(far, tunnel.Hello{Versions: []int{1}}) }()
	hub, _, err := tunnel.Accept(t.Context(), near, "hub", clock)
	require.NoError(t, err)
	await(t, clock.HasWaiters)
	clock.Step(30 * time.Second)
	require.NoError(t, hub.Err(), "once is not enough")
	for hub.Err() == nil { // the tick may come late
		clock.Step(30 * time.Second)
	}
	hub.Close(errTest)
	require.ErrorContains(t, hub.Err(), "silent for too long")
	_, err = hub.Open("ada")
	require.ErrorIs(t, err, tunnel.ErrOver)
}

func TestALivingLinkStays(t *testing.T) {
	e := open(t)
	await(t, e.clock.HasWaiters)
	accepted := make(chan net.Conn, 1)
	go func() {
		conn, err := e.agent.Accept()
		if err == nil {
			accepted <- conn
		}
	}()
	conn, err := e.hub.Open("ada")
	require.NoError(t, err)
	far := <-accepted
	for range 10 { // five minutes, in which something is heard before each tick
		_, err := conn.Write([]byte("x"))
		require.NoError(t, err)
		_, err = io.ReadFull(far, make([]byte, 1))
		require.NoError(t, err)
		_, err = far.Write([]byte("y"))
		require.NoError(t, err)
		_, err = io.ReadFull(conn, make([]byte, 1))
		require.NoError(t, err)
		e.clock.Step(29 * time.Second)
	}
	require.NoError(t, e.hub.Err())
}

// TestTheHubRefusesWhatNoAgentSends: a compromised agent could make the hub keep buffers and
// goroutines for it.
func TestTheHubRefusesWhatNoAgentSends(t *testing.T) {
	for name, tc := range map[string]struct {
		send func(*testing.T, net.Conn)
		why  string
	}{
		"a stream": {
			func(t *testing.T, conn net.Conn) {
				session, err := yamux.Server(conn, silent())
				require.NoError(t, err)
				t.Cleanup(func() { _ = session.Close() })
				_, _ = session.OpenStream()
			},
			"opened a stream",
		},
		"a ping": {
			func(_ *testing.T, conn net.Conn) { _, _ = conn.Write([]byte{0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1}) },
			"sent a ping",
		},
		"another frame": {
			func(_ *testing.T, conn net.Conn) { _, _ = conn.Write([]byte{0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}) },
			"malformed frame",
		},
		"a frame that is too long": {
			func(_ *testing.T, conn net.Conn) { _, _ = conn.Write([]byte{0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, 0}) },
			"malformed frame",
		},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := connected(t)
			go func() { _ = tunnel.WriteHello(far, tunnel.Hello{Versions: []int{1}}) }()
			hub, _, err := tunnel.Accept(t.Context(), near, "hub", clocktesting.NewFakeClock(time.Unix(1e9, 0)))
			require.NoError(t, err)
			_, err = tunnel.ReadHello(far)
			require.NoError(t, err)
			tc.send(t, far)
			select {
			case <-hub.Done():
			case <-time.After(patience):
				t.Fatal("the tunnel goes on")
			}
			hub.Close(errTest)
			require.ErrorContains(t, hub.Err(), tc.why)
		})
	}
}

func TestVersionsAreNegotiated(t *testing.T) {
	near, far := connected(t)
	go func() { _ = tunnel.WriteHello(far, tunnel.Hello{Versions: []int{9, 1}}) }()
	hub, _, err := tunnel.Accept(t.Context(), near, "hub", clocktesting.NewFakeClock(time.Unix(1e9, 0)))
	require.NoError(t, err)
	answer, err := tunnel.ReadHello(far)
	require.NoError(t, err)
	require.Equal(t, 1, answer.Version, "the newest that both speak")
	hub.Close(errTest)
}

func TestAnAgentWithoutACommonVersionIsTold(t *testing.T) {
	near, far := connected(t)
	go func() { _ = tunnel.WriteHello(far, tunnel.Hello{Versions: []int{9}}) }()
	_, _, err := tunnel.Accept(t.Context(), near, "hub", clocktesting.NewFakeClock(time.Unix(1e9, 0)))
	require.ErrorContains(t, err, "versions [9]")
	answer, err := tunnel.ReadHello(far)
	require.NoError(t, err)
	require.Contains(t, answer.Refused, "versions [1]")
}

func TestGarbageBeforeTheHelloIsClosed(t *testing.T) {
	near, far := connected(t)
	go func() { _, _ = far.Write([]byte("garbage that is long enough")) }()
	_, _, err := tunnel.Accept(t.Context(), near, "hub", clocktesting.NewFakeClock(time.Unix(1e9, 0)))
	require.ErrorIs(t, err, tunnel.ErrNoHello)
	_, err = near.Write([]byte("x"))
	require.Error(t, err, "the connection is closed")
}

func TestAHelloThatDoesNotComeEnds(t *testing.T) {
	near, _ := connected(t)
	_, _, err := tunnel.Accept(t.Context(), near, "hub", impatient{clocktesting.NewFakeClock(time.Unix(1e9, 0))})
	require.Error(t, err)
}

// impatient is a clock on which every timer is over as soon as it is set.
type impatient struct{ *clocktesting.FakeClock }

// NewTimer implements clock.Clock.
func (c impatient) NewTimer(d time.Duration) clock.Timer {
	timer := c.FakeClock.NewTimer(d)
	c.Step(d)
	return timer
}

func TestAReplacedTunnelFinishesItsStreams(t *testing.T) {
	e := open(t)
	conn, err := e.hub.Open("ada")
	require.NoError(t, err)
	e.hub.Drain()
	_, err = e.hub.Open("ada")
	require.ErrorIs(t, err, tunnel.ErrOver)
	require.NoError(t, e.hub.Err(), "a stream is open")
	require.NoError(t, conn.Close())
	select {
	case <-e.hub.Done():
	case <-time.After(patience):
		t.Fatal("the tunnel goes on without streams")
	}
	require.ErrorContains(t, e.hub.Err(), "newer tunnel")
}

func silent() *yamux.Config {
	c := yamux.DefaultConfig()
	c.LogOutput = io.Discard
	return c
}

// await waits until f is true.
func await(t *testing.T, f func() bool) {
	t.Helper()
	require.Eventually(t, f, patience, time.Millisecond)
}
