// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/proxy/caller"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/serviceaccount/origin"
	"github.com/kubectl-ocm/kubectl-ocm/internal/service"
	authenticationv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/authentication/v1beta1"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
)

// hubAddress is the hub of the agents in the tests.
const hubAddress = "https://hub.example.org:6443"

// ask sends a request of the hub to an agent of cluster c1 whose API server is at host.
func ask(t *testing.T, host string, head http.Header) *httptest.ResponseRecorder {
	t.Helper()
	h, err := newHandler(Config{Spoke: &rest.Config{Host: host, BearerToken: "of-the-agent"}, Hub: hubAddress, Cluster: "c1", Log: logr.Discard()})
	require.NoError(t, err)
	t.Cleanup(h.close)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/pods", http.NoBody)
	for name, values := range head {
		r.Header[name] = values
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// of returns the headers of a request of Ada, and more.
func of(t *testing.T, more http.Header) http.Header {
	t.Helper()
	head := more.Clone()
	if head == nil {
		head = http.Header{}
	}
	require.NoError(t, caller.Caller{User: "ada", Groups: []string{"devs"}}.Set(head))
	return head
}

// TestNoHeaderMakesTheAgentActAsItself: a client that lists the headers of its identity as those of
// one connection must not get rid of them, and with them act as the agent.
func TestNoHeaderMakesTheAgentActAsItself(t *testing.T) {
	seen := make(chan http.Header, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header.Clone() }))
	t.Cleanup(server.Close)
	for name, more := range map[string]http.Header{
		"nothing else": nil,
		"names of its identity as those of the connection": {
			"Connection": {"Impersonate-User, Impersonate-Group, Ocm-Caller, Authorization"},
		},
		"the same, with an upgrade": {
			"Connection": {"Upgrade, Impersonate-User, Ocm-Caller"},
			"Upgrade":    {"websocket"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, http.StatusOK, ask(t, server.URL, of(t, more)).Code)
			got := <-seen
			require.Equal(t, []string{"ada"}, got["Impersonate-User"])
			require.Equal(t, []string{"devs"}, got["Impersonate-Group"])
			require.Equal(t, "Bearer of-the-agent", got.Get("Authorization"))
			require.NotContains(t, got, caller.Header)
		})
	}
}

// TestWhatTheAgentRefuses reaches no API server.
func TestWhatTheAgentRefuses(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }))
	t.Cleanup(server.Close)
	for name, head := range map[string]http.Header{
		"nobody":               {},
		"two callers":          {caller.Header: append(of(t, nil)[caller.Header], of(t, nil)[caller.Header]...)},
		"an identity besides":  of(t, http.Header{"Impersonate-User": {"system:admin"}}),
		"an extra key besides": of(t, http.Header{"Impersonate-Extra-Scopes": {"all"}}),
		"a credential":         of(t, http.Header{"Authorization": {"Bearer of-the-hub"}}),
		"a cookie":             of(t, http.Header{"Cookie": {"session=1"}}),
		"a front proxy":        of(t, http.Header{"X-Remote-User": {"ada"}}),
		"a Service, for Ada":   of(t, http.Header{service.Header: {"apps/https:web:443"}}),
		"a credential for it":  {service.Header: {"apps/https:web:443"}, "Authorization": {"Bearer of-the-hub"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := ask(t, server.URL, head)
			require.Equal(t, http.StatusForbidden, w.Code)
			require.Equal(t, connectv1alpha1.CauseIdentityRefused, w.Header().Get(connectv1alpha1.HeaderError))
		})
	}
}

// TestARequestForAServiceNeverReachesTheAPIServer, whatever is wrong with it.
func TestARequestForAServiceNeverReachesTheAPIServer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }))
	t.Cleanup(server.Close)
	for name, test := range map[string]struct {
		named []string
		code  int
		cause string
	}{
		"from an agent that runs elsewhere": {[]string{"apps/https:web:443"}, http.StatusNotImplemented, connectv1alpha1.CauseServicesNotServed},
		"two Services":                      {[]string{"apps/https:web:443", "apps/https:db:1"}, http.StatusBadRequest, connectv1alpha1.CauseInvalidPath},
		"none that could be one":            {[]string{"apps/web"}, http.StatusBadRequest, connectv1alpha1.CauseInvalidPath},
		"an empty one":                      {[]string{""}, http.StatusBadRequest, connectv1alpha1.CauseInvalidPath},
	} {
		t.Run(name, func(t *testing.T) {
			w := ask(t, server.URL, http.Header{service.Header: test.named})
			require.Equal(t, test.code, w.Code)
			require.Equal(t, test.cause, w.Header().Get(connectv1alpha1.HeaderError))
		})
	}
}

// account returns the headers of a request in the name of an account.
func account(t *testing.T, name string) http.Header {
	t.Helper()
	head := http.Header{}
	c, err := caller.OfAccount(name)
	require.NoError(t, err)
	require.NoError(t, c.Set(head))
	return head
}

// TestTheAgentActsAsAccountsOfItsHubOnly: the API server of the test has accounts of all kinds, all in
// the namespace of add-ons. Nothing else is asked of it for those that are refused.
func TestTheAgentActsAsAccountsOfItsHubOnly(t *testing.T) {
	const path = "/api/v1/namespaces/open-cluster-management-agent-addon/serviceaccounts/"
	metadata := map[string]metav1.ObjectMeta{"plain": {}}
	for name, hub := range map[string]string{"robot": hubAddress, "theirs": "https://other.example.org:6443"} {
		labels, annotations := origin.Marks(origin.Hub(hub))
		metadata[name] = metav1.ObjectMeta{Labels: labels, Annotations: annotations}
	}
	now := metav1.Now()
	metadata["leaving"] = metav1.ObjectMeta{
		Labels: metadata["robot"].Labels, Annotations: metadata["robot"].Annotations, DeletionTimestamp: &now,
	}
	metadata["elder"] = metav1.ObjectMeta{Labels: metadata["robot"].Labels}
	metadata["noted"] = metav1.ObjectMeta{Annotations: metadata["robot"].Annotations}
	metadata["allowed"] = metav1.ObjectMeta{Annotations: map[string]string{authenticationv1beta1.AnnotationTokensAllowed: "true"}}
	acted := make(chan http.Header, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, look := strings.CutPrefix(r.URL.Path, path)
		if !look {
			acted <- r.Header.Clone()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		at, known := metadata[name]
		if !known {
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(apierrors.NewNotFound(schema.GroupResource{Resource: "serviceaccounts"}, name).Status())
			return
		}
		at.Name, at.UID = name, "the-uid"
		_ = json.NewEncoder(w).Encode(metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: at})
	}))
	t.Cleanup(server.Close)
	require.Equal(t, http.StatusOK, ask(t, server.URL, account(t, "robot")).Code)
	got := <-acted
	require.Equal(t, []string{"system:serviceaccount:open-cluster-management-agent-addon:robot"}, got["Impersonate-User"])
	require.Equal(t, []string{"the-uid"}, got["Impersonate-Uid"])
	require.Empty(t, got["Impersonate-Group"], "the API server adds those of the account")
	require.NotContains(t, got, caller.Header)
	for name, want := range map[string]struct {
		code       int
		cause, why string
	}{
		"plain":   {http.StatusForbidden, connectv1alpha1.CauseAccountRefused, "was not created for a ManagedServiceAccount"},
		"noted":   {http.StatusForbidden, connectv1alpha1.CauseAccountRefused, "was not created for a ManagedServiceAccount"},
		"allowed": {http.StatusForbidden, connectv1alpha1.CauseAccountRefused, "was not created for a ManagedServiceAccount"},
		"elder":   {http.StatusForbidden, connectv1alpha1.CauseAccountRefused, "was created for another hub"},
		"theirs":  {http.StatusForbidden, connectv1alpha1.CauseAccountRefused, "was created for another hub"},
		"leaving": {http.StatusForbidden, connectv1alpha1.CauseAccountRefused, "is being deleted"},
		"nobody":  {http.StatusNotFound, connectv1alpha1.CauseUnknownAccount, "no ServiceAccount open-cluster-management-agent-addon/nobody"},
	} {
		w := ask(t, server.URL, account(t, name))
		require.Equal(t, want.code, w.Code, name)
		require.Equal(t, want.cause, w.Header().Get(connectv1alpha1.HeaderError), name)
		require.Contains(t, w.Body.String(), want.why, name)
	}
	require.Empty(t, acted)
}

// TestFaultsOfTheClusterAreToldAsTheHubTellsThem, so that clients find the cause in the same place.
func TestFaultsOfTheClusterAreToldAsTheHubTellsThem(t *testing.T) {
	unknown := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(unknown.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, host := range map[string]string{"it does not know the agent": unknown.URL, "it is away": gone.URL} {
		t.Run(name, func(t *testing.T) {
			w := ask(t, host, of(t, nil))
			require.Equal(t, http.StatusBadGateway, w.Code)
			var status metav1.Status
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &status))
			require.Equal(t, connectv1alpha1.ResourceManagedClusters, status.Details.Kind)
			require.Equal(t, "c1", status.Details.Name)
			require.Equal(t, metav1.CauseType(connectv1alpha1.CauseTunnelBroken), status.Details.Causes[0].Type)
			require.Contains(t, status.Message, "the agent does not reach the API server of its cluster")
		})
	}
}
