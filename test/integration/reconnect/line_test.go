// SPDX-License-Identifier: Apache-2.0

package reconnect

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
)

// hub is the API server as the agents of the test reach it: over a connection for each
// request, because time stands still while a connection is open.
type hub struct {
	http http.RoundTripper

	mu sync.Mutex
	// sick refuses renewals, away cuts everything off; cut is closed when the hub goes away.
	sick, away bool
	cut        chan struct{}
	sent       []request
}

// request is one request of an agent, whether it was answered or not.
type request struct {
	agent int
	// renews is whether it renews a lease, watches whether it is one for the agent's cluster.
	renews, watches bool
	at              time.Time
	answered        bool
}

// newHub returns the API server of a client configuration.
func newHub(t *testing.T, c *rest.Config) *hub {
	t.Helper()
	secured, err := rest.TLSConfigFor(c)
	require.NoError(t, err)
	if secured == nil {
		secured = &tls.Config{}
	}
	authorized, err := rest.HTTPWrappersForConfig(c, &http.Transport{TLSClientConfig: secured, DisableKeepAlives: true})
	require.NoError(t, err)
	return &hub{http: authorized, cut: make(chan struct{})}
}

// set changes the state of the hub, and cuts off who watches if it goes away.
func (h *hub) set(sick, away bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sick, h.away = sick, away; away {
		close(h.cut)
		h.cut = make(chan struct{})
	}
}

// take returns the requests since the last call.
func (h *hub) take() []request {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.sent
	h.sent = nil
	return out
}

// admit records a request; it returns nil if the request is cut off, and else what ends a watch.
func (h *hub) admit(agent int, r *http.Request) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	answered := !h.away && (!h.sick || r.Method == http.MethodGet)
	h.sent = append(h.sent, request{
		agent: agent, renews: r.Method == http.MethodPut, watches: strings.HasSuffix(r.URL.Path, clusters.Resource), at: time.Now(), answered: answered,
	})
	if !answered {
		return nil
	}
	return h.cut
}

// line is the line of one agent to the hub.
type line struct {
	hub   *hub
	agent int
}

// RoundTrip sends a request. Of a watch it sends what the API server has at once, and nothing more
// until the hub goes away.
func (l line) RoundTrip(r *http.Request) (*http.Response, error) {
	cut := l.hub.admit(l.agent, r)
	if cut == nil {
		return nil, faults.ErrCut
	}
	if r.URL.Query().Get("watch") == "" {
		return l.hub.http.RoundTrip(r)
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	response, err := l.hub.http.RoundTrip(r.WithContext(ctx))
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	first, err := beginning(response.Body, r.URL.Query().Get("sendInitialEvents") == "true")
	if err != nil {
		return nil, err
	}
	response.Body = &silence{Reader: bytes.NewReader(first), ctx: r.Context(), cut: cut}
	return response, nil
}

// beginning reads the first events of a watch, which end with a bookmark.
func beginning(body io.ReadCloser, wanted bool) ([]byte, error) {
	defer func() { _ = body.Close() }()
	var read bytes.Buffer
	for decoder := json.NewDecoder(io.TeeReader(body, &read)); wanted; {
		var event struct {
			Object unstructured.Unstructured `json:"object"`
		}
		if err := decoder.Decode(&event); err != nil {
			return nil, err
		}
		if event.Object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			break
		}
	}
	return read.Bytes(), nil
}

// silence is the body of a watch: its beginning, and then nothing.
type silence struct {
	io.Reader
	ctx context.Context
	cut <-chan struct{}
}

// Read reads the beginning, and then waits until the watch ends.
func (s *silence) Read(p []byte) (int, error) {
	if n, err := s.Reader.Read(p); n > 0 || err == nil {
		return n, err
	}
	select {
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	case <-s.cut:
		return 0, faults.ErrCut
	}
}

// Close does nothing: the connection is closed already.
func (s *silence) Close() error { return nil }
