// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/internal/certs"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
)

// CVE-2024-22030: the owner of the hub's address is not necessarily the hub. The pinned
// certificate authority identifies it, and nothing is sent to any other server.
func TestCVE202422030AnAgentTalksOnlyToThePinnedHub(t *testing.T) {
	var asked atomic.Int64
	hub := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"x"}}`))
	}))
	t.Cleanup(hub.Close)
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hub.Certificate().Raw})
	set, _, err := certs.DefaultPolicy().Ensure(certs.Set{}, []string{"127.0.0.1"}, hub.Certificate().NotBefore)
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		authority []byte
		reached   bool
	}{
		"the hub's own authority":    {own, true},
		"another authority":          {set.Bundle, false},
		"none: the machine's own":    {nil, false},
		"a bundle that holds it too": {append(append([]byte{}, set.Bundle...), own...), true},
	} {
		t.Run(name, func(t *testing.T) {
			asked.Store(0)
			l, err := NewLink(&kubeconfig.Config{Server: hub.URL, CAData: tc.authority, Token: "the-token"}, "test")
			require.NoError(t, err)
			t.Cleanup(l.Close)
			namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
			_, err = l.Client.Resource(namespaces).Get(t.Context(), "x", metav1.GetOptions{})
			if tc.reached {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "certificate")
			require.NotContains(t, err.Error(), "the-token")
			require.Zero(t, asked.Load(), "no request, and no token, was sent")
		})
	}
	_, err = NewLink(&kubeconfig.Config{Server: hub.URL, CAData: []byte("no certificate")}, "test")
	require.ErrorContains(t, err, "holds no certificate")
}

func TestAnAgentFollowsNoRedirect(t *testing.T) {
	var asked atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(other.Close)
	hub := httptest.NewTLSServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	t.Cleanup(hub.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hub.Certificate().Raw})
	l, err := NewLink(&kubeconfig.Config{Server: hub.URL, CAData: authority, Token: "the-token"}, "test")
	require.NoError(t, err)
	t.Cleanup(l.Close)
	_, err = l.Client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Get(t.Context(), "x", metav1.GetOptions{})
	require.ErrorContains(t, err, "redirects")
	require.Zero(t, asked.Load(), "the token went to another server")
}
