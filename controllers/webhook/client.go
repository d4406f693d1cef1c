// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
)

// authentic answers reviews only to clients whose certificate one of Options.Clients
// vouches for, where there are some. An API server shows a certificate to webhooks of
// admission if its own configuration names one for them (kubeConfigFile); to
// conversions it never does.
func (s *Server) authentic(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.o.Clients != nil && s.o.Clients() != nil && (r.TLS == nil || len(r.TLS.VerifiedChains) == 0) {
			// The connection may be older than the authorities.
			w.Header().Set("Connection", "close")
			http.Error(w, "this hub answers API servers that show their certificate", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// tlsConfig is that of the listener; authorities of clients may come and go.
func (s *Server) tlsConfig() *tls.Config {
	base := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.o.Certificate, NextProtos: []string{"h2", "http/1.1"}}
	if s.o.Clients == nil {
		return base
	}
	config := base.Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		clients := s.o.Clients()
		if clients == nil {
			return nil, nil //nolint:nilnil // the listener's own configuration
		}
		asking := base.Clone()
		asking.ClientAuth, asking.ClientCAs = tls.VerifyClientCertIfGiven, clients
		return asking, nil
	}
	return config
}

// Clients are the authorities of a bundle in PEM: none where there is no bundle, and
// none that vouches for anybody where it holds no certificate.
func Clients(bundle []byte, found bool) *x509.CertPool {
	if !found {
		return nil
	}
	p := x509.NewCertPool()
	p.AppendCertsFromPEM(bundle)
	return p
}
