// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
)

// requireClient refuses reviews of clients without a certificate signed by one of
// Options.Clients, if there are any. An API server presents a certificate to admission
// webhooks if its own configuration names one for them (kubeConfigFile), and never to
// conversion webhooks.
func (s *Server) requireClient(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.o.Clients != nil && s.o.Clients() != nil && (r.TLS == nil || len(r.TLS.VerifiedChains) == 0) {
			// The connection may be older than the current authorities.
			w.Header().Set("Connection", "close")
			http.Error(w, "a client certificate of an API server is required", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// tlsConfig returns the TLS configuration of the listener. It is evaluated per connection
// because the client authorities and the limits may change.
func (s *Server) tlsConfig() *tls.Config {
	base := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.o.Certificate, NextProtos: []string{"h2", "http/1.1"}}
	config := base.Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		asking := s.o.TLS.Limit(base.Clone())
		if s.o.Clients == nil {
			return asking, nil
		}
		if clients := s.o.Clients(); clients != nil {
			asking.ClientAuth, asking.ClientCAs = tls.VerifyClientCertIfGiven, clients
		}
		return asking, nil
	}
	return config
}

// Clients returns the authorities of a PEM bundle: nil if there is no bundle, and an empty
// pool, which verifies no client, if the bundle holds no certificate.
func Clients(bundle []byte, found bool) *x509.CertPool {
	if !found {
		return nil
	}
	p := x509.NewCertPool()
	p.AppendCertsFromPEM(bundle)
	return p
}
