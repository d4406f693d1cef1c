// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground/pki"
)

func (p *pool) holds() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

func (p *pool) queue() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting)
}

// endless is a body that never ends; it counts what is read of it.
type endless struct{ read atomic.Int64 }

func (e *endless) Read(b []byte) (int, error) {
	e.read.Add(int64(len(b)))
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

func reviews() []string {
	return []string{
		PathMutateCluster, PathValidateCluster, PathValidateBinding, PathValidateSet, PathValidatePlacement, PathValidateWork,
		PathValidateWorkSet, PathConvert,
	}
}

func bare() *Server {
	return NewServer(
		Options{Features: func() Features { return Features{} }, Clock: clocktesting.NewFakePassiveClock(time.Now())},
	)
}

func post(ctx context.Context, s *Server, path, from string, body io.Reader, length int64) *httptest.ResponseRecorder {
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, path, body)
	request.ContentLength, request.RemoteAddr = length, from
	request.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, request)
	return w
}

func TestABodyLongerThanAnAPIServerSendsIsNotRead(t *testing.T) {
	s := bare()
	for _, path := range reviews() {
		told, untold := &endless{}, &endless{}
		require.Equal(t, http.StatusRequestEntityTooLarge, post(t.Context(), s, path, "10.0.0.1:1", told, 60<<20).Code, path)
		require.Zero(t, told.read.Load(), path)
		require.Equal(t, http.StatusBadRequest, post(t.Context(), s, path, "10.0.0.1:1", untold, -1).Code, path)
		require.LessOrEqual(t, untold.read.Load(), int64(9<<20), "%s: a body without a length", path)
	}
	require.Zero(t, s.usual.holds()+s.long.holds()+s.conversions.holds(), "all bytes are returned")
}

func TestAnObjectLongerThanAnAPIServerStoresIsNotConverted(t *testing.T) {
	body := fmt.Sprintf(
		`{"request":{"uid":"u","desiredAPIVersion":"addon.open-cluster-management.io/v1beta1","objects":[{"a":%q}]}}`,
		strings.Repeat("x", 5<<20),
	)
	require.Contains(
		t, post(t.Context(), bare(), PathConvert, "10.0.0.1:1", strings.NewReader(body), int64(len(body))).Body.String(),
		"more than 4194304",
	)
}

// held is a body that does not end until it is released.
type held struct{ release chan struct{} }

func (h held) Read([]byte) (int, error) { <-h.release; return 0, io.EOF }

func TestBodiesInMemoryAreBoundedForEachClientAndForAll(t *testing.T) {
	for name, tc := range map[string]struct {
		path   string
		length int64
		pool   func(*Server) *pool
	}{
		"conversions":   {PathConvert, maxConversion, func(s *Server) *pool { return s.conversions }},
		"long reviews":  {PathValidateWork, maxAdmission, func(s *Server) *pool { return s.long }},
		"usual reviews": {PathValidateWork, usualBody, func(s *Server) *pool { return s.usual }},
	} {
		t.Run(name, func(t *testing.T) {
			s := bare()
			p, stuck, ended := tc.pool(s), held{make(chan struct{})}, make(chan struct{})
			fill := int(maxBodies / tc.length)
			sent := 0
			flood := func(from string, n int) {
				for range n {
					sent++
					go func() { post(t.Context(), s, tc.path, from, stuck, tc.length); ended <- struct{}{} }()
				}
			}
			flood("10.0.0.1:1", fill+1)
			require.Eventually(t, func() bool { return p.queue() == fill/2+1 }, time.Minute, time.Millisecond)
			require.EqualValues(t, maxBodies/2, p.holds(), "one client may use half")

			other := post(t.Context(), s, tc.path, "10.0.0.2:1", strings.NewReader(`{}`), 2)
			require.Contains(t, other.Body.String(), "no request", "another client is answered meanwhile")

			flood("10.0.0.3:1", fill)
			require.Eventually(t, func() bool { return p.queue() == fill+1 }, time.Minute, time.Millisecond)
			require.EqualValues(t, maxBodies, p.holds(), "all clients together are limited by the pool")
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			require.Empty(
				t, post(gone, s, tc.path, "10.0.0.4:1", stuck, tc.length).Body.String(), "a canceled request holds no bytes",
			)
			require.Equal(t, fill+1, p.queue())

			close(stuck.release)
			for range sent {
				<-ended
			}
			require.Zero(t, p.holds())
			require.Zero(t, p.queue())
		})
	}
}

func TestConnectionsAreBoundedForEachAddressAndForAll(t *testing.T) {
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := limitConnections(inner, 4)
	t.Cleanup(func() { _ = l.Close() })
	require.True(t, l.admit("10.0.0.1"))
	require.True(t, l.admit("10.0.0.1"))
	require.False(t, l.admit("10.0.0.1"), "this address holds as many as are free")
	require.True(t, l.admit("10.0.0.2"))
	require.True(t, l.admit("10.0.0.3"))
	require.False(t, l.admit("10.0.0.4"), "the total limit is reached")
	l.release("10.0.0.1")
	require.True(t, l.admit("10.0.0.4"), "a new address gets the last one")
	for _, address := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"} {
		l.release(address)
	}
	busy := limitConnections(inner, maxConnections)
	for range 600 {
		require.True(t, busy.admit("10.0.0.1"), "an API server admits 600 requests at once, and each may be reviewed")
	}

	dial := func() net.Conn {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", inner.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	dial()
	first, err := l.Accept()
	require.NoError(t, err)
	dial()
	_, err = l.Accept()
	require.NoError(t, err)
	beyond := dial()
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		if c, err := l.Accept(); err == nil {
			_ = c.Close()
		}
	}()
	_, err = beyond.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "it exceeds the limit")
	require.NoError(t, first.Close())
	require.Error(t, first.Close(), "closing twice counts once")
	dial()
	<-accepted
}

func TestWhereTheHubKnowsItsAPIServersNobodyElseIsAnswered(t *testing.T) {
	made := func(name string) (authority []byte, pair tls.Certificate) {
		a, err := pki.Open(t.TempDir(), name, time.Now())
		require.NoError(t, err)
		p, err := a.Client("api", "api")
		require.NoError(t, err)
		pair, err = tls.LoadX509KeyPair(p.CertFile, p.KeyFile)
		require.NoError(t, err)
		return a.Certificate(), pair
	}
	authority, known := made("api")
	_, stranger := made("other")
	var clients atomic.Pointer[x509.CertPool]
	s := bare()
	a, err := pki.Open(t.TempDir(), "hub", time.Now())
	require.NoError(t, err)
	p, err := a.Serving("hub", []string{"hub"}, nil)
	require.NoError(t, err)
	own, err := tls.LoadX509KeyPair(p.CertFile, p.KeyFile)
	require.NoError(t, err)
	s.o.Certificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &own, nil }
	s.o.Clients = clients.Load
	server := httptest.NewUnstartedServer(s.Handler())
	server.TLS = s.tlsConfig()
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	ask := func(path string, shown ...tls.Certificate) int {
		t.Helper()
		transport := &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, Certificates: shown},
		} //nolint:gosec // a test of the server
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, strings.NewReader("{}"))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/json")
		answer, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			return 0 // the handshake failed
		}
		require.NoError(t, answer.Body.Close())
		return answer.StatusCode
	}
	require.Equal(t, http.StatusBadRequest, ask(PathValidateWork), "no authorities: any client may ask")
	clients.Store(Clients(authority, true))
	require.Equal(t, http.StatusBadRequest, ask(PathValidateWork, known))
	require.Equal(t, http.StatusUnauthorized, ask(PathValidateWork))
	require.Equal(t, http.StatusUnauthorized, ask(PathValidateWork, stranger))
	require.Equal(t, http.StatusBadRequest, ask(PathConvert), "API servers present no certificate there")
	clients.Store(Clients([]byte("garbled"), true))
	require.Nil(t, Clients(nil, false))
	require.Equal(t, http.StatusUnauthorized, ask(PathValidateWork), "a bundle without a certificate admits no client")
}
