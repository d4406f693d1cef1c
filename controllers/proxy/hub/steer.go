// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

const (
	// dialTimeout is how long the replica that leads has to accept a connection.
	dialTimeout = 3 * time.Second
	// acceptPause is the time until the next attempt where no connection can be accepted, for example
	// because too many files are open.
	acceptPause = 100 * time.Millisecond
)

// steered is the listener of a replica of the hub. All tunnels end at the replica that leads, so that
// one answers every request, whichever the API server happens to ask: the others hand connections on
// to it as they come. They see nothing of them: the API server and the leader still verify each other.
type steered struct {
	net.Listener
	leads  func() bool
	leader func() string
	log    logr.Logger

	// mine are the connections that this replica serves, and failed is why there are no more.
	mine   chan net.Conn
	failed chan error
}

// steer starts to accept connections, until ctx is done or the listener is closed. Whatever it starts
// belongs to running.
func steer(ctx context.Context, running *sync.WaitGroup, s steered) net.Listener {
	s.mine, s.failed = make(chan net.Conn), make(chan error, 1)
	running.Go(func() {
		for {
			conn, err := s.Listener.Accept()
			switch {
			case err == nil:
			case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
				s.failed <- err
				return
			default:
				s.log.Error(err, "No connection can be accepted at the moment")
				pause(ctx, acceptPause)
				continue
			}
			running.Go(func() { s.place(ctx, conn) })
		}
	})
	return &s
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// Accept implements net.Listener.
func (s *steered) Accept() (net.Conn, error) {
	select {
	case conn := <-s.mine:
		return conn, nil
	case err := <-s.failed:
		s.failed <- err // it may be asked again
		return nil, err
	}
}

// place serves a connection here or hands it on. Where nobody answers for the leader, this replica
// serves it: it has no tunnels, but it says so.
func (s *steered) place(ctx context.Context, conn net.Conn) {
	if leader := s.leader(); !s.leads() && leader != "" {
		d := net.Dialer{Timeout: dialTimeout}
		there, err := d.DialContext(ctx, "tcp", leader)
		if err == nil {
			relay(ctx, conn, there)
			return
		}
		s.log.V(1).Info("The replica that leads does not answer", "address", leader, "error", err.Error())
	}
	select {
	case s.mine <- conn:
	case <-ctx.Done():
		_ = conn.Close() // nobody has read from it
	}
}

// relay copies between two connections until one of them ends or ctx is done, and closes both. Neither
// side of TLS ends one direction alone.
func relay(ctx context.Context, a, b net.Conn) {
	end := sync.OnceFunc(func() {
		_ = a.Close() // what it was for has ended
		_ = b.Close()
	})
	defer context.AfterFunc(ctx, end)()
	var copying sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		copying.Go(func() {
			defer end()
			_, _ = io.Copy(way[0], way[1]) // the peers notice that it ended
		})
	}
	copying.Wait()
}
