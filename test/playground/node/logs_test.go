// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground/pki"
)

// Any client with a certificate of the cluster can reach the port; only the
// administrator's, which kube-apiserver presents, is accepted.
func TestLogsAreForAdministratorsOnly(t *testing.T) {
	dir := t.TempDir()
	authority, err := pki.Open(dir, "test", time.Now())
	require.NoError(t, err)
	serving, err := authority.Serving("serving", nil, []net.IP{net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	m := &manager{config: Config{Serving: serving, ClientCA: authority.CertFile()}}
	serve, err := m.listenLogs(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(authority.Certificate()))
	ask := func(certificates ...tls.Certificate) (int, error) {
		transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: certificates, MinVersion: tls.VersionTLS12}}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/exec/x", m.kubelet), http.NoBody)
		require.NoError(t, err)
		response, err := transport.RoundTrip(request)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	certificate := func(user, group string) tls.Certificate {
		pair, err := authority.Client(user, user, group)
		require.NoError(t, err)
		loaded, err := tls.LoadX509KeyPair(pair.CertFile, pair.KeyFile)
		require.NoError(t, err)
		return loaded
	}
	_, err = ask()
	require.Error(t, err, "no certificate, no connection")
	code, err := ask(certificate("agent", "system:open-cluster-management:c1"))
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, code)
	code, err = ask(certificate("admin", "system:masters"))
	require.NoError(t, err)
	require.Equal(t, http.StatusNotImplemented, code, "let in, and told that this is not served")
}

func TestSeekTail(t *testing.T) {
	long := strings.Repeat("a long line of a log file\n", 1000)
	for name, tc := range map[string]struct {
		text  string
		lines int
		want  string
	}{
		"fewer lines than asked for": {"a\nb\n", 5, "a\nb\n"},
		"as many as asked for":       {"a\nb\n", 2, "a\nb\n"},
		"the last":                   {"a\nb\n", 1, "b\n"},
		"a last line without end":    {"a\nb", 1, "b"},
		"none":                       {"a\nb\n", 0, ""},
		"empty lines":                {"a\n\n\n", 2, "\n\n"},
		"an empty file":              {"", 3, ""},
		"across blocks":              {"first\n" + long, 1000, long},
	} {
		t.Run(name, func(t *testing.T) {
			file := strings.NewReader(tc.text)
			require.NoError(t, seekTail(file, tc.lines))
			got, err := io.ReadAll(file)
			require.NoError(t, err)
			require.Equal(t, tc.want, string(got))
		})
	}
}
