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

func TestWhoDoesNotReadItsAnswerHoldsNobodyUp(t *testing.T) {
	set, _, err := certs.DefaultPolicy().Ensure(certs.Set{}, []string{"hub"}, time.Now())
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(set.Leaves["hub"].Cert, set.Leaves["hub"].Key)
	require.NoError(t, err)
	s := NewServer(Options{
		Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil },
		Features:    func() Features { return Features{} }, Clock: clocktesting.NewFakePassiveClock(time.Now()),
	})
	s.patience = 2 * time.Second
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})

	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
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
