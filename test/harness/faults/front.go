// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// Front puts a proxy in front of an API server, for a program that runs as a process of its
// own: its requests pass p as those of a client in this process do. The proxy presents the
// certificate of the API server. api is the configuration with which it sends requests on: one
// with a client certificate in the name of that certificate, one with a token as it is. The
// result is the address of the proxy.
func (p *Process) Front(t testing.TB, side string, api *rest.Config, serving tls.Certificate) string {
	t.Helper()
	target, err := url.Parse(api.Host)
	require.NoError(t, err)
	web := httptest.NewUnstartedServer(byIdentity{
		certificate: p.proxy(t, side, target, api), token: p.proxy(t, side, target, rest.AnonymousClientConfig(api)),
	})
	authority := x509.NewCertPool()
	require.True(t, authority.AppendCertsFromPEM(api.CAData), "the API server has no authority")
	web.TLS = &tls.Config{ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: authority, Certificates: []tls.Certificate{serving}, MinVersion: tls.VersionTLS12}
	web.EnableHTTP2 = true
	web.StartTLS()
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return web.URL
}

// proxy sends requests on. One that fails ends as a line that is cut does, without an answer.
func (p *Process) proxy(t testing.TB, side string, target *url.URL, c *rest.Config) http.Handler {
	t.Helper()
	transport, err := rest.TransportFor(p.On(c, side))
	require.NoError(t, err)
	return &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
}

// byIdentity sends requests with a client certificate on in its name.
type byIdentity struct{ certificate, token http.Handler }

// ServeHTTP passes a request on.
func (b byIdentity) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for _, header := range []string{"X-Remote-User", "X-Remote-Uid", "X-Remote-Group"} {
		r.Header.Del(header)
	}
	if len(r.TLS.PeerCertificates) == 0 {
		b.token.ServeHTTP(w, r)
		return
	}
	who := r.TLS.PeerCertificates[0].Subject
	r.Header.Set("X-Remote-User", who.CommonName)
	for _, group := range who.Organization {
		r.Header.Add("X-Remote-Group", group)
	}
	b.certificate.ServeHTTP(w, r)
}

// Quiet reports whether p writes nothing but leases for a while.
func (p *Process) Quiet(while time.Duration) bool {
	p.Take()
	<-time.After(while)
	return !slices.ContainsFunc(p.Take(), func(request string) bool {
		return !strings.Contains(request, " GET ") && !strings.Contains(request, "/leases")
	})
}
