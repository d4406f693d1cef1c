// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/proxy/caller"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/proxy/refusal"
	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/internal/tunnel"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
)

const (
	// answerTimeout is how long the head of a response may take. API servers end requests that
	// are not long after a minute, and send the head of long ones at once.
	answerTimeout = 70 * time.Second
	// maxAnswerHead bounds the head of a response, in bytes.
	maxAnswerHead = 64 << 10
	// retryFull is after how many seconds a request may be tried again where too many are in
	// progress.
	retryFull = 1
	// retryLeader is after how many seconds a request may be tried again where no process leads.
	retryLeader = 2
	// maxReason bounds what a message repeats of why a tunnel ended, in bytes.
	maxReason = 200
)

// sent are the headers of a request that are sent to a managed cluster: what an API server reads, which
// is enough for most other servers.
// All others stay here, and with them whatever a client or a proxy before the hub puts into
// headers to authenticate itself.
var sent = []string{
	"Accept", "Accept-Encoding", "Cache-Control", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "If-Match",
	"If-Modified-Since", "If-None-Match", "If-Unmodified-Since", "Kubectl-Command", "Kubectl-Session", "Pragma", "Range",
	"Sec-Websocket-Extensions", "Sec-Websocket-Key", "Sec-Websocket-Protocol", "Sec-Websocket-Version", "Upgrade", "User-Agent",
	"X-Stream-Protocol-Version",
}

// websocketToken begins a WebSocket protocol that is the token of a user.
const websocketToken = "base64url.bearer.authorization.k8s.io."

// keptBack are the headers of a response that mean the whole origin of the hub to a client, or
// send it elsewhere.
var keptBack = []string{
	"Alt-Svc", "Clear-Site-Data", "Content-Location", "Location", "Public-Key-Pins", "Refresh", "Set-Cookie", "Strict-Transport-Security",
	"Www-Authenticate",
}

// forward sends a request through the tunnel of the cluster.
func (s *Server) forward(w http.ResponseWriter, r *http.Request, t target, who caller.Caller) *refusal.Refusal {
	carried, err := t.identity(who)
	switch {
	case errors.Is(err, caller.ErrAnonymous):
		return refusal.New(http.StatusForbidden, connectv1alpha1.CauseAnonymousUser, "%s", err)
	case err != nil:
		return refusal.New(http.StatusForbidden, connectv1alpha1.CauseIdentityRefused, "%s", err)
	}
	if refused := s.known(t.cluster, http.StatusServiceUnavailable); refused != nil {
		return refused
	}
	if name := impersonating(r.Header); t.account != "" && name != "" {
		return refusal.New(http.StatusForbidden, connectv1alpha1.CauseIdentityRefused,
			"the path says that the request is one of account %s: leave out the header %s", t.account, name)
	}
	conn, refused := s.stream(t, who.User)
	if refused != nil {
		return refused
	}
	defer func() { _ = conn.Close() }() // both sides of the stream have ended by now
	head := http.Header{}
	if t.service != nil {
		t.service.Set(head) // and nobody's name: the Service could not tell who vouches for it
	} else if err := carried.Set(head); err != nil {
		return refusal.New(http.StatusForbidden, connectv1alpha1.CauseIdentityRefused, "%s", err)
	}
	s.through(conn, t, head).ServeHTTP(w, r)
	return nil
}

// identity returns who a user of the hub is on the cluster. Whoever acts as an account must have a
// name, too.
func (t target) identity(who caller.Caller) (caller.Caller, error) {
	carried, err := caller.Carried(who)
	if err != nil || t.account == "" {
		return carried, err
	}
	return caller.OfAccount(t.account)
}

// needs returns what the agent must have said that it serves; empty for what every agent does.
func (t target) needs() string {
	switch {
	case t.service != nil:
		return connectv1alpha1.ServesServices
	case t.account != "":
		return connectv1alpha1.ServesAccounts
	}
	return ""
}

// impersonating returns a header by which a request would act for somebody else; "" without one. The
// API server of the hub has judged and removed those that it knows, and asks for that other user.
func impersonating(head http.Header) string {
	for name := range head {
		if strings.HasPrefix(name, "Impersonate-") {
			return name
		}
	}
	return ""
}

// stream opens a stream to the cluster, if its agent serves what the request is for: an older one
// would take it for another request.
func (s *Server) stream(t target, user string) (net.Conn, *refusal.Refusal) {
	cluster := t.cluster
	at := s.Registry.get(cluster)
	switch {
	case at == nil:
		return nil, s.noTunnel(cluster)
	case t.needs() != "" && !at.Serves(t.needs()):
		return nil, refusal.New(http.StatusNotImplemented, connectv1alpha1.CauseAgentTooOld,
			"the agent of cluster %s is too old to serve %s: upgrade it", cluster, t.needs())
	}
	conn, err := at.Open(user)
	switch {
	case errors.Is(err, tunnel.ErrTunnelFull), errors.Is(err, tunnel.ErrUserFull):
		refused := refusal.New(http.StatusTooManyRequests, connectv1alpha1.CauseTooManyStreams, "cluster %s: %s", cluster, err)
		refused.RetryIn = retryFull
		return nil, refused
	case err != nil:
		return nil, s.noTunnel(cluster)
	}
	return conn, nil
}

// noTunnel says why there is no tunnel.
func (s *Server) noTunnel(cluster string) *refusal.Refusal {
	p := s.Registry.Presence(cluster)
	if p.Why == nil {
		return refusal.New(http.StatusServiceUnavailable, connectv1alpha1.CauseNoTunnel,
			"cluster %s has no tunnel to this hub: turn on the feature gate %s of its agent, and look at the agent's log if it is on",
			cluster, connectv1alpha1.GateClusterProxy)
	}
	return refusal.New(http.StatusServiceUnavailable, connectv1alpha1.CauseNoTunnel,
		"cluster %s has had no tunnel to this hub since %s: %s; its agent opens another one as soon as it reaches the hub",
		cluster, p.Since.UTC().Format(time.RFC3339), excerpt.Of(p.Why.Error(), maxReason))
}

// through returns the proxy for one request, which is sent on this stream with these headers of our own.
func (s *Server) through(conn net.Conn, t target, own http.Header) *httputil.ReverseProxy {
	transport := &http.Transport{
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		DisableKeepAlives: true, DisableCompression: true, ResponseHeaderTimeout: answerTimeout, MaxResponseHeaderBytes: maxAnswerHead,
	}
	return &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0), // clients that are gone
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = "http", t.cluster, t.cluster
			p.Out.URL.Path, p.Out.URL.RawPath = t.path, ""
			p.Out.URL.RawQuery = p.In.URL.RawQuery
			p.Out.Header = trim(p.Out.Header)
			for name, values := range own {
				p.Out.Header[name] = values
			}
		},
		ModifyResponse: restrain,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				s.Log.V(1).Info("Request failed in the tunnel", "cluster", t.cluster, "error", err.Error())
			}
			broken(t.cluster, err).Write(w, t.cluster)
		},
	}
}

// trim returns the headers that are sent on.
func trim(h http.Header) http.Header {
	out := http.Header{}
	for _, name := range sent {
		if values := h.Values(name); len(values) > 0 {
			out[name] = values
		}
	}
	const protocols = "Sec-Websocket-Protocol"
	var kept []string
	for _, value := range out[protocols] {
		for p := range strings.SplitSeq(value, ",") {
			if p = strings.TrimSpace(p); p != "" && !strings.HasPrefix(p, websocketToken) {
				kept = append(kept, p)
			}
		}
	}
	delete(out, protocols)
	if len(kept) > 0 {
		out.Set(protocols, strings.Join(kept, ", "))
	}
	if out.Get("User-Agent") == "" {
		out["User-Agent"] = []string{""} // none, rather than that of this program
	}
	return out
}

// errRedirected means that a response would send the client to another address of the hub.
var errRedirected = errors.New("the managed cluster answered with a redirect, which would lead to the hub")

// restrain changes a response so that it means nothing beyond itself. A client takes it for an
// answer of the hub: it would follow a redirect there with its own credentials, and a browser
// would run a script there.
func restrain(answer *http.Response) error {
	if answer.StatusCode/100 == 3 && answer.StatusCode != http.StatusNotModified {
		return errRedirected
	}
	for name := range answer.Header {
		if slices.Contains(keptBack, name) || strings.HasPrefix(name, "Access-Control-") {
			answer.Header.Del(name)
		}
	}
	answer.Header.Set("X-Content-Type-Options", "nosniff")
	answer.Header.Set("Content-Security-Policy", "sandbox")
	return nil
}

// broken is the answer for a request that failed on its way.
func broken(cluster string, err error) *refusal.Refusal {
	if errors.Is(err, errRedirected) {
		return refusal.New(http.StatusBadGateway, connectv1alpha1.CauseRedirected, "cluster %s: %s", cluster, err)
	}
	return refusal.New(http.StatusBadGateway, connectv1alpha1.CauseTunnelBroken,
		"the tunnel of cluster %s did not carry the request to its end: %s", cluster, excerpt.Of(fmt.Sprint(err), maxReason))
}
