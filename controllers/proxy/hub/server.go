// SPDX-License-Identifier: Apache-2.0

package hub

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
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/net/netutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/internal/observe"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// Port of the server in a pod.
const Port = 9445

// Limits of the server. A response has no limit of time: watches and terminals are long.
const (
	headerTimeout = 15 * time.Second
	idleTimeout   = 2 * time.Minute
	// maxHeaders bounds the headers of a request, in bytes; those of a person with a thousand
	// groups are long.
	maxHeaders = 256 << 10
	// maxConnections is for the tunnels and the requests of a large fleet.
	maxConnections = 20_000
)

// Where the hub's API server says how it presents itself.
const (
	authenticationNamespace = "kube-system"
	authenticationName      = "extension-apiserver-authentication"
)

// Options configure a Server.
type Options struct {
	// Client reads the ManagedClusters and the authority of the API server.
	Client dynamic.Interface
	// Certificate is the serving certificate.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// TLS limits the connections that are accepted.
	TLS observe.TLS
	// Registry holds the tunnels while the server runs.
	Registry *Registry
	// Leads reports whether this process writes the conditions of the clusters, and holds their tunnels
	// if there may be other processes; nil means never.
	Leads func() bool
	// Leader returns where another process serves the same API and leads, as HOST:PORT; empty while none
	// is known. nil means that there is no other process.
	Leader func() string
	// OnAuthority is called when Authority may return something else; nil means never.
	OnAuthority func()
	// Clock measures the life of the tunnels.
	Clock clock.WithTicker
	// Version is that of this program, for the agents' logs.
	Version string
	// Log receives what happens to tunnels.
	Log logr.Logger
}

// Server serves the API.
type Server struct {
	Options
	clusters  *watch.Collection[membership]
	authority *watch.Collection[authority]
	// read is true once the authority was looked for.
	read      atomic.Bool
	documents map[string]any
	refused   atomic.Int64
	report    *reporter
}

// authority is the API server's proof, or why there is none.
type authority struct {
	is  *frontProxy
	err error
}

// NewServer returns a server; Run starts it, once.
func NewServer(o Options) *Server {
	s := &Server{Options: o, clusters: watchClusters(o.Client, o.Log), documents: documents()}
	s.authority = watch.New(watch.Options[authority]{
		Client: o.Client, Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespace: authenticationNamespace,
		FieldSelector: "metadata.name=" + authenticationName, Log: o.Log,
		Keep: func(u *unstructured.Unstructured) (authority, bool) {
			data, _, err := unstructured.NestedStringMap(u.Object, "data")
			if err != nil {
				return authority{err: err}, true
			}
			f, err := readFrontProxy(data)
			return authority{is: f, err: err}, true
		},
	})
	s.authority.OnChange(func(k reconcile.Key) {
		if a, ok := s.authority.Get(k); ok && a.err != nil {
			o.Log.Error(a.err, "Nobody reaches managed clusters", "configMap", k.String())
		}
		s.authorityChanged()
	})
	s.clusters.OnChange(s.onCluster)
	s.report = newReporter(s)
	return s
}

// frontProxy returns the API server's current proof.
func (s *Server) frontProxy() (*frontProxy, error) {
	a, ok := s.authority.Get(reconcile.Key{Namespace: authenticationNamespace, Name: authenticationName})
	if !ok {
		return nil, errNoFrontProxy
	}
	return a.is, a.err
}

// Authority returns why the hub's API server cannot be told from others, so that nobody is answered;
// known is false until that was read.
func (s *Server) Authority() (problem error, known bool) {
	if !s.read.Load() {
		return nil, false
	}
	_, problem = s.frontProxy()
	return problem, true
}

func (s *Server) authorityChanged() {
	if s.OnAuthority != nil {
		s.OnAuthority()
	}
}

// verify returns nil for a connection of the API server.
func (s *Server) verify(chain []*x509.Certificate) error {
	f, err := s.frontProxy()
	if err != nil {
		return err
	}
	return f.verify(chain, s.Clock.Now())
}

// Run serves on the listener until ctx is done, and then ends all tunnels and requests.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	defer running.Wait()
	failed := make(chan error, 3)
	for _, run := range []func(context.Context) error{s.clusters.Run, s.authority.Run, s.report.run} {
		running.Go(func() { failed <- run(ctx) })
	}
	for _, synced := range []func(context.Context) error{s.clusters.WaitSynced, s.authority.WaitSynced} {
		if err := synced(ctx); err != nil {
			_ = l.Close()         // nothing was accepted
			if ctx.Err() != nil { // a regular stop
				return nil
			}
			return err
		}
	}
	s.read.Store(true)
	s.authorityChanged()
	l = netutil.LimitListener(l, maxConnections)
	if s.Leader != nil {
		l = steer(ctx, &running, steered{Listener: l, leads: s.leads, leader: s.Leader, log: s.Log})
	}
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaders,
		ErrorLog:    log.New(io.Discard, "", 0), // it would report every port scan
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	served := make(chan error, 1)
	running.Go(func() {
		served <- server.Serve(tls.NewListener(l, s.tlsConfig()))
	})
	var err error
	select {
	case err = <-served:
	case err = <-failed:
	case <-ctx.Done():
	}
	cancel()
	closed := server.Close()
	s.Registry.close()
	if err == nil || errors.Is(err, http.ErrServerClosed) {
		return closed
	}
	return fmt.Errorf("serving the API of managed clusters: %w", err)
}

// tlsConfig lets nobody in but the API server: it is verified in the handshake, and again for
// each request, because its authority may have changed. HTTP/1.1 only: each request has its own
// connection, so that one that is not read does not hold up others.
func (s *Server) tlsConfig() *tls.Config {
	base := &tls.Config{
		MinVersion: tls.VersionTLS12, GetCertificate: s.Certificate, NextProtos: []string{"http/1.1"}, ClientAuth: tls.RequireAnyClientCert,
		VerifyConnection: func(state tls.ConnectionState) error { return s.verify(state.PeerCertificates) },
	}
	config := base.Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.TLS.Limit(base.Clone()), nil }
	return config
}

func (s *Server) leads() bool { return s.Leads != nil && s.Leads() }

// Refused returns how many tunnels were refused since the server started.
func (s *Server) Refused() int64 { return s.refused.Load() }
