// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	proxyagent "github.com/kubectl-ocm/kubectl-ocm/controllers/proxy/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
)

// awaitAnotherTunnel waits for a tunnel that was opened after the one of that time.
func (s *scene) awaitAnotherTunnel(t *testing.T, cluster string, than time.Time) {
	t.Helper()
	soon(t, func() error {
		if now := s.registry.Presence(cluster); !now.Connected || !now.Since.After(than) {
			return errors.New("there is no other tunnel yet")
		}
		return nil
	})
}

// serves requires that a request reaches the managed cluster and that its answer comes back.
func (s *scene) serves(t *testing.T, cluster string) {
	t.Helper()
	_, err := s.on(t, cluster, "root", "system:masters").CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, onlyForbidden(err))
}

// TestATunnelOutlivesTheCertificateOfItsAgent: the connection of the old certificate ends, and a
// tunnel with the new one follows without a restart.
func TestATunnelOutlivesTheCertificateOfItsAgent(t *testing.T) {
	s := start(t)
	s.join(t, "renewed")
	link := s.link(t, "renewed", "one")
	s.runOn(t, link, "renewed", s.asAgent)
	s.awaitTunnel(t, "renewed", true)
	first := s.registry.Presence("renewed").Since
	next := s.access(t, "renewed", "one")
	require.NoError(t, link.SetCertificate(next.CertData, next.KeyData))
	s.awaitAnotherTunnel(t, "renewed", first)
	s.serves(t, "renewed")
}

// shifted is a clock that goes wrong.
type shifted struct {
	clock.RealClock
	by time.Duration
}

// Now implements clock.PassiveClock.
func (c shifted) Now() time.Time { return c.RealClock.Now().Add(c.by) }

// TestClocksMayDiffer: no side of a tunnel compares its time with that of the other.
func TestClocksMayDiffer(t *testing.T) {
	s := start(t)
	for name, by := range map[string]time.Duration{"late": -10 * time.Minute, "early": 10 * time.Minute} {
		s.join(t, name)
		hold(t, s.link(t, name, "one"), proxyagent.Config{Spoke: s.asAgent, Cluster: name, Clock: shifted{by: by}, Log: testr.New(t)})
		s.awaitTunnel(t, name, true)
		opened := s.registry.Presence(name).Since
		s.serves(t, name)
		require.Equal(t, opened, s.registry.Presence(name).Since, "it is the same tunnel")
	}
}

// TestATunnelGoesThroughAnHTTPProxy has an agent that reaches its hub only by a proxy, which
// learns where the tunnel goes and nothing of what is in it.
func TestATunnelGoesThroughAnHTTPProxy(t *testing.T) {
	s := start(t)
	s.join(t, "behind")
	p := newConnectProxy(t)
	access := s.access(t, "behind", "one")
	access.ProxyURL = "http://" + p.listener.Addr().String()
	link, err := agent.NewLink(access, "test")
	require.NoError(t, err)
	s.runOn(t, link, "behind", s.asAgent)
	s.awaitTunnel(t, "behind", true)
	s.serves(t, "behind")
	hub := strings.TrimPrefix(s.hub.Config.Host, "https://")
	targets, inside := p.seen()
	require.Equal(t, []string{hub}, slices.Compact(slices.Clone(targets)), "it leads to the hub and nowhere else")
	require.NotEmpty(t, inside)
	require.NotContains(t, string(inside), "HTTP/1.1", "what is in the tunnel is encrypted")

	first, before := s.registry.Presence("behind").Since, len(targets)
	p.cut()
	s.awaitAnotherTunnel(t, "behind", first)
	s.serves(t, "behind")
	targets, _ = p.seen()
	require.Greater(t, len(targets), before)
	require.Equal(t, []string{hub}, slices.Compact(slices.Clone(targets)))
}

// connectProxy is an HTTP proxy that serves CONNECT and nothing else.
type connectProxy struct {
	listener net.Listener

	mu      sync.Mutex
	targets []string
	inside  bytes.Buffer
	open    []net.Conn
}

func newConnectProxy(t *testing.T) *connectProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &connectProxy{listener: listener}
	t.Cleanup(func() {
		require.NoError(t, listener.Close())
		p.cut()
	})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(conn)
		}
	}()
	return p
}

// serve connects one client to where it wants to go, and records what it sends there.
func (p *connectProxy) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	sent := bufio.NewReader(conn)
	request, err := http.ReadRequest(sent)
	if err != nil || request.Method != http.MethodConnect {
		return
	}
	target, err := net.Dial("tcp", request.Host)
	if err != nil {
		return
	}
	defer func() { _ = target.Close() }()
	p.mu.Lock()
	p.targets, p.open = append(p.targets, request.Host), append(p.open, conn, target)
	p.mu.Unlock()
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	go func() { _, _ = io.Copy(conn, target) }()
	_, _ = io.Copy(io.MultiWriter(target, p), sent)
}

// Write records what clients send.
func (p *connectProxy) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inside.Write(b)
}

// seen returns the targets so far, and what clients sent to them.
func (p *connectProxy) seen() (targets []string, inside []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.targets), bytes.Clone(p.inside.Bytes())
}

// cut ends all connections.
func (p *connectProxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.open {
		_ = conn.Close()
	}
	p.open = nil
}
