// SPDX-License-Identifier: Apache-2.0

package discovery_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/internal/discovery"
)

const (
	coreDocument = `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":""},"versions":[{"version":"v1","freshness":"Current","resources":[
		{"resource":"configmaps","responseKind":{"group":"","version":"","kind":"ConfigMap"},"scope":"Namespaced","verbs":["create","get"]},
		{"resource":"bindings","responseKind":{"group":"","version":"","kind":"Binding"},"scope":"Namespaced","verbs":["create"]},
		{"resource":"namespaces","responseKind":{"group":"","version":"","kind":"Namespace"},"scope":"Cluster","verbs":["get"]}]}]}]}`
	groupsDocument = `{"kind":"APIGroupDiscoveryList","items":[
		{"metadata":{"name":"apps"},"versions":[{"version":"v1","freshness":"Current","resources":[
			{"resource":"deployments","responseKind":{"group":"","version":"","kind":"Deployment"},"scope":"Namespaced","verbs":["get"]},
			{"resource":"mirrors","responseKind":{"group":"","version":"","kind":"Deployment"},"scope":"Namespaced","verbs":["get"]}]}]},
		{"metadata":{"name":"broken.example"},"versions":[{"version":"v1","freshness":"Stale"}]}NEXT]}`
	widgets = `,{"metadata":{"name":"example.com"},"versions":[
		{"version":"v2","freshness":"Current","resources":[
			{"resource":"widgets","responseKind":{"group":"","version":"","kind":"Widget"},"scope":"Cluster","verbs":["get"]}]},
		{"version":"v3","freshness":"Current","resources":[
			{"resource":"widgets","responseKind":{"group":"","version":"","kind":"Widget"},"scope":"Cluster","verbs":["get"]}]}]}`
)

// server answers discovery requests from a table that a test changes.
type server struct {
	mu       sync.Mutex
	answers  map[string]string
	requests []string
}

func (s *server) set(path, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[path] = body
}

func (s *server) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.requests
	s.requests = nil
	return out
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, ok := s.answers[r.URL.Path]
	tag := `"` + body + `"`
	tag = strings.Join(strings.Fields(tag), "")
	switch {
	case !ok:
		w.WriteHeader(http.StatusNotFound)
	case body == "down":
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.Header.Get("If-None-Match") == tag:
		s.requests = append(s.requests, r.URL.Path+" 304")
		w.WriteHeader(http.StatusNotModified)
		return
	default:
		w.Header().Set("Etag", tag)
		_, _ = w.Write([]byte(body))
	}
	s.requests = append(s.requests, r.URL.Path)
}

func start(t *testing.T, answers map[string]string) (*server, *discovery.Mapper, *clocktesting.FakeClock) {
	t.Helper()
	s := &server{answers: answers}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	clk := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	m, err := discovery.New(&rest.Config{Host: h.URL}, clk)
	require.NoError(t, err)
	return s, m, clk
}

func modern(t *testing.T) (*server, *discovery.Mapper, *clocktesting.FakeClock) {
	return start(t, map[string]string{"/api": coreDocument, "/apis": strings.Replace(groupsDocument, "NEXT", "", 1)})
}

func kind(group, version, name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: version, Kind: name}
}

func isUnknownKind(err error) bool { return errors.As(err, new(*discovery.UnknownKindError)) }

func TestKindsAreFoundWithTwoRequestsForAll(t *testing.T) {
	s, m, _ := modern(t)
	for gvk, want := range map[schema.GroupVersionKind]discovery.Mapping{
		kind("", "v1", "ConfigMap"): {
			Resource:   schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
			Namespaced: true,
		},
		kind("", "v1", "Namespace"): {Resource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}},
		kind("apps", "v1", "Deployment"): {
			Resource:   schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
			Namespaced: true,
		},
	} {
		got, err := m.Resource(context.Background(), gvk)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	require.Equal(t, []string{"/api", "/apis"}, s.seen())
}

func TestAnUnknownKindIsLookedUpAtMostOnceASecondAndFreeOfCharge(t *testing.T) {
	s, m, clk := modern(t)
	widget := kind("example.com", "v2", "Widget")
	for range 5 {
		_, err := m.Resource(context.Background(), widget)
		require.EqualError(
			t, err,
			`the server doesn't have a resource type "Widget" in example.com/v2: install its CustomResourceDefinition, or correct apiVersion and kind`,
		)
		require.True(t, isUnknownKind(err))
	}
	require.Equal(t, []string{"/api", "/apis"}, s.seen())
	clk.Step(time.Second)
	_, err := m.Resource(context.Background(), widget)
	require.True(t, isUnknownKind(err))
	require.Equal(t, []string{"/api 304", "/apis 304"}, s.seen())
}

func TestANewDefinitionIsSeenAtOnceAfterInvalidate(t *testing.T) {
	s, m, _ := modern(t)
	widget := kind("example.com", "v2", "Widget")
	_, err := m.Resource(context.Background(), widget)
	require.True(t, isUnknownKind(err))
	s.set("/apis", strings.Replace(groupsDocument, "NEXT", widgets, 1))
	_, err = m.Resource(context.Background(), widget)
	require.True(t, isUnknownKind(err), "within the second the server is not asked again")
	m.Invalidate()
	got, err := m.Resource(context.Background(), widget)
	require.NoError(t, err)
	require.False(t, got.Namespaced)
}

func TestAStaleGroupHarmsOnlyItsOwnKinds(t *testing.T) {
	_, m, _ := modern(t)
	_, err := m.Resource(context.Background(), kind("broken.example", "v1", "Thing"))
	require.EqualError(
		t, err,
		`the server doesn't have a resource type "Thing" now: discovery of group broken.example is incomplete, its API server does not answer`,
	)
	_, err = m.Resource(context.Background(), kind("apps", "v1", "Deployment"))
	require.NoError(t, err)
	_, _, err = m.Served(context.Background(), schema.GroupVersionResource{Group: "broken.example", Version: "v1", Resource: "things"})
	require.Error(t, err, "absence is not known while the group does not answer")
}

func TestServedFindsTheVersionUnderWhichAnObjectCanBeReadNow(t *testing.T) {
	s, m, _ := modern(t)
	s.set("/apis", strings.Replace(groupsDocument, "NEXT", widgets, 1))
	for version, want := range map[string]string{"v3": "v3", "v1": "v2"} {
		got, ok, err := m.Served(context.Background(), schema.GroupVersionResource{Group: "example.com", Version: version, Resource: "widgets"})
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, want, got.Version)
	}
	_, ok, err := m.Served(context.Background(), schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "gadgets"})
	require.NoError(t, err)
	require.False(t, ok)
}

func TestResetReadsTheServerAgain(t *testing.T) {
	s, m, _ := modern(t)
	s.set("/apis", strings.Replace(groupsDocument, "NEXT", widgets, 1))
	widget := kind("example.com", "v2", "Widget")
	_, err := m.Resource(context.Background(), widget)
	require.NoError(t, err)
	s.set("/apis", strings.Replace(groupsDocument, "NEXT", "", 1))
	m.Reset()
	_, err = m.Resource(context.Background(), widget)
	require.True(t, isUnknownKind(err))
}

func TestServersWithoutAggregationAreAskedForOneGroupAtATime(t *testing.T) {
	s, m, clk := start(t, map[string]string{
		"/api": `{"kind":"APIVersions","versions":["v1"]}`,
		"/api/v1": `{"kind":"APIResourceList","resources":[
			{"name":"pods","kind":"Pod","namespaced":true,"verbs":["get"]},
			{"name":"pods/log","kind":"Pod","namespaced":true,"verbs":["get"]}]}`,
		"/apis/example.com":     `{"kind":"APIGroup","versions":[{"version":"v2"}]}`,
		"/apis/example.com/v2":  `{"kind":"APIResourceList","resources":[{"name":"widgets","kind":"Widget","verbs":["get"]}]}`,
		"/apis/down.example/v1": "down",
	})
	pod, err := m.Resource(context.Background(), kind("", "v1", "Pod"))
	require.NoError(t, err)
	require.Equal(t, "pods", pod.Resource.Resource)
	_, err = m.Resource(context.Background(), kind("", "v1", "Nothing"))
	require.True(t, isUnknownKind(err))
	require.Equal(t, []string{"/api", "/api/v1"}, s.seen())

	_, err = m.Resource(context.Background(), kind("down.example", "v1", "Thing"))
	require.ErrorContains(t, err, "is incomplete")
	_, err = m.Resource(context.Background(), kind("absent.example", "v1", "Thing"))
	require.ErrorContains(t, err, "install its CustomResourceDefinition")
	got, ok, err := m.Served(context.Background(), schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"})
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "v2", got.Version)
	s.seen()
	clk.Step(time.Minute)
	_, err = m.Resource(context.Background(), kind("", "v1", "Pod"))
	require.NoError(t, err)
	require.Empty(t, s.seen(), "what is known is not asked again")
}

func TestAServerThatDoesNotAnswerIsNoUnknownKind(t *testing.T) {
	s, m, _ := start(t, map[string]string{"/api": "down"})
	_, err := m.Resource(context.Background(), kind("", "v1", "Pod"))
	require.EqualError(t, err, "reading /api of the API server: status 503")
	require.False(t, isUnknownKind(err))
	s.set("/api", "no json")
	_, err = m.Resource(context.Background(), kind("", "v1", "Pod"))
	require.ErrorContains(t, err, "decoding the discovery document")
}
