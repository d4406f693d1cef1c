// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// wire is a way to a server whose connections can be cut, and that may be as long and as narrow as
// one between two places.
type wire struct {
	listener net.Listener
	target   string
	// delay is that of each direction, and width how many bytes each direction of a connection
	// carries in a second. A wire without width has neither.
	delay time.Duration
	width int

	running sync.WaitGroup
	mu      sync.Mutex
	// open are the connections; those that are lost carry nothing, and nobody is told.
	open []*connection
}

// connection is one connection over a wire.
type connection struct {
	client, server net.Conn
	lost           atomic.Bool
}

func (c *connection) close() { _, _ = c.client.Close(), c.server.Close() }

// newWire opens a way to the server of a client configuration.
func newWire(t *testing.T, to *rest.Config, delay time.Duration, width int) *wire {
	t.Helper()
	at, err := url.Parse(to.Host)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w := &wire{listener: listener, target: at.Host, delay: delay, width: width}
	w.running.Go(w.accept)
	t.Cleanup(func() {
		require.NoError(t, listener.Close())
		w.mend(false)
		w.running.Wait()
	})
	return w
}

// server is its address, for which the certificates of local servers are valid.
func (w *wire) server() string { return "https://" + w.listener.Addr().String() }

func (w *wire) accept() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", w.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		c := &connection{client: client, server: server}
		w.mu.Lock()
		w.open = append(w.open, c)
		w.mu.Unlock()
		carry := w.copy
		if w.width > 0 {
			carry = w.carry
		}
		var both sync.WaitGroup
		both.Go(func() { carry(c, server, client) })
		both.Go(func() { carry(c, client, server) })
		w.running.Go(func() {
			both.Wait()
			w.forget(c)
		})
	}
}

func (w *wire) forget(c *connection) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, o := range w.open {
		if o == c {
			w.open = append(w.open[:i], w.open[i+1:]...)
			return
		}
	}
}

// copy carries one direction as it comes.
func (w *wire) copy(c *connection, to, from net.Conn) {
	defer c.close()
	_, _ = io.Copy(writer{c, to}, from)
}

// writer drops what is written to a lost connection.
type writer struct {
	c  *connection
	to net.Conn
}

// Write implements io.Writer.
func (w writer) Write(b []byte) (int, error) {
	if w.c.lost.Load() {
		return len(b), nil
	}
	return w.to.Write(b)
}

// cut ends one connection, from one of its sides or without telling either. It reports whether
// there was one.
func (w *wire) cut(draw *rand.Rand) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.open) == 0 {
		return false
	}
	c := w.open[draw.IntN(len(w.open))]
	const ways = 32 // few are lost: each takes a minute to be noticed
	switch way := draw.IntN(ways); {
	case c.lost.Load():
		return false
	case way == 0:
		c.lost.Store(true)
	case way%2 == 0:
		_ = c.client.Close()
	default:
		_ = c.server.Close()
	}
	return true
}

// mend ends the connections that are lost, or all.
func (w *wire) mend(lost bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.open {
		if !lost || c.lost.Load() {
			c.close()
		}
	}
}

// piece is what was read at once, and when it arrives.
type piece struct {
	data []byte
	due  time.Time
}

// carry carries one direction. Pieces wait on their way for the delay, and before it while those
// before them fill the width.
func (w *wire) carry(c *connection, to, from net.Conn) {
	const size, many, late = 16 << 10, 4 << 10, 10 * time.Millisecond // timers are late by less
	way := make(chan piece, many)
	var arriving sync.WaitGroup
	defer arriving.Wait()
	arriving.Go(func() {
		defer c.close()
		for p := range way {
			<-time.After(time.Until(p.due))
			if _, err := to.Write(p.data); err != nil {
				_ = from.Close()
			}
		}
	})
	defer close(way)
	for free := time.Now(); ; {
		data := make([]byte, size)
		n, err := from.Read(data)
		now := time.Now()
		if idle := now.Add(-late); free.Before(idle) {
			free = idle
		}
		free = free.Add(time.Duration(n) * time.Second / time.Duration(w.width))
		due := now
		if free.After(now) {
			due = free
		}
		way <- piece{data: data[:n], due: due.Add(w.delay)}
		if err != nil {
			return
		}
		<-time.After(time.Until(free))
	}
}
