// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
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
	"github.com/kubectl-ocm/kubectl-ocm/internal/observe"
)

// Port is the port of the server in a pod.
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
	// PathValidatePermission is that of ClusterPermissions.
	PathValidatePermission = "/validate-rbac-open-cluster-management-io-v1alpha1-clusterpermission"
	PathConvert            = "/convert"
	readTimeout            = 15 * time.Second
	writeTimeout           = 35 * time.Second // the API server waits for 30 s at most
	idleTimeout            = 2 * time.Minute
	stopTimeout            = 3 * time.Second
	maxHeaderBytes         = 1 << 16
)

// Linger is how long the server keeps serving after it is told to stop: by then, nodes no
// longer route new connections to it. A later connection would go to an address without a
// listener, and the write that caused it would hang until its timeout. While requests still
// arrive, because endpoint updates propagate slowly in a busy cluster, the server keeps
// serving for at most maxLingers times as long. The pod's terminationGracePeriodSeconds must
// be longer than that.
const Linger = 4 * time.Second

// maxLingers limits how long arriving requests delay the stop of the server, in multiples of
// Options.Linger.
const maxLingers = 3

// Features are the feature gates that admission depends on.
type Features struct {
	// DefaultClusterSet adds clusters without a set to the set default.
	DefaultClusterSet bool
	// ResourceCleanup keeps deleted clusters until their resources are gone.
	ResourceCleanup bool
	// NilExecutorValidating also checks works that name no executor.
	NilExecutorValidating bool
	// ManifestWorkReplicaSet allows replica sets to be created.
	ManifestWorkReplicaSet bool
	// ClusterPermission checks ClusterPermissions; without it, another controller may serve them.
	ClusterPermission bool
}

// Options configures a Server.
type Options struct {
	// Certificate chooses the serving certificate by SNI.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Clients returns the current authorities of clients that may send admission reviews; if
	// it is nil or returns nil, any client may.
	Clients func() *x509.CertPool
	// TLS limits the connections that are accepted.
	TLS observe.TLS
	// Hub answers the questions of the rules.
	Hub Hub
	// Bound returns the sets that a namespace is bound to, from the caches, or with live from
	// the API server. If it is nil, there are no warnings about bindings.
	Bound func(ctx context.Context, namespace string, live bool) ([]string, error)
	// Self are the user names of the hub's own loops.
	Self []string
	// Features returns the current gates.
	Features func() Features
	// Clock is the time source for taints.
	Clock clock.PassiveClock
	// OnListening, unless nil, is called once Listening returns nil.
	OnListening func()
	// Linger is how long to keep serving at least after the context of Run is done; see the
	// constant.
	Linger time.Duration
	// ManifestLimit is the limit of the total size of the manifests of one work, in bytes;
	// zero means MaxManifests.
	ManifestLimit int
	// Log gets errors of requests that cannot be decided.
	Log logr.Logger
}

// Server serves admission and conversion.
type Server struct {
	o         Options
	listening atomic.Bool
	// came is true when a connection or a request has arrived since it was last reset.
	came atomic.Bool
	// usual, long and conversions limit the memory for bodies; decodes holds the slots for
	// decoding long ones.
	usual, long, conversions *pool
	decodes                  chan struct{}
	// rules checks condition rules.
	rules *rules.Evaluator
	// patience is how long a response may take, including the client that reads it: a client
	// that reads nothing must not block others forever.
	patience time.Duration
}

// NewServer returns a Server with these options.
func NewServer(o Options) *Server {
	o.ManifestLimit = cmp.Or(o.ManifestLimit, MaxManifests)
	return &Server{
		o: o, usual: newPool(maxBodies), long: newPool(maxBodies), conversions: newPool(maxBodies), decodes: make(chan struct{}, maxDecoding),
		rules: rules.New(), patience: writeTimeout,
	}
}

// Listening returns nil while the server accepts connections, and an error otherwise.
func (s *Server) Listening() error {
	if !s.listening.Load() {
		return fmt.Errorf("admission and conversion are not served yet")
	}
	return nil
}

// Handler returns the handler of all paths.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for path, handler := range map[string]http.Handler{
		PathMutateCluster:      s.admission(changing(s.mutateCluster)),
		PathValidateCluster:    s.admission(validating(s.validateCluster)),
		PathValidateBinding:    s.admission(validating(s.validateBinding)),
		PathValidateSet:        s.admission(validating(validateSet)),
		PathValidatePlacement:  s.admission(validating(validatePlacement), advising(advisePlacement), advising(s.adviseBindings)),
		PathValidateWork:       s.admission(validating(s.validateWork), advising(s.adviseWork)),
		PathValidateWorkSet:    s.admission(validating(s.validateReplicaSet), advising(s.adviseReplicaSet)),
		PathValidatePermission: s.admission(validating(s.validatePermission), advising(s.advisePermission)),
		PathDeleteNamespace:    s.admission(s.validateNamespaceDeletion),
		PathClusterStatus:      s.admission(byAgent(validateClusterStatus)),
		PathWorkStatus:         s.admission(byAgent(validateWorkStatus)),
		PathAddOnStatus:        s.admission(byAgent(validateAddOnStatus)),
		PathValidateAddOn:      s.admission(validating(s.validateAddOn)),
		PathValidateTemplate:   s.admission(validating(s.validateTemplate)),
		PathConvert:            s.bounded(maxConversion, s.conversions, serve(s, convert)),
	} {
		mux.Handle("POST "+path, handler)
	}
	return mux
}

// closeWhenStopping closes each connection after its response once the server has been told
// to stop.
func (s *Server) closeWhenStopping(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.listening.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// linger waits for at least atLeast, and longer while requests arrived during the last half
// of it; see Linger. came reports whether a request has arrived since the last call. linger
// stops at the first error of wait and returns it.
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

// Run serves on the listener until ctx is done and the time to linger is over, then closes
// the listener. Once ctx is done, the server no longer counts as listening, and it closes
// each connection with its next response: the API server reuses connections, and a request on
// a connection that is being closed fails together with the write that caused it.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           s.closeWhenStopping(s.Handler()),
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
	secured := tls.NewListener(limitConnections(l, maxConnections), s.tlsConfig())
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
