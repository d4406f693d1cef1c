// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Gate is a route to a cluster that can be cut, like a network. Clients that should
// notice the cut use the gate's address, for which the certificate is valid.
//
// A cut network closes nothing: while the gate is cut, open connections stay open and
// carry nothing, and new ones are accepted and not answered. Heal closes those, like a
// router that has forgotten them; new ones work.
type Gate struct {
	// Server is the cluster's address through the gate.
	Server string
	// Kubeconfig is an administrator's kubeconfig file through the gate.
	Kubeconfig string

	target   string
	listener net.Listener

	mu sync.Mutex
	// flow is closed while traffic flows, open while the gate is cut.
	flow  chan struct{}
	links map[*link]struct{}
	all   sync.WaitGroup
}

// link is one connection through the gate. Data on a lost link is dropped, and neither
// side hears from the other again.
type link struct {
	client, server net.Conn
	lost           atomic.Bool
}

func (l *link) close() {
	_ = l.client.Close()
	if l.server != nil {
		_ = l.server.Close()
	}
}

// Gate opens a gate to the cluster for the duration of a test.
func (c *Cluster) Gate(t testing.TB) *Gate {
	t.Helper()
	target, err := url.Parse(c.Config.Host)
	require.NoError(t, err)
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	g := &Gate{
		Server: "https://" + listener.Addr().String(), target: target.Host, listener: listener,
		flow: make(chan struct{}), links: map[*link]struct{}{},
		Kubeconfig: filepath.Join(t.TempDir(), c.Name+".kubeconfig"),
	}
	close(g.flow)
	kubeconfig, err := clientcmd.LoadFromFile(c.Kubeconfig)
	require.NoError(t, err)
	kubeconfig.Clusters[c.Name].Server = g.Server
	require.NoError(t, clientcmd.WriteToFile(*kubeconfig, g.Kubeconfig))
	ctx, cancel := context.WithCancel(context.Background())
	g.all.Go(func() { g.accept(ctx) })
	t.Cleanup(func() {
		cancel()
		require.NoError(t, listener.Close())
		g.Heal()
		g.drop()
		g.all.Wait()
	})
	return g
}

// Through returns a client configuration that goes through the gate.
func (g *Gate) Through(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Host = g.Server
	return config
}

// Cut stops all traffic without closing anything.
func (g *Gate) Cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open() {
		g.flow = make(chan struct{})
	}
}

// Lose stops all traffic on open connections, as when the peer loses power: they stay
// open, and neither side is told. New ones work.
func (g *Gate) Lose() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for l := range g.links {
		l.lost.Store(true)
	}
}

// Heal closes connections that were open during the cut and lets new ones through.
func (g *Gate) Heal() {
	g.mu.Lock()
	cut := !g.open()
	if cut {
		for l := range g.links {
			l.close()
		}
		close(g.flow)
	}
	g.mu.Unlock()
}

// open reports whether traffic flows; the caller holds the lock.
func (g *Gate) open() bool {
	select {
	case <-g.flow:
		return true
	default:
		return false
	}
}

// drop closes every connection.
func (g *Gate) drop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for l := range g.links {
		l.close()
	}
}

// flowing returns a channel that is closed as soon as traffic flows.
func (g *Gate) flowing() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.flow
}

func (g *Gate) accept(ctx context.Context) {
	for {
		client, err := g.listener.Accept()
		if err != nil {
			return // closed by the cleanup
		}
		g.all.Go(func() { g.carry(ctx, client) })
	}
}

// carry handles one connection until it ends.
func (g *Gate) carry(ctx context.Context, client net.Conn) {
	l := &link{client: client}
	g.mu.Lock()
	g.links[l] = struct{}{}
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.links, l)
		l.close()
	}()
	<-g.flowing()
	var dialer net.Dialer
	server, err := dialer.DialContext(ctx, "tcp", g.target)
	if err != nil {
		return
	}
	g.mu.Lock()
	l.server = server
	g.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { g.pass(l, server, client) })
	both.Go(func() { g.pass(l, client, server) })
	both.Wait()
}

// pass copies one direction; data that arrives during a cut waits until it is healed.
func (g *Gate) pass(l *link, to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		<-g.flowing()
		switch {
		case l.lost.Load() && err != nil:
			return // without notice to the other side
		case l.lost.Load():
			continue
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				_ = from.Close()
				return
			}
		}
		if errors.Is(err, io.EOF) {
			if half, ok := to.(*net.TCPConn); ok {
				_ = half.CloseWrite()
			}
			return
		}
		if err != nil {
			_ = to.Close()
			return
		}
	}
}
