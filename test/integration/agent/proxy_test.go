// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// proxy is a forward proxy that counts the tunnels it has opened, and those for which it
// was sent a client certificate.
type proxy struct {
	*httptest.Server
	tunnels, shown atomic.Int32
}

func newProxy(t *testing.T, secured bool) *proxy {
	t.Helper()
	p := &proxy{}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(p.tunnel))
	if secured {
		p.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequestClientCert}
		p.StartTLS()
	} else {
		p.Start()
	}
	t.Cleanup(func() {
		p.CloseClientConnections()
		p.Close()
	})
	return p
}

func (p *proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "only tunnels", http.StatusMethodNotAllowed)
		return
	}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		p.shown.Add(1)
	}
	there, err := net.Dial("tcp", r.Host)
	if err != nil {
		http.Error(w, "unreachable", http.StatusBadGateway)
		return
	}
	here, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		_ = there.Close()
		return
	}
	p.tunnels.Add(1)
	_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		defer there.Close()
		_, _ = io.Copy(there, here)
	}()
	defer here.Close()
	_, _ = io.Copy(here, there)
}

// certificate returns the certificate of the proxy for clients to trust, in PEM.
func (p *proxy) certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw})
}

// bootstrapBy returns a bootstrap kubeconfig with a real token for this endpoint.
func (h *hub) bootstrapBy(t *testing.T, c *kubeconfig.Config) []byte {
	t.Helper()
	raw, err := c.WithToken(h.As(t, "open-cluster-management", clusterv1.BootstrapServiceAccount).BearerToken)
	require.NoError(t, err)
	return raw
}

func TestJoinThroughProxies(t *testing.T) {
	t.Parallel()
	h, s := newHub(t), newSpoke(t)
	plain, secured := newProxy(t, false), newProxy(t, true)
	endpoint := h.endpoint("hub")
	endpoint.ProxyURL = plain.URL
	s.install(t, config.Options{ClusterName: "proxied", BootstrapKubeconfig: h.bootstrapBy(t, endpoint)})
	s.start(t)
	h.join(t, "proxied")
	kept, err := kubeconfig.ParseSecret(s.secret(t.Context(), "hub-kubeconfig-secret"))
	require.NoError(t, err)
	require.Equal(t, plain.URL, kept.ProxyURL)
	require.Positive(t, plain.tunnels.Load())

	// Another proxy, which uses TLS and whose certificate is in the bundle. The server
	// name to verify the hub is not that of the proxy.
	endpoint.ProxyURL, endpoint.TLSServerName = secured.URL, "kubernetes.default.svc"
	endpoint.CAData = append(append([]byte{}, h.Config.CAData...), secured.certificate()...)
	s.setBootstrap(t, h.bootstrapBy(t, endpoint))
	await(t, func() bool {
		kept, err = kubeconfig.ParseSecret(s.secret(t.Context(), "hub-kubeconfig-secret"))
		return err == nil && kept.ProxyURL == secured.URL
	})
	require.Equal(t, "kubernetes.default.svc", kept.TLSServerName, "the name that the hub is checked by is kept")
	h.condition(t, "proxied", clusterv1.ConditionAvailable, metav1.ConditionUnknown, clusterv1.ReasonManagedClusterLeaseUpdateStopped)
	h.awaitCondition(t, "proxied", clusterv1.ConditionAvailable, metav1.ConditionTrue)
	require.Positive(t, secured.tunnels.Load())
	require.Zero(t, secured.shown.Load(), "the proxy is not shown the agent's certificate")
	require.Len(t, h.requestsOf(t, "proxied"), 1, "the hub knows the certificate")

	// Without its certificate in the bundle, the proxy is not trusted, and the agent
	// reports that.
	endpoint.CAData = h.Config.CAData
	s.setBootstrap(t, h.bootstrapBy(t, endpoint))
	s.awaitKlusterlet(t, "HubConnectionDegraded", "BootstrapSecretError,HubKubeConfigError", "connecting to proxy")
}
