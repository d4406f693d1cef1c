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
	"sync/atomic"

	"github.com/hashicorp/yamux"
	"k8s.io/utils/clock"
)

// Listener is the agent's end: it accepts the streams that the hub opens.
type Listener struct {
	guard   *guard
	session *yamux.Session
	running sync.WaitGroup
	streams atomic.Int64
}

var _ net.Listener = (*Listener)(nil)

// Offer says hello on a connection and waits for the hub's answer; the versions of hello are set
// here. On errors the connection is closed. Close, the hub or silence end the tunnel.
func Offer(ctx context.Context, conn io.ReadWriteCloser, hello Hello, c clock.WithTicker) (*Listener, Hello, error) {
	var answer Hello
	err := within(ctx, conn, c, func() (err error) {
		hello.Versions = versions
		if err = WriteHello(conn, hello); err != nil {
			return err
		}
		answer, err = ReadHello(conn)
		switch {
		case err != nil:
			return err
		case answer.Refused != "":
			return fmt.Errorf("the hub refuses the tunnel: %s", answer.Refused)
		case !slices.Contains(versions, answer.Version):
			return fmt.Errorf("the hub chose version %d of the protocol, which was not offered", answer.Version)
		}
		return nil
	})
	if err != nil {
		_ = conn.Close()
		return nil, answer, err
	}
	g := newGuard(conn, c, false)
	session, err := yamux.Server(g, config(MaxStreams, agentWindow))
	if err != nil {
		g.end(err)
		return nil, answer, err
	}
	l := &Listener{guard: g, session: session}
	l.running.Go(func() { keep(g, session, c, false) })
	return l, answer, nil
}

// Accept implements net.Listener. Streams beyond MaxStreams are closed at once.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		s, err := l.session.AcceptStream()
		if err != nil {
			return nil, errors.Join(l.guard.reason(), err)
		}
		if l.streams.Add(1) > MaxStreams+lingering {
			l.streams.Add(-1)
			_ = s.Close()
			continue
		}
		return &stream{Conn: s, closed: sync.OnceFunc(func() { l.streams.Add(-1) })}, nil
	}
}

// Close ends the tunnel and its streams.
func (l *Listener) Close() error {
	l.guard.end(errEnded)
	err := l.session.Close()
	l.running.Wait()
	return err
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return l.session.Addr() }
