// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
	"k8s.io/utils/clock"
)

// Limits of the streams of one tunnel at once.
const (
	MaxStreams     = 256
	MaxUserStreams = 32
	// lingering is how many closed streams the agent may leave half open besides.
	lingering = 64
	// drainTimeout is how long the streams of a tunnel that was replaced may go on.
	drainTimeout = 5 * time.Minute
)

var (
	// ErrTunnelFull means that the tunnel carries as many streams as it may.
	ErrTunnelFull = fmt.Errorf("%d requests are in progress for this cluster, as many as are allowed", MaxStreams)
	// ErrUserFull means that this user has as many streams as they may.
	ErrUserFull = fmt.Errorf("%d requests of this user are in progress for this cluster, as many as are allowed", MaxUserStreams)
	errReplaced = errors.New("a newer tunnel replaced it")
	// ErrOver means that the tunnel has ended, or takes no more streams.
	ErrOver = errors.New("the tunnel has ended")
)

// Tunnel is the hub's end.
type Tunnel struct {
	guard   *guard
	session *yamux.Session
	clock   clock.WithTicker
	serves  []string
	// running are the goroutines of this tunnel.
	running sync.WaitGroup

	mu       sync.Mutex
	draining bool
	streams  int
	users    map[string]int
	// idle is called when the last stream of a draining tunnel ends.
	idle func()
}

// Accept reads the agent's Hello from a connection and answers it. On errors the connection is
// closed. Close, the agent or silence end the tunnel.
func Accept(ctx context.Context, conn io.ReadWriteCloser, program string, c clock.WithTicker) (*Tunnel, Hello, error) {
	var hello Hello
	err := within(ctx, conn, c, func() (err error) {
		if hello, err = ReadHello(conn); err != nil {
			return err
		}
		version := choose(hello.Versions)
		if version == 0 {
			return errors.Join(
				fmt.Errorf("the agent speaks versions %v of the protocol, and this hub %v", hello.Versions, versions),
				WriteHello(conn, Hello{Program: program, Refused: fmt.Sprintf("this hub speaks versions %v of the protocol", versions)}))
		}
		return WriteHello(conn, Hello{Version: version, Program: program})
	})
	if err != nil {
		_ = conn.Close()
		return nil, hello, err
	}
	g := newGuard(conn, c, true)
	session, err := yamux.Client(g, config(MaxStreams+lingering, hubWindow))
	if err != nil {
		g.end(err)
		return nil, hello, err
	}
	t := &Tunnel{guard: g, session: session, clock: c, serves: hello.Serves, users: map[string]int{}}
	t.running.Go(func() { keep(g, session, c, true) })
	return t, hello, nil
}

// Serves reports whether the agent has said that it serves this kind of streams.
func (t *Tunnel) Serves(kind string) bool { return slices.Contains(t.serves, kind) }

// Done is closed when the tunnel has ended.
func (t *Tunnel) Done() <-chan struct{} { return t.session.CloseChan() }

// Err returns why the tunnel has ended; nil while it has not.
func (t *Tunnel) Err() error {
	select {
	case <-t.Done():
	default:
		return nil
	}
	if why := t.guard.reason(); why != nil && !errors.Is(why, io.EOF) {
		return why
	}
	return errors.New("the agent closed the connection, or it broke")
}

// Close ends the tunnel and its streams, and waits until its goroutines have ended. Err returns
// why.
func (t *Tunnel) Close(why error) {
	t.guard.end(why)
	_ = t.session.Close() // the connection is closed already
	t.running.Wait()
}

// Drain lets no new streams through, and ends the tunnel when the last one has ended, at the
// latest after five minutes.
func (t *Tunnel) Drain() {
	idle := make(chan struct{})
	t.mu.Lock()
	if t.draining {
		t.mu.Unlock()
		return
	}
	t.draining, t.idle = true, sync.OnceFunc(func() { close(idle) })
	if t.streams == 0 {
		t.idle()
	}
	t.mu.Unlock()
	go func() {
		timer := t.clock.NewTimer(drainTimeout)
		defer timer.Stop()
		select {
		case <-idle:
		case <-timer.C():
		case <-t.Done():
			return
		}
		t.Close(errReplaced)
	}()
}

// Open opens a stream for a user. The errors are ErrTunnelFull, ErrUserFull, ErrOver, or that of
// the connection.
func (t *Tunnel) Open(user string) (net.Conn, error) {
	if err := t.take(user); err != nil {
		return nil, err
	}
	s, err := t.session.OpenStream()
	if err != nil {
		t.give(user)
		if t.session.IsClosed() {
			return nil, ErrOver
		}
		return nil, err
	}
	return &stream{Conn: s, closed: sync.OnceFunc(func() { t.give(user) })}, nil
}

func (t *Tunnel) take(user string) error {
	open := t.session.NumStreams()
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.draining || t.session.IsClosed():
		return ErrOver
	case t.streams >= MaxStreams || open >= MaxStreams+lingering:
		return ErrTunnelFull
	case t.users[user] >= MaxUserStreams:
		return ErrUserFull
	}
	t.streams++
	t.users[user]++
	return nil
}

func (t *Tunnel) give(user string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.streams--
	if t.users[user]--; t.users[user] == 0 {
		delete(t.users, user)
	}
	if t.draining && t.streams == 0 {
		t.idle()
	}
}

// stream counts as open until it is closed.
type stream struct {
	net.Conn
	closed func()
}

// Close implements net.Conn.
func (s *stream) Close() error {
	defer s.closed()
	return s.Conn.Close()
}
