// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAServerAcceptsWhatItsLimitsAllow(t *testing.T) {
	for name, tc := range map[string]struct {
		version string
		suites  []string
		client  *tls.Config
		want    uint16
	}{
		"TLS 1.2 by default":     {client: &tls.Config{MaxVersion: tls.VersionTLS12}, want: tls.VersionTLS12},
		"never less":             {version: "VersionTLS10", client: &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}},
		"TLS 1.3 only":           {version: "VersionTLS13", client: &tls.Config{MaxVersion: tls.VersionTLS12}},
		"TLS 1.3":                {version: "VersionTLS13", client: &tls.Config{}, want: tls.VersionTLS13},
		"a suite of the list":    {suites: []string{"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"}, client: &tls.Config{MaxVersion: tls.VersionTLS12}, want: tls.VersionTLS12},
		"a suite of another key": {suites: []string{"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"}, client: &tls.Config{MaxVersion: tls.VersionTLS12}},
	} {
		t.Run(name, func(t *testing.T) {
			limits, err := ParseTLS(tc.version, tc.suites)
			require.NoError(t, err)
			l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- NewServer(Options{TLS: limits, Now: time.Now}).Run(ctx, l) }()
			tc.client.InsecureSkipVerify = true
			conn, err := (&tls.Dialer{Config: tc.client}).DialContext(t.Context(), "tcp", l.Addr().String())
			if tc.want == 0 {
				require.Error(t, err)
			} else {
				require.NoError(t, err)
				require.Equal(t, tc.want, conn.(*tls.Conn).ConnectionState().Version)
				require.NoError(t, conn.Close())
			}
			cancel()
			require.NoError(t, <-done)
		})
	}
}
