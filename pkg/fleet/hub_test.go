// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"encoding/pem"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/trust"
)

// silent listens and answers nobody.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	return "https://" + listener.Addr().String()
}

// An operation whose time is over before an API server has answered ran out of time; that the server
// cannot be reached is not known.
func TestTimeThatEndsInTheFirstRequestIsATimeout(t *testing.T) {
	server := silent(t)
	other := httptest.NewTLSServer(nil)
	t.Cleanup(other.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.Certificate().Raw})
	c, err := fleet.Connect(&rest.Config{Host: server}, "hub")
	require.NoError(t, err)
	for name, first := range map[string]func(context.Context) error{
		"the version": func(ctx context.Context) error {
			_, err := fleet.ServerVersion(ctx, c)
			return err
		},
		"the CA of the hub": func(ctx context.Context) error {
			_, err := trust.Discover(ctx, trust.Endpoint{Server: server}, "", "")
			return err
		},
		"a hub whose CA is given": func(ctx context.Context) error {
			_, err := trust.Discover(ctx, trust.Endpoint{Server: server, CA: ca}, "", "")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			var failure *fleet.Error
			require.ErrorAs(t, first(ctx), &failure)
			require.Equal(t, fleet.Timeout, failure.Kind, failure)
			require.Contains(t, failure.Message, server)
			require.NotNil(t, failure.Fix)

			gone, stop := context.WithCancel(t.Context())
			stop()
			require.ErrorIs(t, first(gone), context.Canceled)
		})
	}
}
