// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Port of the server in a pod.
const Port = 8443

// Limits of a request; requests to this server are small and answered at once.
const (
	readTimeout    = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	stopTimeout    = 2 * time.Second
	maxHeaderBytes = 1 << 16
)

// Check returns why the process is unhealthy, or nil. It is called for each request and
// must return at once.
type Check func() error

// Options configure a Server.
type Options struct {
	// Metrics are the metrics that /metrics serves; nil serves none.
	Metrics prometheus.Gatherer
	// Access decides who may read the metrics; nil refuses everyone.
	Access Access
	// TLS limits the connections that are accepted.
	TLS TLS
	// Now is used for the certificate's life. It must not be nil.
	Now func() time.Time
	// Log receives errors that occur while answering; the zero value discards them.
	Log logr.Logger
}

// Access decides whether the bearer of a token may get a path.
type Access interface {
	// Allowed returns nil if the bearer may get the path, ErrUnauthorized or ErrForbidden
	// if not, and another error if this cannot be determined.
	Allowed(ctx context.Context, token, path string) error
}

// ErrUnauthorized means that the cluster does not recognize the token.
var ErrUnauthorized = errors.New("the bearer token is not known")

// ErrForbidden means that the identity may not get the path.
var ErrForbidden = errors.New("getting this path is not allowed")

// Server answers /healthz, /readyz, /livez and /metrics over HTTPS.
type Server struct {
	o Options

	mu    sync.Mutex
	ready map[string]Check
}

// NewServer returns a Server without checks: it is live and ready once it runs.
func NewServer(o Options) *Server {
	return &Server{o: o, ready: map[string]Check{}}
}

// AddReady adds a check to /readyz: while it fails, Services send no traffic here. It
// replaces a check of the same name.
func (s *Server) AddReady(name string, c Check) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready[name] = c
}

// Run serves on the listener until ctx ends, and closes it. The certificate is
// self-signed, which kubelets accept. It returns nil after a clean stop.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	own, err := selfSigned(s.o.Now())
	if err != nil {
		return err
	}
	certificate := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return own, nil }
	if err := Serve(ctx, l, Serving{Handler: s.handler(), Certificate: certificate, TLS: s.o.TLS}); err != nil {
		return fmt.Errorf("serving health and metrics: %w", err)
	}
	return nil
}

// ownLife is the lifetime of the certificate that a process creates for itself: an
// upgrade restarts the process long before it expires.
const ownLife = 10 * 365 * 24 * time.Hour

// selfSigned creates a certificate for localhost, valid from an hour before now.
func selfSigned(now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key for health and metrics: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: "localhost"},
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(ownLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate for health and metrics: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// Serving configures Serve.
type Serving struct {
	Handler http.Handler
	// Certificate chooses the serving certificate.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Patience bounds the time of a response, including its transfer; 0 means no bound.
	Patience time.Duration
	// TLS limits the connections that are accepted.
	TLS TLS
}

// Serve answers requests over HTTPS until ctx ends, and closes the listener. Requests in
// progress then have a moment to finish. It returns nil after a clean stop.
func Serve(ctx context.Context, l net.Listener, s Serving) error {
	server := &http.Server{
		Handler:           s.Handler,
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      s.Patience,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          log.New(io.Discard, "", 0), // it would report every port scan
		BaseContext:       func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	base := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.Certificate, NextProtos: []string{"h2", "http/1.1"}}
	listening := base.Clone()
	listening.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.TLS.Limit(base.Clone()), nil }
	secured := tls.NewListener(l, listening)
	served := make(chan error, 1)
	go func() { served <- server.Serve(secured) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	err := server.Shutdown(end)
	if err != nil {
		err = server.Close()
	}
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// handler serves the four paths. A process that answers is alive.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { s.answer(w, nil) })
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { s.answer(w, nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { s.answer(w, s.ready) })
	if s.o.Metrics != nil {
		metrics := promhttp.HandlerFor(s.o.Metrics, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
		mux.Handle("GET /metrics", s.guard(metrics))
	}
	return mux
}

// answer runs the checks: it responds 200 and ok, or 503 with the names of the failing
// checks. The reasons are only logged, since anyone may ask.
func (s *Server) answer(w http.ResponseWriter, checks map[string]Check) {
	s.mu.Lock()
	var failing []string
	for name, check := range checks {
		if err := check(); err != nil {
			failing = append(failing, name)
			s.o.Log.V(1).Info("Check fails", "check", name, "error", err.Error())
		}
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if len(failing) == 0 {
		fmt.Fprintln(w, "ok")
		return
	}
	slices.Sort(failing)
	w.WriteHeader(http.StatusServiceUnavailable)
	fmt.Fprintln(w, "not ok: "+strings.Join(failing, ", "))
}

// guard passes on requests whose bearer may get the path.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := s.allowed(r)
		switch {
		case err == nil:
			next.ServeHTTP(w, r)
		case errors.Is(err, ErrUnauthorized):
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
		case errors.Is(err, ErrForbidden):
			http.Error(w, "Forbidden", http.StatusForbidden)
		default:
			s.o.Log.Error(err, "Access to metrics cannot be decided")
			http.Error(w, "Access cannot be decided", http.StatusServiceUnavailable)
		}
	})
}

func (s *Server) allowed(r *http.Request) error {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
		return ErrUnauthorized
	}
	if s.o.Access == nil {
		return ErrForbidden
	}
	return s.o.Access.Allowed(r.Context(), token, r.URL.Path)
}
