// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/internal/tunnel"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
)

// whoami asks the managed cluster who the user is there.
func whoami(t *testing.T, config *rest.Config) (authenticationv1.UserInfo, error) {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	answer, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return answer.Status.UserInfo, nil
}

// awaitSelf is whoami once the user's rights on the hub count.
func awaitSelf(t *testing.T, config *rest.Config) (who authenticationv1.UserInfo) {
	t.Helper()
	soon(t, func() (err error) {
		who, err = whoami(t, config)
		return err
	})
	return who
}

func TestIdentitiesArriveAsWhatTheyMayBe(t *testing.T) {
	s := start(t)
	s.join(t, "identity")
	s.connect(t, "identity")
	s.allow(t, "Group", "crew", "identity")
	for name, tc := range map[string]struct {
		groups, want []string
	}{
		"ida":     {[]string{"crew", "devs"}, []string{"crew", "devs", "system:authenticated"}},
		"ivan":    {[]string{"crew", "system:nodes"}, []string{"crew", "cluster:hub:system:nodes", "system:authenticated"}},
		"imaster": {[]string{"crew", "system:masters"}, []string{"crew", "system:authenticated"}},
	} {
		who := awaitSelf(t, through(s.personConfig(t, name, tc.groups...), "identity"))
		require.Equal(t, name, who.Username)
		require.ElementsMatch(t, tc.want, who.Groups, name)
	}
	s.allow(t, "User", "system:serviceaccount:default:robot", "identity")
	who := awaitSelf(t, through(s.hub.As(t, "default", "robot"), "identity"))
	require.Equal(t, "cluster:hub:system:serviceaccount:default:robot", who.Username)
	require.ElementsMatch(t, []string{
		"cluster:hub:system:serviceaccounts", "cluster:hub:system:serviceaccounts:default", "system:authenticated",
	}, who.Groups)
	require.NotEmpty(t, who.UID)
	for key := range who.Extra {
		require.NotContains(t, key, "kubernetes.io", "what the hub says of its token")
	}
}

func TestAnAdministratorOfTheHubHasNoRightsThere(t *testing.T) {
	s := start(t)
	s.join(t, "master")
	s.connect(t, "master")
	client := s.on(t, "master", "root", "system:masters")
	_, err := client.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, `User "root" cannot list resource "secrets"`, "the managed cluster's own words")
}

func TestTheHubDecidesWhoReachesWhichCluster(t *testing.T) {
	s := start(t)
	for _, name := range []string{"mine", "theirs"} {
		s.join(t, name)
		s.connect(t, name)
	}
	s.allow(t, "User", "uma", "mine")
	awaitSelf(t, through(s.personConfig(t, "uma"), "mine"))
	_, err := whoami(t, through(s.personConfig(t, "uma"), "theirs"))
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, `cannot create resource "managedclusters/proxy" in API group "connect.open-cluster-management.io"`)
	require.ErrorContains(t, err, "theirs")
	for _, path := range []string{
		"/apis/connect.open-cluster-management.io/v1alpha1/managedclusters/mine/proxy/../../theirs/proxy/version",
		"/apis/connect.open-cluster-management.io/v1alpha1/managedclusters/mine/proxy/%2e%2e/%2e%2e/theirs/proxy/version",
		"/apis/connect.open-cluster-management.io/v1alpha1/managedclusters/mine%2f..%2ftheirs/proxy/version",
		"/apis/connect.open-cluster-management.io/v1alpha1//managedclusters/theirs/proxy/version",
	} {
		answer := raw(t, s.personConfig(t, "uma"), http.MethodGet, path, nil)
		require.NotEqual(t, http.StatusOK, answer.StatusCode, path)
	}
}

func TestToActForAnotherTakesARightOfTheHub(t *testing.T) {
	s := start(t)
	s.join(t, "as")
	s.connect(t, "as")
	s.allow(t, "User", "zoe", "as")
	s.allow(t, "User", "yan", "as")
	config := through(s.personConfig(t, "zoe"), "as")
	awaitSelf(t, config)
	awaitSelf(t, through(s.personConfig(t, "yan"), "as"))
	config.Impersonate = rest.ImpersonationConfig{UserName: "yan"}
	_, err := whoami(t, config)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	apply(t, s.dyn, decode(t, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"test:as-yan"},
		"rules":[{"apiGroups":[""],"resources":["users"],"resourceNames":["yan"],"verbs":["impersonate"]}]}`))
	grant(t, s.dyn, "test:as-yan", "test:as-yan", "User", "zoe")
	require.Equal(t, "yan", awaitSelf(t, config).Username)
}

// TestNothingOfTheHubReachesTheCluster: the managed API server is one of the test, which keeps what
// it gets.
func TestNothingOfTheHubReachesTheCluster(t *testing.T) {
	s := start(t)
	s.join(t, "capture")
	var mu sync.Mutex
	var got http.Header
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = r.Header.Clone()
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("Alt-Svc", `h3="elsewhere:443"`)
		w.Header().Set("Access-Control-Allow-Origin", "*")
		fmt.Fprint(w, "{}")
	}))
	defer there.Close()
	s.connectTo(t, "capture", &rest.Config{Host: there.URL, BearerToken: "the agent's own"})
	s.allow(t, "User", "system:serviceaccount:default:spy", "capture")
	config := s.hub.As(t, "default", "spy")
	path := connectv1alpha1.ServerPath("capture") + "/api"
	soon(t, func() error {
		answer := raw(t, config, http.MethodGet, path, nil)
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("%s", answer.Status)
		}
		return nil
	})
	answer := raw(t, config, http.MethodGet, path, http.Header{
		"Cookie": {"session=1"}, "X-Forwarded-Access-Token": {"secret"}, "X-Remote-User": {"system:admin"}, "x-remote-group": {"system:masters"},
		"Ocm-Caller": {"e30="}, "oCM-caLLER": {"e30="}, "Ocm-Service": {"apps/https:web:443"}, "X-Api-Key": {"secret"},
		"Accept": {"application/json"}, "Kubectl-Command": {"kubectl get"},
	})
	require.Equal(t, http.StatusOK, answer.StatusCode)
	for _, name := range []string{"Set-Cookie", "Alt-Svc", "Access-Control-Allow-Origin"} {
		require.Empty(t, answer.Header.Values(name), name)
	}
	require.Equal(t, "nosniff", answer.Header.Get("X-Content-Type-Options"))
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, []string{"Bearer the agent's own"}, got.Values("Authorization"), "never the user's token")
	require.Equal(t, []string{"cluster:hub:system:serviceaccount:default:spy"}, got.Values("Impersonate-User"))
	require.Equal(t, "kubectl get", got.Get("Kubectl-Command"))
	text, err := json.Marshal(got)
	require.NoError(t, err)
	for _, secret := range []string{"secret", "session", "X-Remote", "X-Forwarded", "Ocm-Caller", config.BearerToken} {
		require.NotContains(t, string(text), secret)
	}
}

// TestARedirectIsNotPassedOn: the client would follow it on the hub, with its credentials there.
func TestARedirectIsNotPassedOn(t *testing.T) {
	s := start(t)
	s.join(t, "redirect")
	there := httptest.NewServer(http.RedirectHandler("/api/v1/namespaces/kube-system/secrets", http.StatusTemporaryRedirect))
	defer there.Close()
	s.connectTo(t, "redirect", &rest.Config{Host: there.URL})
	client := s.on(t, "redirect", "root", "system:masters")
	_, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	requireCause(t, err, http.StatusBadGateway, connectv1alpha1.CauseRedirected)
}

func TestAnAgentOpensNoTunnelButItsOwn(t *testing.T) {
	s := start(t)
	s.join(t, "honest")
	s.join(t, "captured")
	link := s.link(t, "captured", "one")
	defer link.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		s.hub.Config.Host+connectv1alpha1.PathTunnels+"honest"+connectv1alpha1.SuffixProxy, http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", tunnel.Protocol)
	answer, err := link.Upgrades.RoundTrip(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, answer.Body.Close()) }()
	require.Equal(t, http.StatusForbidden, answer.StatusCode)
	require.Equal(t, connectv1alpha1.CauseOtherCluster, answer.Header.Get(connectv1alpha1.HeaderError))
	require.False(t, s.registry.Presence("honest").Connected)
}

// TestOnlyTheAPIServerIsAnswered: everybody in the hub's network can reach the port.
func TestOnlyTheAPIServerIsAnswered(t *testing.T) {
	s := start(t)
	service, err := s.dyn.Resource(services).Namespace("open-cluster-management").Get(t.Context(), "cluster-manager-proxy", metav1.GetOptions{})
	require.NoError(t, err)
	ports := service.Object["spec"].(map[string]any)["ports"].([]any)
	address := net.JoinHostPort("127.0.0.1", fmt.Sprint(ports[0].(map[string]any)["port"]))
	for name, config := range map[string]*rest.Config{
		"nobody":                  {},
		"an administrator":        s.personConfig(t, "root", "system:masters"),
		"who has the name of one": s.personConfig(t, "front-proxy-client", "system:masters"),
	} {
		config = rest.CopyConfig(config)
		config.Host = "https://" + address
		config.TLSClientConfig.CAData, config.TLSClientConfig.CAFile = s.authority.Certificate(), ""
		config.TLSClientConfig.ServerName = "cluster-manager-proxy.open-cluster-management.svc"
		client, err := rest.HTTPClientFor(config)
		require.NoError(t, err)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+"/apis", http.NoBody)
		require.NoError(t, err)
		request.Header.Set("X-Remote-User", "system:admin")
		answer, err := client.Do(request)
		if err == nil {
			text, _ := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			t.Fatalf("%s is answered: %s %s", name, answer.Status, text)
		}
		require.True(t, strings.Contains(err.Error(), "tls") || strings.Contains(err.Error(), "EOF") || strings.Contains(err.Error(), "reset"), "%s: %v", name, err)
	}
}
