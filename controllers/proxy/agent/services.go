// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/proxy/refusal"
	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/internal/service"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

const (
	// connectTimeout is how long a connection to a Service, and the handshake on it, may each take.
	connectTimeout = 10 * time.Second
	// maxAnswerHead bounds the head of a Service's answer, in bytes.
	maxAnswerHead = 64 << 10
	// retryUnread is after how many seconds a request may be tried again that came before the list was
	// read.
	retryUnread = 1
)

var servicesResource = schema.GroupVersionResource{Version: "v1", Resource: "services"}

// Services says how the agent leads to Services of its cluster.
type Services struct {
	// Client reads the managed cluster.
	Client dynamic.Interface
	// Namespace is that of the agent, which has the list of what is exposed.
	Namespace string
	// Dial opens the connections; nil means as a net.Dialer does.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// services serves requests of the hub from Services. Each request is decided by what the cluster says
// when it arrives, and has its own connection.
type services struct {
	Services
	exposed     *exposed
	authorities *authorities
	log         logr.Logger
	cluster     string
}

func newServices(s Services, c Config) *services {
	if s.Dial == nil {
		s.Dial = (&net.Dialer{Timeout: connectTimeout}).DialContext
	}
	return &services{
		Services: s, exposed: newExposed(s, c), authorities: &authorities{client: s.Client, namespace: s.Namespace, clock: c.Clock},
		log: c.Log, cluster: c.Cluster,
	}
}

// serveService answers a request that names a Service.
func (h *handler) serveService(w http.ResponseWriter, r *http.Request) {
	t, err := service.Read(r.Header)
	var refused *refusal.Refusal
	switch {
	case err != nil:
		refused = refusal.New(http.StatusBadRequest, connectv1alpha1.CauseInvalidPath, "%s", err)
	case h.services == nil:
		refused = refusal.New(http.StatusNotImplemented, connectv1alpha1.CauseServicesNotServed,
			"the agent of cluster %s runs on another cluster, from where it does not reach Services of %s", h.cluster, h.cluster)
	default:
		refused = h.services.serve(w, r, t)
	}
	if refused != nil {
		refused.Write(w, h.cluster)
	}
}

// serve sends a request to the Service, if the cluster exposes it.
func (s *services) serve(w http.ResponseWriter, r *http.Request, t service.Target) *refusal.Refusal {
	if refused := s.allowed(t); refused != nil {
		return refused
	}
	at, refused := s.address(r.Context(), t)
	if refused != nil {
		return refused
	}
	roots := x509.NewCertPool()
	if t.IsTLS() {
		var err error
		if roots, err = s.authorities.get(r.Context()); err != nil {
			return refusal.New(http.StatusBadGateway, connectv1alpha1.CauseServiceUnreachable,
				"the agent has no authority to verify Service %s by: %s", t, excerpt.Of(err.Error(), maxMessage))
		}
	}
	s.proxy(t, at, roots).ServeHTTP(w, r)
	return nil
}

// allowed returns a refusal unless the cluster exposes the Service.
func (s *services) allowed(t service.Target) *refusal.Refusal {
	switch {
	case s.exposed.list.Load().Exposes(t):
		return nil
	case !s.exposed.isRead():
		refused := refusal.New(http.StatusServiceUnavailable, connectv1alpha1.CauseServicesNotServed,
			"the agent of cluster %s has not read yet which Services it exposes", s.cluster)
		refused.RetryIn = retryUnread
		return refused
	}
	return refusal.New(http.StatusForbidden, connectv1alpha1.CauseServiceNotExposed,
		"cluster %s does not expose Service %s: its administrator may add the entry %s to the ConfigMap %s there",
		s.cluster, t, t.Entry(), s.exposed.key)
}

// address returns where the Service is reached now.
func (s *services) address(ctx context.Context, t service.Target) (netip.AddrPort, *refusal.Refusal) {
	found, err := typed.Get[corev1.Service](ctx, s.Client, servicesResource, t.Namespace, t.Name)
	switch {
	case apierrors.IsNotFound(err):
		return netip.AddrPort{}, refusal.New(http.StatusNotFound, connectv1alpha1.CauseUnknownService, "cluster %s has no Service %s", s.cluster, t)
	case err != nil:
		return netip.AddrPort{}, refusal.New(http.StatusBadGateway, connectv1alpha1.CauseTunnelBroken,
			"the agent does not learn from its cluster where Service %s is: %s", t, excerpt.Of(err.Error(), maxMessage))
	}
	at, err := service.Address(t, &found.Spec)
	switch {
	case errors.Is(err, service.ErrNoPort):
		return at, refusal.New(http.StatusNotFound, connectv1alpha1.CauseUnknownService, "Service %s of cluster %s: %s", t, s.cluster, err)
	case err != nil:
		return at, refusal.New(http.StatusForbidden, connectv1alpha1.CauseServiceRefused, "Service %s of cluster %s: %s", t, s.cluster, err)
	}
	return at, nil
}

// proxy returns the proxy for one request.
func (s *services) proxy(t service.Target, at netip.AddrPort, roots *x509.CertPool) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport: &http.Transport{
			DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Dial(ctx, "tcp", at.String()) },
			TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: t.Host()},
			DisableKeepAlives: true, DisableCompression: true, TLSHandshakeTimeout: connectTimeout, MaxResponseHeaderBytes: maxAnswerHead,
		},
		FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0), // clients that are gone
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = t.Scheme, net.JoinHostPort(t.Host(), strconv.Itoa(int(t.Port))), ""
			p.Out.URL.RawQuery = p.In.URL.RawQuery
			p.Out.Header.Del(service.Header)
		},
		ModifyResponse: func(answer *http.Response) error {
			answer.Header.Del(connectv1alpha1.HeaderError) // it is the agent's and the hub's alone
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				s.log.V(1).Info("A Service did not answer a request of the hub", "service", t.String(), "error", err.Error())
			}
			s.unreachable(t, err).Write(w, s.cluster)
		},
	}
}

// unreachable says why a Service did not answer.
func (s *services) unreachable(t service.Target, err error) *refusal.Refusal {
	text := excerpt.Of(err.Error(), maxMessage)
	var unverified *tls.CertificateVerificationError
	if errors.As(err, &unverified) {
		return refusal.New(http.StatusBadGateway, connectv1alpha1.CauseServiceUnreachable,
			"the certificate of Service %s of cluster %s is not valid for %s by the authorities in the ConfigMaps %s and %s of namespace %s there: %s",
			t, s.cluster, t.Host(), configMapRootCA, connectv1alpha1.ConfigMapServiceCA, s.Namespace, text)
	}
	return refusal.New(http.StatusBadGateway, connectv1alpha1.CauseServiceUnreachable, "Service %s of cluster %s does not answer: %s", t, s.cluster, text)
}
