// SPDX-License-Identifier: Apache-2.0

package agent

import (
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
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/proxy/caller"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/proxy/refusal"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/serviceaccount/origin"
	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/internal/service"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
)

const (
	// headerTimeout is how long the head of a request may take.
	headerTimeout = 30 * time.Second
	// maxHeaders bounds the head of a request, in bytes.
	maxHeaders = 256 << 10
	// maxMessage bounds what a message repeats of another, in bytes.
	maxMessage = 300
)

// foreign are the headers that the hub never sends: it would be another program, or a defect.
var foreign = []string{"Authorization", "Proxy-Authorization", "Cookie"}

// handler serves requests of the hub from the API server of the managed cluster.
type handler struct {
	proxy     *httputil.ReverseProxy
	transport http.RoundTripper
	accounts  accounts
	// cluster is its name on the hub, for answers of the agent itself.
	cluster string
	// services is nil where the agent does not reach the Services of its cluster.
	services *services
}

// newHandler returns a handler of requests of the hub; it sends nothing. Upgrades need HTTP/1.1, and
// with it a response that is not read holds up no other.
func newHandler(c Config) (*handler, error) {
	config := rest.CopyConfig(c.Spoke)
	config.NextProtos = []string{"http/1.1"}
	config.QPS = -1 // the hub limits how many requests there are
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	base, _, err := rest.DefaultServerURL(c.Spoke.Host, "", metav1.Unversioned, rest.IsConfigTransportTLS(*c.Spoke))
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfigAndClient(config, &http.Client{Transport: transport})
	if err != nil {
		return nil, err
	}
	h := &handler{
		transport: transport, cluster: c.Cluster, accounts: accounts{client: client.Resource(accountsResource), hub: origin.Hub(c.Hub)},
	}
	if c.Services != nil {
		h.services = newServices(*c.Services, c)
	}
	h.proxy = &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0), // clients that are gone
		Rewrite:        func(p *httputil.ProxyRequest) { rewrite(p, base) },
		ModifyResponse: ownFault,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				c.Log.V(1).Info("The API server of this cluster did not answer a request of the hub", "error", err.Error())
			}
			refusal.New(http.StatusBadGateway, connectv1alpha1.CauseTunnelBroken,
				"the agent does not reach the API server of its cluster: %s", excerpt.Of(err.Error(), maxMessage)).Write(w, c.Cluster)
		},
	}
	return h, nil
}

// rewrite sends a request to the API server at base, whose transport adds the agent's own
// credential.
func rewrite(p *httputil.ProxyRequest, base *url.URL) {
	p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = base.Scheme, base.Host, ""
	p.Out.URL.Path = strings.TrimSuffix(base.Path, "/") + p.In.URL.Path
	p.Out.URL.RawPath = ""
	p.Out.URL.RawQuery = p.In.URL.RawQuery
	p.Out.Header.Del(caller.Header)
	who, ok := p.In.Context().Value(identity{}).(caller.Caller)
	if !ok || who.User == "" {
		// It was found before; without a user there must be no request.
		p.Out.URL.Host = ""
		return
	}
	who.Impersonate(p.Out.Header)
}

// identity is the key under which the context of a request has the user to act for.
type identity struct{}

// errOwnFault means that the API server does not know the agent.
var errOwnFault = errors.New("the API server of this cluster refuses the agent's own credential")

// ownFault turns an answer about the agent's credential into an error: the client would renew its
// own, which is that of the hub.
func ownFault(answer *http.Response) error {
	if answer.StatusCode == http.StatusUnauthorized {
		return errOwnFault
	}
	return nil
}

// ServeHTTP checks a request of the hub and sends it on.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if refused := h.check(r); refused != nil {
		refused.Write(w, h.cluster)
		return
	}
	if service.Named(r.Header) {
		h.serveService(w, r)
		return
	}
	who, err := caller.Read(r.Header)
	if err != nil {
		refusal.New(http.StatusForbidden, connectv1alpha1.CauseIdentityRefused, "the agent acts for nobody: %s", err).Write(w, h.cluster)
		return
	}
	if who.Account != "" {
		var refused *refusal.Refusal
		if who, refused = h.accounts.resolve(r.Context(), who.Account); refused != nil {
			refused.Write(w, h.cluster)
			return
		}
	}
	h.proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), identity{}, who)))
}

// check refuses what no hub sends.
func (h *handler) check(r *http.Request) *refusal.Refusal {
	if name, found := forged(r.Header); found {
		return refusal.New(http.StatusForbidden, connectv1alpha1.CauseIdentityRefused, "the agent accepts no header %s from the hub", name)
	}
	var err error
	switch {
	case !service.Named(r.Header):
		_, err = caller.Read(r.Header)
	case len(r.Header[caller.Header]) > 0:
		err = errors.New("the request is for a Service, which is told no identity")
	}
	if err != nil {
		return refusal.New(http.StatusForbidden, connectv1alpha1.CauseIdentityRefused, "the agent acts for nobody: %s", err)
	}
	if r.Method == http.MethodConnect || !strings.HasPrefix(r.URL.Path, "/") || r.URL.RawPath != "" {
		return refusal.New(http.StatusBadRequest, connectv1alpha1.CauseInvalidPath, "the path is not one of an API")
	}
	return nil
}

// forged returns a header that carries a credential or an identity.
func forged(head http.Header) (string, bool) {
	for name := range head {
		if slices.Contains(foreign, name) || strings.HasPrefix(name, "Impersonate-") || strings.HasPrefix(name, "X-Remote-") {
			return name, true
		}
	}
	return "", false
}

// serve answers the streams of a tunnel until it ends, and returns why. Requests in progress end
// with it.
func (h *handler) serve(l net.Listener) error {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, IdleTimeout: headerTimeout, MaxHeaderBytes: maxHeaders,
		ErrorLog: log.New(io.Discard, "", 0),
	}
	err := server.Serve(l)
	_ = server.Close() // the connections are closed already
	return fmt.Errorf("the tunnel ended: %w", err)
}

// close ends the idle connections to the API server.
func (h *handler) close() { utilnet.CloseIdleConnectionsFor(h.transport) }
