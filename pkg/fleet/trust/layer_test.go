// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"context"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhereAConnectionFailedIsKnown connects to real servers, each of which fails at another layer.
func TestWhereAConnectionFailedIsKnown(t *testing.T) {
	t.Parallel()
	hub := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(hub.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hub.Certificate().Raw})
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	hangsUp := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	hangsUp.TLS = hub.TLS.Clone()
	hangsUp.StartTLS()
	t.Cleanup(hangsUp.Close)

	for name, test := range map[string]struct {
		endpoint Endpoint
		name     string
		want     Layer
	}{
		"nothing listens":      {Endpoint{Server: "https://" + gone.Addr().String(), CA: ca}, "", LayerConnection},
		"another authority":    {Endpoint{Server: hub.URL}, "", LayerTLS},
		"another name":         {Endpoint{Server: hub.URL, CA: ca}, "hub.test", LayerTLS},
		"no TLS":               {Endpoint{Server: "https://" + plain.Listener.Addr().String(), CA: ca}, "", LayerTLS},
		"no answer":            {Endpoint{Server: hangsUp.URL, CA: ca}, "", LayerAnswer},
		"a proxy that is gone": {Endpoint{Server: hub.URL, CA: ca, ProxyURL: "http://" + gone.Addr().String()}, "", LayerConnection},
		"a proxy that says no": {Endpoint{Server: hub.URL, CA: ca, ProxyURL: plain.URL}, "", LayerAnswer},
	} {
		_, err := Root(t.Context(), test.endpoint, test.name)
		require.Error(t, err, name)
		require.Equal(t, test.want, LayerOf(err), "%s: %v", name, err)
	}
	_, err = Root(t.Context(), Endpoint{Server: hub.URL, CA: ca}, "")
	require.NoError(t, err, "the server itself is well")

	nowhere := net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no network") }}
	_, err = nowhere.LookupHost(t.Context(), "hub.invalid")
	require.Equal(t, LayerName, LayerOf(&url.Error{Op: "Get", URL: "https://hub.invalid", Err: &net.OpError{Op: "dial", Net: "tcp", Err: err}}))
}
