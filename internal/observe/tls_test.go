// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
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
		"TLS 1.2 by default": {client: &tls.Config{MaxVersion: tls.VersionTLS12}, want: tls.VersionTLS12},
		"never less":         {version: "VersionTLS10", client: &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}},
		"TLS 1.3 only":       {version: "VersionTLS13", client: &tls.Config{MaxVersion: tls.VersionTLS12}},
		"TLS 1.3":            {version: "VersionTLS13", client: &tls.Config{}, want: tls.VersionTLS13},
		"a suite of the list": {
			suites: []string{"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"}, client: &tls.Config{MaxVersion: tls.VersionTLS12}, want: tls.VersionTLS12,
		},
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

func TestLimitsMayChange(t *testing.T) {
	now := TLS{}
	limits := Changing(func() TLS { return now })
	require.Equal(t, uint16(tls.VersionTLS12), limits.Limit(&tls.Config{}).MinVersion)
	now.minVersion = tls.VersionTLS13
	require.Equal(t, uint16(tls.VersionTLS13), limits.Limit(&tls.Config{}).MinVersion)
}

func TestAProfileIsReadAndPassedOn(t *testing.T) {
	for name, tc := range map[string]struct {
		data map[string]string
		args []string
		err  string
	}{
		"nothing":        {nil, []string{"--tls-min-version=VersionTLS12"}, ""},
		"a version":      {map[string]string{"minTLSVersion": "VersionTLS13"}, []string{"--tls-min-version=VersionTLS13"}, ""},
		"its other name": {map[string]string{"minTLSVersion": "TLSv1.3\n"}, []string{"--tls-min-version=VersionTLS13"}, ""},
		"one before 1.2": {map[string]string{"minTLSVersion": "TLSv1.0"}, []string{"--tls-min-version=VersionTLS10"}, ""},
		"suites": {
			map[string]string{"cipherSuites": "TLS_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,"},
			[]string{"--tls-min-version=VersionTLS12", "--tls-cipher-suites=TLS_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"}, "",
		},
		"no version":           {map[string]string{"minTLSVersion": "TLSv2"}, nil, `TLS version "TLSv2": must be one of`},
		"a weak suite":         {map[string]string{"cipherSuites": "TLS_RSA_WITH_RC4_128_SHA"}, nil, "does not exist or has known weaknesses"},
		"long input is cut":    {map[string]string{"cipherSuites": strings.Repeat("x", 1<<20)}, nil, "x...\""},
		"a key of another use": {map[string]string{"other": "x"}, []string{"--tls-min-version=VersionTLS12"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, limits, err := ReadProfile(tc.data)
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
				require.Less(t, len(err.Error()), 300)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.args, p.Args())
			again, err := ParseTLS(p.MinVersion, p.Suites)
			require.NoError(t, err)
			require.Equal(t, limits, again, "as flags they mean the same")
		})
	}
}
