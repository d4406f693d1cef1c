// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"

	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
)

// Time limits of a connection to a hub. A dead connection is noticed after silenceTimeout
// plus answerTimeout, a hub that does not answer a new connection after dialTimeout or
// handshakeTimeout: less than a minute in all cases.
const (
	dialTimeout      = 10 * time.Second
	keepAlive        = 30 * time.Second
	handshakeTimeout = 10 * time.Second
	idleTimeout      = 90 * time.Second
	// silenceTimeout is how long a connection may be silent before an HTTP/2 ping is sent,
	// and answerTimeout how long the answer may take.
	silenceTimeout = 30 * time.Second
	answerTimeout  = 10 * time.Second
)

// Link is one connection to a hub. Everything built from its Config shares that connection. A
// renewed certificate is swapped in without rebuilding anything: open connections are closed,
// and watches resume on new ones.
type Link struct {
	// Config can be passed to any client; it must not be modified.
	Config *rest.Config
	// Client is a dynamic client on Config.
	Client dynamic.Interface

	// Upgrades sends requests that switch to another protocol, which HTTP/2 cannot, with the
	// certificate and no other credential.
	Upgrades http.RoundTripper

	certificate atomic.Pointer[tls.Certificate]
	transport   *http.Transport
	dialer      *connrotation.Dialer
}

// NewLink prepares a connection to the endpoint of c with its credential; it sends nothing.
func NewLink(c *kubeconfig.Config, userAgent string) (*Link, error) {
	l := &Link{dialer: connrotation.NewDialer((&net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}).DialContext)}
	secured := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.TLSServerName, GetClientCertificate: l.clientCertificate}
	if len(c.CAData) > 0 {
		secured.RootCAs = x509.NewCertPool()
		if !secured.RootCAs.AppendCertsFromPEM(c.CAData) {
			return nil, errors.New("connecting to the hub: the certificate authority holds no certificate")
		}
	}
	if len(c.CertData) > 0 {
		if err := l.SetCertificate(c.CertData, c.KeyData); err != nil {
			return nil, err
		}
	}
	l.transport = &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: l.dialer.DialContext, TLSClientConfig: secured,
		TLSHandshakeTimeout: handshakeTimeout, IdleConnTimeout: idleTimeout, MaxIdleConnsPerHost: 4,
		ForceAttemptHTTP2: true, HTTP2: &http.HTTP2Config{SendPingTimeout: silenceTimeout, PingTimeout: answerTimeout},
	}
	if c.ProxyURL != "" {
		u, err := url.Parse(c.ProxyURL)
		if err != nil {
			return nil, errors.New("connecting to the hub: proxy-url is not a URL")
		}
		l.transport.Proxy = http.ProxyURL(u)
		if u.Scheme == "https" {
			l.transport.DialTLSContext = l.dialProxy(u.Hostname(), secured.RootCAs)
		}
	}
	upgrades := l.transport.Clone()
	upgrades.ForceAttemptHTTP2, upgrades.HTTP2, upgrades.DisableKeepAlives = false, nil, true
	upgrades.TLSClientConfig.NextProtos = []string{"http/1.1"}
	upgrades.Protocols = new(http.Protocols)
	upgrades.Protocols.SetHTTP1(true)
	l.Upgrades = kubeconfig.Direct(upgrades)
	// The API server limits requests by its own priority and fairness; a client-side limiter
	// would only hide its answer.
	l.Config = &rest.Config{Host: c.Server, BearerToken: c.Token, Transport: kubeconfig.Direct(frank{l.transport}), UserAgent: userAgent, QPS: -1}
	var err error
	if l.Client, err = dynamic.NewForConfig(l.Config); err != nil {
		return nil, fmt.Errorf("connecting to the hub: %w", err)
	}
	return l, nil
}

// dialProxy connects to a proxy over TLS. The proxy is verified with the CA bundle of the
// kubeconfig, under its own name rather than the hub's, and it never sees the agent's
// certificate.
func (l *Link) dialProxy(name string, roots *x509.CertPool) func(context.Context, string, string) (net.Conn, error) {
	secured := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: name, RootCAs: roots}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		raw, err := l.dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
		defer cancel()
		conn := tls.Client(raw, secured)
		if err := conn.HandshakeContext(ctx); err != nil {
			_ = raw.Close()
			return nil, fmt.Errorf("connecting to proxy %s: %w", address, err)
		}
		return conn, nil
	}
}

// frank is a transport that hides no timeouts. client-go retries a watch that timed out ten
// times, for minutes, before its caller learns of it; the loops here retry by themselves,
// with backoff.
type frank struct{ *http.Transport }

// RoundTrip sends the request. It returns a dial or handshake timeout as an ordinary error;
// the expiry of the request's own context is left as it is.
func (f frank) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := f.Transport.RoundTrip(r)
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() && r.Context().Err() == nil {
		return nil, errors.New(err.Error())
	}
	return answer, err
}

func (l *Link) clientCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	if c := l.certificate.Load(); c != nil {
		return c, nil
	}
	return &tls.Certificate{}, nil
}

// SetCertificate replaces the client certificate, given as PEM, and closes the connections
// made with the previous one.
func (l *Link) SetCertificate(cert, key []byte) error {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		// The message of crypto/tls names the kind of error, never the key.
		return fmt.Errorf("using the client certificate: %w", err)
	}
	if l.certificate.Swap(&pair) != nil {
		l.dialer.CloseAll()
	}
	return nil
}

// Close closes all connections. The Link must not be used afterwards.
func (l *Link) Close() {
	l.transport.CloseIdleConnections()
	l.dialer.CloseAll()
}
