// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// ServiceWay leads to a Service of a managed cluster through its hub, for clients of this machine.
type ServiceWay struct {
	// Hub is the hub, with the user's own credentials.
	Hub *fleet.Cluster
	// Cluster is the managed cluster, and Namespace that of its agent, which has the list of what it exposes.
	Cluster, Namespace string
	// Service is the Service, with a port and a protocol.
	Service Service
}

// path is where the hub serves the Service.
func (w ServiceWay) path() string {
	return connectv1alpha1.ServicePath(w.Cluster, w.Service.target().String())
}

// transport returns what sends requests to the hub, and the hub's address. They are sent by HTTP/1.1, which can be
// upgraded to WebSockets.
func (w ServiceWay) transport() (http.RoundTripper, *url.URL, error) {
	config := rest.CopyConfig(w.Hub.Config)
	config.NextProtos, config.Timeout = []string{"http/1.1"}, 0
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("opening %s: %w", w.Hub, err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the address of %s: %w", w.Hub, err)
	}
	return transport, base, nil
}

// Reach asks the Service for its first page, and returns nil if it answers, whatever it says. Otherwise the error
// names the cluster, the Service, the cause and the fix.
func (w ServiceWay) Reach(ctx context.Context) error {
	transport, base, err := w.transport()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, fleet.ReachTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(base.String(), "/")+w.path()+"/", http.NoBody)
	if err != nil {
		return fmt.Errorf("asking for Service %s: %w", w.Service, err)
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return w.explain(ctx, &url.Error{Op: "Get", URL: base.String(), Err: err})
	}
	defer func() { _ = answer.Body.Close() }()
	return w.explain(ctx, refusalOf(answer))
}

// maxRefusal bounds what is read of an answer of the hub itself, in bytes.
const maxRefusal = 64 << 10

// refusalOf returns what an answer says that is not the Service's; nil for one of the Service. The hub sandboxes what
// a Service answers, and nothing else.
func refusalOf(answer *http.Response) error {
	if answer.StatusCode < http.StatusBadRequest && answer.Header.Get(connectv1alpha1.HeaderError) == "" ||
		answer.Header.Get(connectv1alpha1.HeaderError) == "" && answer.Header.Get(sandbox) != "" {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxRefusal))
	answer.Body = both{io.MultiReader(bytes.NewReader(body), answer.Body), answer.Body}
	if err != nil {
		return fmt.Errorf("reading the answer of the hub: %w", err)
	}
	if status := statusIn(body); status != nil {
		return &apierrors.StatusError{ErrStatus: *status}
	}
	return apierrors.NewGenericServerResponse(answer.StatusCode, "", connectv1alpha1.GroupVersion.WithResource(
		connectv1alpha1.ResourceClusterServices).GroupResource(), "", string(body), 0, true)
}

// both is a body of which a part has been read.
type both struct {
	io.Reader
	io.Closer
}

// explain says why a request for the Service failed.
func (w ServiceWay) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	subject := "Service " + w.Service.String() + " of cluster " + w.Cluster + " cannot be reached through " + w.Hub.String()
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return fleet.Explain("asking for Service "+w.Service.String()+" of cluster "+w.Cluster, w.Hub, err)
	}
	if fix := w.fix(status); fix != nil {
		return failed(subject, status, err, fix)
	}
	if out := explainWay(w.Hub, w.Cluster, subject, err); out != nil {
		return out
	}
	switch {
	case apierrors.IsNotFound(err):
		if served := Served(ctx, w.Hub); served != nil {
			return served
		}
	case apierrors.IsForbidden(err) && causeOf(status) == "":
		return failed(subject, status, err, GrantServices.On(w.Hub, "cluster", w.Cluster))
	case apierrors.IsServiceUnavailable(err):
		return failed(subject, status, err, fleet.CheckHub.On(w.Hub))
	}
	return fleet.Explain(subject, w.Hub, err)
}

// fix returns what helps where the answer is about the Service, and nil otherwise.
func (w ServiceWay) fix(status apierrors.APIStatus) fleet.Fix {
	s := w.Service
	switch causeOf(status) {
	case connectv1alpha1.CauseServiceNotExposed:
		return s.expose(w.Namespace)
	case connectv1alpha1.CauseUnknownService, connectv1alpha1.CauseServiceRefused:
		return ShowServices.On(w.Hub, "cluster", w.Cluster, "namespace", s.Namespace)
	case connectv1alpha1.CauseServiceUnreachable:
		if said := status.Status().Message; s.Protocol == "https" && (strings.Contains(said, "HTTP response to HTTPS client") ||
			strings.Contains(said, "does not look like a TLS handshake")) {
			s.Protocol = "http"
			return SpeakHTTP.On(w.Hub, "cluster", w.Cluster, "service", s.String())
		}
		return ShowEndpoints.On(w.Hub, "cluster", w.Cluster, "namespace", s.Namespace, "name", s.Name)
	case connectv1alpha1.CauseServicesNotServed:
		if status.Status().Code == http.StatusServiceUnavailable {
			return fleet.Advice("try again in a moment")
		}
		return ForwardPort.On(w.Hub, "cluster", w.Cluster, "namespace", s.Namespace, "name", s.Name, "port", fmt.Sprint(s.Port))
	case connectv1alpha1.CauseAgentTooOld:
		return UpgradeAgent.With("cluster", w.Cluster, "hub", w.Hub.Context)
	case connectv1alpha1.CauseRedirected:
		return fleet.Advice("ask for the page that it leads to; only the Service itself knows which one that is")
	}
	return nil
}

// sandbox is the header by which the hub keeps browsers from running scripts of a Service.
const sandbox = "Content-Security-Policy"

// Handler returns what serves the Service to programs of this machine, with the user's credentials for the hub.
// Pages of other sites are refused, which a browser would send here too. told gets what keeps a request from the
// Service until ctx is done; it may be called by several goroutines.
func (w ServiceWay) Handler(ctx context.Context, told func(error)) (http.Handler, error) {
	transport, base, err := w.transport()
	if err != nil {
		return nil, err
	}
	proxy := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0), // clients that are gone
		Rewrite: func(p *httputil.ProxyRequest) {
			before := strings.TrimSuffix(base.Path, "/") + w.path()
			p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = base.Scheme, base.Host, ""
			p.Out.URL.Path, p.Out.URL.RawPath = before+p.In.URL.Path, before+p.In.URL.EscapedPath()
			p.Out.URL.RawQuery = p.In.URL.RawQuery
			for name := range p.Out.Header { // what would change who asks
				if name == "Authorization" || name == "Cookie" || strings.HasPrefix(name, "Impersonate-") {
					p.Out.Header.Del(name)
				}
			}
		},
		ModifyResponse: func(answer *http.Response) error {
			told(w.explain(ctx, refusalOf(answer)))
			answer.Header.Del(sandbox) // nothing else is served at this address
			return nil
		},
		ErrorHandler: func(to http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil {
				return // the client is gone
			}
			err = w.explain(ctx, &url.Error{Op: r.Method, URL: base.String(), Err: err})
			told(err)
			http.Error(to, err.Error(), http.StatusBadGateway)
		},
	}
	return http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		switch {
		case !isOwn(r):
			http.Error(to, "this address is for programs of this machine, not for pages of other sites", http.StatusForbidden)
		case !isPlain(r.URL.Path):
			http.Error(to, "no part of the path may be . or ..", http.StatusBadRequest)
		default:
			proxy.ServeHTTP(to, r)
		}
	}), nil
}

// isOwn reports whether a request comes from a program of this machine, or from a page that this address has served.
// A name that somebody made lead to this machine is not ours, nor is what another site has a browser send.
func isOwn(r *http.Request) bool {
	host := r.Host
	if name, port, err := net.SplitHostPort(host); err == nil && isNumber(port) {
		host = name
	}
	if !slices.Contains([]string{"localhost", "127.0.0.1", "::1", "[::1]"}, strings.ToLower(host)) {
		return false
	}
	if from := r.Header.Values("Origin"); len(from) > 0 && !slices.Equal(from, []string{"http://" + r.Host}) {
		return false
	}
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "" || site == "none" || site == "same-origin"
}

// isPlain reports whether a path stays below the Service.
func isPlain(path string) bool {
	return strings.HasPrefix(path, "/") && !slices.ContainsFunc(strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' }),
		func(e string) bool { return e == "." || e == ".." })
}
