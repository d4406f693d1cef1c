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
	idleTimeout          = 2 * time.Minute
	stopTimeout          = 5 * time.Second
	maxHeaderBytes       = 1 << 16
	maxConcurrentConvert = 4
)

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
	// Log gets what cannot be answered.
	Log logr.Logger
}

// Server serves admission and conversion.
type Server struct {
	o         Options
	listening atomic.Bool
	converts  chan struct{}
}

// NewServer makes a Server.
func NewServer(o Options) *Server {
	return &Server{o: o, converts: make(chan struct{}, maxConcurrentConvert)}
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

// Run serves on the listener until ctx ends, and closes it.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
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
	select {
	case err := <-served:
		return fmt.Errorf("serving admission: %w", err)
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
