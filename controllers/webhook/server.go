// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
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

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/rules"
)

// Port of the server in a pod.
const Port = 9443

// Paths of the webhooks.
const (
	PathMutateCluster     = "/mutate-cluster-open-cluster-management-io-v1-managedcluster"
	PathValidateCluster   = "/validate-cluster-open-cluster-management-io-v1-managedcluster"
	PathValidateBinding   = "/validate-cluster-open-cluster-management-io-v1beta2-managedclustersetbinding"
	PathValidateSet       = "/validate-cluster-open-cluster-management-io-v1beta2-managedclusterset"
	PathValidatePlacement = "/validate-cluster-open-cluster-management-io-v1beta1-placement"
	PathValidateWork      = "/validate-work-open-cluster-management-io-v1-manifestwork"
	PathValidateWorkSet   = "/validate-work-open-cluster-management-io-v1alpha1-manifestworkreplicaset"
	PathConvert           = "/convert"
	readTimeout           = 15 * time.Second
	writeTimeout          = 35 * time.Second // the API server waits for 30 s at most
	idleTimeout           = 2 * time.Minute
	stopTimeout           = 3 * time.Second
	maxHeaderBytes        = 1 << 16
)

// Linger is how long the server goes on after it was told to stop: by then no
// node sends it new connections any more. One that came later would meet an
// address that nobody has, and the write behind it would hang until its time is
// over. Where requests still come, because the news travels slowly through a busy
// cluster, it goes on until they cease, maxLingers times as long at most.
// The pod's terminationGracePeriodSeconds has to be longer than that.
const Linger = 4 * time.Second

// maxLingers bounds how long requests keep a server that was told to stop.
const maxLingers = 3

// Features are the gates that admission depends on.
type Features struct {
	// DefaultClusterSet puts clusters without a set into the set default.
	DefaultClusterSet bool
	// ResourceCleanup keeps deleted clusters until their resources are gone.
	ResourceCleanup bool
	// NilExecutorValidating also checks works that name no executor.
	NilExecutorValidating bool
	// ManifestWorkReplicaSet lets sets of works be made.
	ManifestWorkReplicaSet bool
}

// Options of a Server.
type Options struct {
	// Certificate chooses the serving certificate by SNI.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Clients are the authorities of those who may ask about admission, as they are now;
	// nil, or nil returned, lets everybody ask.
	Clients func() *x509.CertPool
	// Hub answers the questions that rules ask.
	Hub Hub
	// Bound names the sets that a namespace is bound to, as the caches know it, or
	// live as the API server does. Nil gives no advice on it.
	Bound func(ctx context.Context, namespace string, live bool) ([]string, error)
	// Self is the user name of the hub's own loops.
	Self string
	// Features returns the gates as they are now.
	Features func() Features
	// Clock times taints.
	Clock clock.PassiveClock
	// OnListening, unless nil, is called once Listening is nil.
	OnListening func()
	// Linger is how long to serve on at least after the end; see the constant.
	Linger time.Duration
	// ManifestLimit is how many bytes the manifests of one work may have together;
	// zero means MaxManifests.
	ManifestLimit int
	// Log gets what cannot be answered.
	Log logr.Logger
}

// Server serves admission and conversion.
type Server struct {
	o         Options
	listening atomic.Bool
	// came is true when a connection or a request has come since it was set to false.
	came atomic.Bool
	// usual, long and conversions are what bodies may take of memory; decodes are the
	// turns to decode long ones.
	usual, long, conversions *pool
	decodes                  chan struct{}
	// rules knows what condition rules can be.
	rules *rules.Evaluator
	// patience is how long an answer may take, its reader included: who reads
	// nothing must not hold the turns of others for ever.
	patience time.Duration
}

// NewServer makes a Server.
func NewServer(o Options) *Server {
	if o.ManifestLimit == 0 {
		o.ManifestLimit = MaxManifests
	}
	return &Server{
		o: o, usual: newPool(maxBodies), long: newPool(maxBodies), conversions: newPool(maxBodies), decodes: make(chan struct{}, maxDecoding),
		rules: rules.New(), patience: writeTimeout,
	}
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
	mux.Handle("POST "+PathValidateSet, s.admission(s.validateSet))
	mux.Handle("POST "+PathValidatePlacement, s.admission(s.validatePlacement, advisePlacement, s.adviseBindings))
	mux.Handle("POST "+PathValidateWork, s.admission(s.validateWork, s.adviseWork))
	mux.Handle("POST "+PathValidateWorkSet, s.admission(s.validateReplicaSet, s.adviseReplicaSet))
	mux.Handle("POST "+PathDeleteNamespace, s.admission(s.validateNamespaceDeletion))
	mux.Handle("POST "+PathClusterStatus, s.admission(s.validateClusterStatus))
	mux.Handle("POST "+PathWorkStatus, s.admission(s.validateWorkStatus))
	mux.Handle("POST "+PathAddOnStatus, s.admission(s.validateAddOnStatus))
	mux.Handle("POST "+PathValidateTemplate, s.admission(s.validateTemplate))
	mux.Handle("POST "+PathConvert, s.bounded(maxConversion, s.conversions, http.HandlerFunc(s.convert)))
	return mux
}

// parting asks clients for another connection once the server was told to stop.
func (s *Server) parting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.listening.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// linger waits for at least a time, and on while requests have come during the last
// half of it; see Linger. came tells whether one has come since it was asked last.
// An error of wait ends it.
func linger(atLeast time.Duration, came func() bool, wait func(time.Duration) error) error {
	if atLeast <= 0 {
		return nil
	}
	for half := 1; half <= 2*maxLingers; half++ {
		if err := wait(atLeast / 2); err != nil {
			return err
		}
		if quiet := !came(); quiet && half >= 2 {
			return nil
		}
	}
	return nil
}

// Run serves on the listener until ctx ends and the time to linger is over, and
// closes it. It no longer counts as listening from the end of ctx on, and ends each
// connection with its next answer: the API server keeps connections for its next
// request, and one that is closed at that moment fails, with the write behind it.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           s.parting(s.Handler()),
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      s.patience,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerConnection: maxBuffered, MaxReceiveBufferPerStream: maxBuffered,
		},
		ErrorLog:    log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew || state == http.StateActive {
				s.came.Store(true)
			}
		},
	}
	secured := tls.NewListener(limit(l, maxConnections, maxConnectionsEach), s.tlsConfig())
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
	if err := linger(s.o.Linger, func() bool { return s.came.Swap(false) }, func(d time.Duration) error {
		select {
		case err := <-served:
			return err
		case <-time.After(d):
			return nil
		}
	}); err != nil {
		return fmt.Errorf("serving admission: %w", err)
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
