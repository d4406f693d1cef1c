// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// wire is a way to a server that is as long and as narrow as one between two places.
type wire struct {
	listener net.Listener
	target   string
	// delay is that of each direction.
	delay time.Duration
	// width is how many bytes each direction of a connection carries in a second.
	width int

	running sync.WaitGroup
	mu      sync.Mutex
	open    map[net.Conn]bool
}

// newWire opens a way to the server of a client configuration.
func newWire(t *testing.T, to *rest.Config, delay time.Duration, width int) *wire {
	t.Helper()
	at, err := url.Parse(to.Host)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w := &wire{listener: listener, target: at.Host, delay: delay, width: width, open: map[net.Conn]bool{}}
	w.running.Go(w.accept)
	t.Cleanup(func() {
		require.NoError(t, listener.Close())
		w.mu.Lock()
		for conn := range w.open {
			_ = conn.Close()
		}
		w.mu.Unlock()
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
		w.mu.Lock()
		w.open[client], w.open[server] = true, true
		w.mu.Unlock()
		w.running.Go(func() { w.carry(server, client) })
		w.running.Go(func() { w.carry(client, server) })
	}
}

// piece is what was read at once, and when it arrives.
type piece struct {
	data []byte
	due  time.Time
}

// carry carries one direction. Pieces wait on their way for the delay, and before it while those
// before them fill the width.
func (w *wire) carry(to, from net.Conn) {
	const size, many, late = 16 << 10, 4 << 10, 10 * time.Millisecond // timers are late by less
	way := make(chan piece, many)
	w.running.Go(func() {
		for p := range way {
			<-time.After(time.Until(p.due))
			if _, err := to.Write(p.data); err != nil {
				_ = from.Close()
			}
		}
		_ = to.Close()
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
