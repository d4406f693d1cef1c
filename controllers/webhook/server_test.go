// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/internal/certs"
)

// unbuffered is a listener whose connections hold hardly anything that nobody reads.
type unbuffered struct{ net.Listener }

func (l unbuffered) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok {
		err = tcp.SetWriteBuffer(4096)
	}
	return conn, err
}

// start serves on a loopback port until stop is called, at the latest at the end of the test.
// ended receives what Run returned.
func start(t *testing.T, patience, linger time.Duration) (s *Server, address string, stop func(), ended <-chan error) {
	t.Helper()
	set, _, err := certs.DefaultPolicy().Ensure(certs.Set{}, []string{"hub"}, time.Now())
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(set.Leaves["hub"].Cert, set.Leaves["hub"].Key)
	require.NoError(t, err)
	s = NewServer(Options{
		Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil },
		Features:    func() Features { return Features{} }, Clock: clocktesting.NewFakePassiveClock(time.Now()),
		Linger: linger,
	})
	s.patience = patience
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := unbuffered{tcp}
	ctx, cancel := context.WithCancel(t.Context())
	done, result := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(done)
		result <- s.Run(ctx, l)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return s, l.Addr().String(), cancel, result
}

func TestAServerThatStopsGoesOnForAWhile(t *testing.T) {
	s, address, stop, ended := start(t, 30*time.Second, 5*time.Second)
	require.Eventually(t, func() bool { return s.Listening() == nil }, time.Minute, time.Millisecond)
	// Like the API server, these clients reuse connections.
	kept, fresh := newClient(t, address), newClient(t, address)
	before, closes := kept.ask(t)
	require.False(t, closes)
	require.True(t, s.came.Load())
	stop()
	require.Eventually(
		t, func() bool { return s.Listening() != nil }, time.Minute, time.Millisecond,
		"it no longer counts as listening at once",
	)

	after, closes := kept.ask(t)
	require.Equal(t, before, after, "a pending request on an open connection is answered")
	require.True(t, closes, "the next request uses another connection")
	_, closes = fresh.ask(t)
	require.True(t, closes, "a connection that was being opened is served")
	require.NoError(t, <-ended)
	_, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	require.Error(t, err)
}

// client reuses its connection and records which one it used.
type client struct {
	http    http.Client
	address string
	last    net.Addr
}

func newClient(t *testing.T, address string) *client {
	t.Helper()
	c := &client{address: address}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // a test of the server
	c.http.Transport = transport
	t.Cleanup(transport.CloseIdleConnections)
	return c
}

// ask sends one request and returns the connection it used, and whether the server closes
// that connection.
func (c *client) ask(t *testing.T) (connection string, closes bool) {
	t.Helper()
	ctx := httptrace.WithClientTrace(
		t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { c.last = i.Conn.LocalAddr() }},
	)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+c.address+"/", strings.NewReader("{}"))
	require.NoError(t, err)
	answer, err := c.http.Do(request)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return c.last.String(), answer.Close
}

func TestRequestsThatStillComeKeepAServerThatStops(t *testing.T) {
	for name, tc := range map[string]struct {
		came []bool
		want time.Duration
	}{
		"nobody comes":                  {came: []bool{false, false}, want: 4 * time.Second},
		"those of the first half count": {came: []bool{true, false}, want: 4 * time.Second},
		"until they cease":              {came: []bool{true, true, true, false}, want: 8 * time.Second},
		"the news arrives late":         {came: []bool{false, true, false}, want: 6 * time.Second},
		"but not for as long as they can": {
			came: []bool{true, true, true, true, true, true, true, true, true},
			want: 12 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var waited time.Duration
			asked := 0
			require.NoError(
				t,
				linger(
					4*time.Second, func() bool { asked++; return tc.came[asked-1] },
					func(d time.Duration) error { waited += d; return nil },
				),
			)
			require.Equal(t, tc.want, waited)
		})
	}
	require.NoError(t, linger(0, nil, nil))
	broken := errors.New("broken")
	require.ErrorIs(t, linger(4*time.Second, nil, func(time.Duration) error { return broken }), broken)
}

func TestWhoDoesNotReadItsAnswerHoldsNobodyUp(t *testing.T) {
	ctx := t.Context()
	// The handshake has to finish within this time too, even on a busy machine.
	s, address, _, _ := start(t, 16*time.Second, 0)
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	require.NoError(t, err)
	require.NoError(t, raw.(*net.TCPConn).SetReadBuffer(4096))
	conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}) //nolint:gosec // a test of the server
	t.Cleanup(func() { _ = conn.Close() })
	review := fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u",
		"desiredAPIVersion":"addon.open-cluster-management.io/v1beta1","objects":[{"apiVersion":"addon.open-cluster-management.io/v1alpha1",
		"kind":"ManagedClusterAddOn","metadata":{"name":"a","namespace":"c1","annotations":{"a":%q}},"spec":{}}]}}`, strings.Repeat("x", 3<<20))
	require.True(t, json.Valid([]byte(review)))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://hub"+PathConvert, strings.NewReader(review))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	require.NoError(t, request.Write(conn))
	require.Eventually(t, func() bool { return s.conversions.holds() > 0 }, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool { return s.conversions.holds() == 0 }, 2*time.Minute, 10*time.Millisecond)
}

func TestTheServerListensWhenItSaysSo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	told := make(chan error, 1)
	s := NewServer(Options{})
	s.o.OnListening = func() { told <- s.Listening() }
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, l) }()
	require.NoError(t, <-told)
	cancel()
	require.NoError(t, <-ended)
}

func TestAPanicOfARuleIsAnAnswer(t *testing.T) {
	s := NewServer(Options{})
	broken := func(context.Context, *admissionv1.AdmissionRequest) ([]operation, error) { panic("poison") }
	response := s.respond(t.Context(), &admissionv1.AdmissionRequest{UID: "u"}, broken)
	require.EqualValues(t, "u", response.UID)
	require.False(t, response.Allowed)
	require.EqualValues(t, http.StatusInternalServerError, response.Result.Code)
	require.Contains(t, response.Result.Message, "panic: poison")
	require.NotContains(t, response.Result.Message, ".go:", "the stack is for the log")
}
