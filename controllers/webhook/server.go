// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// Port of the server in a pod (registration.md 4).
const Port = 9443

// Paths of the webhooks.
const (
	PathMutateCluster    = "/mutate-cluster-open-cluster-management-io-v1-managedcluster"
	PathValidateCluster  = "/validate-cluster-open-cluster-management-io-v1-managedcluster"
	PathValidateBinding  = "/validate-cluster-open-cluster-management-io-v1beta2-managedclustersetbinding"
	PathValidateWork     = "/validate-work-open-cluster-management-io-v1-manifestwork"
	PathConvert          = "/convert"
	maxAdmission         = 8 << 20  // an object of at most 3 MiB, twice, with its options
	maxConversion        = 64 << 20 // a list of objects
	readTimeout          = 15 * time.Second
	writeTimeout         = 35 * time.Second // the API server waits for 30 s at most
	idleTimeout          = 2 * time.Minute
	stopTimeout          = 3 * time.Second
	maxHeaderBytes       = 1 << 16
	maxConcurrentConvert = 4
)

// Linger is how long the server goes on after it was told to stop: by then no
// node sends it new connections any more. One that came later would meet an
// address that nobody has, and the write behind it would hang until its time is
// over. The pod's terminationGracePeriodSeconds has to be longer.
const Linger = 4 * time.Second

// Features are the gates that admission depends on.
type Features struct {
	// DefaultClusterSet puts clusters without a set into the set default.
	DefaultClusterSet bool
	// ResourceCleanup keeps deleted clusters until their resources are gone.
	ResourceCleanup bool
	// NilExecutorValidating also checks works that name no executor.
	NilExecutorValidating bool
}

// Options of a Server.
type Options struct {
	// Certificate chooses the serving certificate by SNI.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Hub answers the questions that rules ask.
	Hub Hub
	// Features returns the gates as they are now.
	Features func() Features
	// Clock times taints.
	Clock clock.PassiveClock
	// OnListening, unless nil, is called once Listening is nil.
	OnListening func()
	// Linger is how long to serve on after the end; see the constant.
	Linger time.Duration
	// Log gets what cannot be answered.
	Log logr.Logger
}

// Server serves admission and conversion.
type Server struct {
	o         Options
	listening atomic.Bool
	converts  chan struct{}
	// patience is how long an answer may take, its reader included: who reads
	// nothing must not hold the turns of others for ever.
	patience time.Duration
}

// NewServer makes a Server.
func NewServer(o Options) *Server {
	return &Server{o: o, converts: make(chan struct{}, maxConcurrentConvert), patience: writeTimeout}
}

// Listening is nil once the server accepts connections.
func (s *Server) Listening() error {
	if !s.listening.Load() {
		return fmt.Errorf("admission and conversion are not served yet")
	}
	return nil
}

// Handler answers all paths.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST "+PathMutateCluster, s.admission(s.mutateCluster))
	mux.Handle("POST "+PathValidateCluster, s.admission(s.validateCluster))
	mux.Handle("POST "+PathValidateBinding, s.admission(s.validateBinding))
	mux.Handle("POST "+PathValidateWork, s.admission(s.validateWork))
	mux.HandleFunc("POST "+PathConvert, s.convert)
	return mux
}

// Run serves on the listener until ctx ends and the time to linger is over, and
// closes it. It no longer counts as listening from the end of ctx on.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      s.patience,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          log.New(io.Discard, "", 0),
		BaseContext:       func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	secured := tls.NewListener(l, &tls.Config{
		MinVersion: tls.VersionTLS12, GetCertificate: s.o.Certificate, NextProtos: []string{"h2", "http/1.1"},
	})
	served := make(chan error, 1)
	go func() { served <- server.Serve(secured) }()
	s.listening.Store(true)
	defer s.listening.Store(false)
	if s.o.OnListening != nil {
		s.o.OnListening()
	}
	select {
	case err := <-served:
		return fmt.Errorf("serving admission: %w", err)
	case <-ctx.Done():
	}
	s.listening.Store(false)
	server.SetKeepAlivesEnabled(false)
	select {
	case err := <-served:
		return fmt.Errorf("serving admission: %w", err)
	case <-time.After(s.o.Linger):
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
