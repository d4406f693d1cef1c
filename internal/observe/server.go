// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
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
	// Certificate chooses the serving certificate; nil means a self-signed one that is
	// created at start, which kubelets accept.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Metrics are the metrics that /metrics serves; nil serves none.
	Metrics prometheus.Gatherer
	// Access decides who may read the metrics; nil refuses everyone.
	Access Access
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
	live  map[string]Check
	ready map[string]Check
}

// NewServer returns a Server without checks: it is live and ready once it runs.
func NewServer(o Options) *Server {
	return &Server{o: o, live: map[string]Check{}, ready: map[string]Check{}}
}

// AddLive adds a check to /healthz: while it fails, the kubelet restarts the process. It
// replaces a check of the same name.
func (s *Server) AddLive(name string, c Check) { s.add(s.live, name, c) }

// AddReady adds a check to /readyz: while it fails, Services send no traffic here. It
// replaces a check of the same name.
func (s *Server) AddReady(name string, c Check) { s.add(s.ready, name, c) }

func (s *Server) add(to map[string]Check, name string, c Check) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to[name] = c
}

// Run serves on the listener until ctx ends, and closes it. It returns nil after a clean
// stop.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	certificate := s.o.Certificate
	if certificate == nil {
		own, err := selfSigned(s.o.Now())
		if err != nil {
			return err
		}
		certificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return own, nil }
	}
	if err := Serve(ctx, l, Serving{Handler: s.Handler(), Certificate: certificate}); err != nil {
		return fmt.Errorf("serving health and metrics: %w", err)
	}
	return nil
}

// Serving configures Serve.
type Serving struct {
	Handler http.Handler
	// Certificate chooses the serving certificate.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Patience bounds the time of a response, including its transfer; 0 means no bound.
	Patience time.Duration
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
		ErrorLog:          quiet(),
		BaseContext:       func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	secured := tls.NewListener(l, &tls.Config{
		MinVersion: tls.VersionTLS12, GetCertificate: s.Certificate, NextProtos: []string{"h2", "http/1.1"},
	})
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

// Handler serves the four paths; it is exported for tests and for processes that serve it
// beside other things.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { s.answer(w, s.live) })
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { s.answer(w, s.live) })
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
		_, _ = w.Write([]byte("ok\n"))
		return
	}
	slices.Sort(failing)
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = w.Write([]byte("not ok: " + strings.Join(failing, ", ") + "\n"))
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
