// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/certs"
)

// start serves on a loopback port until the returned function is called, which
// is at the end of the test at the latest. ended gets what Run returned.
func start(t *testing.T, patience, linger time.Duration) (s *Server, address string, stop func(), ended <-chan error) {
	t.Helper()
	set, _, err := certs.DefaultPolicy().Ensure(certs.Set{}, []string{"hub"}, time.Now())
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(set.Leaves["hub"].Cert, set.Leaves["hub"].Key)
	require.NoError(t, err)
	s = NewServer(Options{
		Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil },
		Features:    func() Features { return Features{} }, Clock: clocktesting.NewFakePassiveClock(time.Now()), Linger: linger,
	})
	s.patience = patience
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
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
	s, address, stop, ended := start(t, time.Second, 2*time.Second)
	require.Eventually(t, func() bool { return s.Listening() == nil }, 10*time.Second, time.Millisecond)
	stop()
	require.Eventually(t, func() bool { return s.Listening() != nil }, time.Second, time.Millisecond, "it counts as ended at once")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // a test of the server
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/", http.NoBody)
	require.NoError(t, err)
	answer, err := client.Do(request)
	require.NoError(t, err, "a connection that was on its way is served")
	require.NoError(t, answer.Body.Close())
	require.NoError(t, <-ended)
	_, err = client.Do(request) //nolint:bodyclose // there is no answer
	require.Error(t, err)
}

func TestWhoDoesNotReadItsAnswerHoldsNobodyUp(t *testing.T) {
	ctx := t.Context()
	s, address, _, _ := start(t, 2*time.Second, 0)
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	require.NoError(t, err)
	require.NoError(t, raw.(*net.TCPConn).SetReadBuffer(4096))
	conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}) //nolint:gosec // a test of the server
	t.Cleanup(func() { _ = conn.Close() })
	review := fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u",
		"desiredAPIVersion":"addon.open-cluster-management.io/v1beta1","objects":[{"apiVersion":"addon.open-cluster-management.io/v1alpha1",
		"kind":"ManagedClusterAddOn","metadata":{"name":"a","namespace":"c1","annotations":{"a":%q}},"spec":{}}]}}`, strings.Repeat("x", 12<<20))
	require.True(t, json.Valid([]byte(review)))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://hub"+PathConvert, strings.NewReader(review))
	require.NoError(t, err)
	require.NoError(t, request.Write(conn))
	require.Eventually(t, func() bool { return len(s.converts) == 1 }, 10*time.Second, time.Millisecond)
	require.Eventually(t, func() bool { return len(s.converts) == 0 }, 20*time.Second, 10*time.Millisecond)
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
