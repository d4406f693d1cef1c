// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kubectl-ocm/kubectl-ocm/internal/observe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// access decides by a map of token to error; other tokens are unknown.
type access map[string]error

func (a access) Allowed(_ context.Context, token, path string) error {
	err, known := a[token]
	if !known || path != "/metrics" {
		return observe.ErrUnauthorized
	}
	return err
}

// serve runs a server until the test ends and returns its address and client.
func serve(t *testing.T, o observe.Options, prepare func(*observe.Server)) (string, *http.Client) {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	o.Now = time.Now
	server := observe.NewServer(o)
	if prepare != nil {
		prepare(server)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx, l) }()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // the certificate is the server's own
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		require.NoError(t, <-done)
	})
	return "https://" + l.Addr().String(), &http.Client{Transport: transport, Timeout: time.Minute}
}

func get(t *testing.T, client *http.Client, url, token string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(r)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body)
}

func TestHealthNamesTheFailingCheckWithoutItsReason(t *testing.T) {
	var failure error
	url, client := serve(t, observe.Options{}, func(s *observe.Server) {
		s.AddReady("certificates", func() error { return failure })
	})
	code, body := get(t, client, url+"/readyz", "")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "ok\n", body)

	failure = errors.New("a secret reason")
	code, body = get(t, client, url+"/readyz", "")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, "not ok: certificates\n", body)
	code, body = get(t, client, url+"/healthz", "")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "ok\n", body)
}

func TestReadinessIsIndependentOfLiveness(t *testing.T) {
	url, client := serve(t, observe.Options{}, func(s *observe.Server) {
		s.AddReady("webhook", func() error { return errors.New("not listening") })
	})
	code, _ := get(t, client, url+"/readyz", "")
	require.Equal(t, http.StatusServiceUnavailable, code)
	code, _ = get(t, client, url+"/livez", "")
	require.Equal(t, http.StatusOK, code)
}

func TestMetricsAreShownToThoseWhoMayReadThem(t *testing.T) {
	registry := prometheus.NewRegistry()
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "ocm_test", Help: "A test."})
	registry.MustRegister(gauge)
	gauge.Set(7)
	may := access{"good": nil, "poor": observe.ErrForbidden, "odd": errors.New("the API is away")}
	url, client := serve(t, observe.Options{Metrics: registry, Access: may}, nil)

	for name, tc := range map[string]struct {
		token string
		want  int
	}{
		"no token":                     {"", http.StatusUnauthorized},
		"unknown token":                {"stranger", http.StatusUnauthorized},
		"known without the right":      {"poor", http.StatusForbidden},
		"the cluster cannot be asked":  {"odd", http.StatusServiceUnavailable},
		"known with the right to read": {"good", http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			code, body := get(t, client, url+"/metrics", tc.token)
			require.Equal(t, tc.want, code)
			if tc.want == http.StatusOK {
				require.Contains(t, body, "ocm_test 7")
			} else {
				require.NotContains(t, body, "ocm_test")
				require.NotContains(t, body, "away")
			}
		})
	}
}

func TestMetricsAreRefusedWhenNobodyDecides(t *testing.T) {
	url, client := serve(t, observe.Options{Metrics: prometheus.NewRegistry()}, nil)
	code, _ := get(t, client, url+"/metrics", "any")
	require.Equal(t, http.StatusForbidden, code)
}

func TestOldTLSIsRefused(t *testing.T) {
	url, _ := serve(t, observe.Options{}, nil)
	dialer := tls.Dialer{
		Config: &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10},
	} //nolint:gosec // it must be refused
	conn, err := dialer.DialContext(t.Context(), "tcp", url[len("https://"):])
	if err == nil {
		_ = conn.Close()
	}
	require.Error(t, err)
}

func TestRegistryKnowsProcessAndQueues(t *testing.T) {
	families, err := observe.NewRegistry("v1.2.3").Gather()
	require.NoError(t, err)
	names := map[string]bool{}
	for _, f := range families {
		names[f.GetName()] = true
	}
	require.True(t, names["process_resident_memory_bytes"])
	require.True(t, names["ocm_build_info"])
	require.True(t, names["go_goroutines"])
}
