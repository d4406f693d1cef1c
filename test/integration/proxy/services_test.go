// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/go-logr/logr/testr"

	proxyagent "github.com/kubectl-ocm/kubectl-ocm/controllers/proxy/agent"
	"github.com/kubectl-ocm/kubectl-ocm/internal/tunnel"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground/pki"
)

var (
	maps     = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	happened = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}
)

// network stands for the network of a managed cluster, where addresses of Services lead somewhere. It
// keeps all that the agent dials.
type network struct {
	mu     sync.Mutex
	leads  map[string]string
	dialed []string
}

// dial is how the agent opens connections.
func (n *network) dial(ctx context.Context, kind, address string) (net.Conn, error) {
	n.mu.Lock()
	n.dialed = append(n.dialed, address)
	to := n.leads[address]
	n.mu.Unlock()
	if to == "" {
		return nil, fmt.Errorf("dial %s %s: nobody is there", kind, address)
	}
	return (&net.Dialer{}).DialContext(ctx, kind, to)
}

// lead makes an address that of a server of the test.
func (n *network) lead(address, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leads[address] = to
}

func (n *network) dials() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.dialed)
}

// exposing is a cluster whose agent leads to its Services, and a user of the hub who may reach them.
type exposing struct {
	*scene
	name string
	net  *network
	user *rest.Config
}

// expose joins a cluster of this name, with a namespace of this name on the managed cluster.
func (s *scene) expose(t *testing.T, name string) *exposing {
	t.Helper()
	s.join(t, name)
	e := &exposing{scene: s, name: name, net: &network{leads: map[string]string{}}, user: s.personConfig(t, "user-of-"+name)}
	e.user.NextProtos = []string{"http/1.1"}
	apply(t, s.spoke.Dynamic(t), decode(t, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+name+`"}}`))
	t.Cleanup(func() { e.list(t, nil) })
	apply(t, s.dyn, decode(t, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"test:services:`+name+`"},
		"rules":[{"apiGroups":["`+connectv1alpha1.GroupName+`"],"resources":["clusterservices/proxy"],"resourceNames":["`+name+`"],"verbs":["*"]}]}`))
	grant(t, s.dyn, "test:services:"+name, "test:services:"+name, "User", "user-of-"+name)
	e.agent(t)
	return e
}

// agent runs the agent of the cluster, and waits for its tunnel and for the user's rights.
func (e *exposing) agent(t *testing.T) (stop func()) {
	t.Helper()
	client, err := dynamic.NewForConfig(e.asAgent)
	require.NoError(t, err)
	stop = hold(t, e.link(t, e.name, "one"), proxyagent.Config{
		Spoke: e.asAgent, Cluster: e.name, Clock: clock.RealClock{}, Log: testr.New(t),
		Services: &proxyagent.Services{Client: client, Namespace: operatorv1.NamespaceAgent, Dial: e.net.dial},
	})
	e.awaitTunnel(t, e.name, true)
	e.await(t, http.MethodGet, "nothing:1/", http.StatusForbidden, connectv1alpha1.CauseServiceNotExposed)
	return stop
}

// service makes a Service of the managed cluster lead to a server of the test.
func (e *exposing) service(t *testing.T, name string, port int, to *httptest.Server) {
	t.Helper()
	apply(t, e.spoke.Dynamic(t), decode(t, fmt.Sprintf(
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"%s","namespace":"%s"},"spec":{"ports":[{"port":%d}]}}`, name, e.name, port)))
	u, err := e.spoke.Dynamic(t).Resource(services).Namespace(e.name).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	address, _, err := unstructured.NestedString(u.Object, "spec", "clusterIP")
	require.NoError(t, err)
	e.net.lead(net.JoinHostPort(address, fmt.Sprint(port)), to.Listener.Addr().String())
}

// list makes these the values of the cluster's list; nil removes it.
func (e *exposing) list(t *testing.T, data map[string]string) {
	t.Helper()
	e.configMap(t, connectv1alpha1.ConfigMapExposedServices, data)
}

func (e *exposing) configMap(t *testing.T, name string, data map[string]string) {
	t.Helper()
	client := e.spoke.Dynamic(t)
	if data == nil {
		err := client.Resource(maps).Namespace(operatorv1.NamespaceAgent).Delete(context.Background(), name, metav1.DeleteOptions{})
		require.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
		return
	}
	text, err := json.Marshal(data)
	require.NoError(t, err)
	apply(t, client, decode(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"`+name+`","namespace":"`+operatorv1.NamespaceAgent+`"},
		"data":`+string(text)+`}`))
}

// ask sends a request for a Service in the cluster's namespace: NAME:PORT/PATH.
func (e *exposing) ask(t *testing.T, method, at string, head http.Header) *http.Response {
	t.Helper()
	return raw(t, e.user, method, connectv1alpha1.PathClusterServices+e.name+connectv1alpha1.SuffixProxy+"/"+e.name+"/"+at, head)
}

// await asks until the answer has this code, and this cause if the hub or the agent made it. It returns the
// body.
func (e *exposing) await(t *testing.T, method, at string, code int, cause string) (body string) {
	t.Helper()
	soon(t, func() error {
		answer := e.ask(t, method, at, nil)
		text, err := io.ReadAll(answer.Body)
		body = string(text)
		if err != nil || answer.StatusCode != code || answer.Header.Get(connectv1alpha1.HeaderError) != cause {
			return fmt.Errorf("%s: %s %s %w", at, answer.Status, text, err)
		}
		return nil
	})
	return body
}

// TestAServiceThatTheClusterListsIsReached, by every method, and no other: neither another Service, nor
// another port or protocol of this one. What is not listed is not dialled.
func TestAServiceThatTheClusterListsIsReached(t *testing.T) {
	e := start(t).expose(t, "exposing")
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set(connectv1alpha1.HeaderError, "NoTunnel")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %s %s %s", r.Method, r.Host, r.URL.RequestURI(), body)
	}))
	defer there.Close()
	e.service(t, "web", 8080, there)
	e.service(t, "other", 8080, there)

	body := e.await(t, http.MethodGet, "http:web:8080/", http.StatusForbidden, connectv1alpha1.CauseServiceNotExposed)
	require.Contains(t, body, "the entry {namespace: exposing, service: web, port: 8080, protocol: http} to the ConfigMap "+
		"open-cluster-management-agent/cluster-proxy-exposed-services")
	require.Zero(t, e.net.dials())

	e.list(t, map[string]string{"ours": "- {namespace: exposing, service: web, port: 8080, protocol: http}"})
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		body = e.await(t, method, "http:web:8080/a/b%20c/?q=1&r=2", http.StatusTeapot, "")
		require.Equal(t, method+" web.exposing.svc:8080 /a/b%20c/?q=1&r=2 ", body)
	}
	before := e.net.dials()
	for _, at := range []string{"http:web:80/", "web:8080/", "https:web:8080/", "http:other:8080/", "http:nosuch:8080/"} {
		e.await(t, http.MethodGet, at, http.StatusForbidden, connectv1alpha1.CauseServiceNotExposed)
	}
	require.Equal(t, before, e.net.dials(), "what is not listed is not dialled")

	e.list(t, map[string]string{"ours": "- {namespace: exposing, service: web}", "theirs": "- {namespace: exposing, service: other, protocol: http}"})
	e.await(t, http.MethodGet, "http:other:8080/", http.StatusTeapot, "")
	require.Contains(t, e.await(t, http.MethodGet, "web:8080/", http.StatusBadGateway, connectv1alpha1.CauseServiceUnreachable),
		"Service exposing/https:web:8080 of cluster exposing does not answer")
	require.Contains(t, e.await(t, http.MethodGet, "http:web:81/", http.StatusNotFound, connectv1alpha1.CauseUnknownService), "no TCP port 81")

	e.list(t, nil)
	e.await(t, http.MethodGet, "http:web:8080/", http.StatusForbidden, connectv1alpha1.CauseServiceNotExposed)
}

// TestAListThatCannotBeReadChangesNothing, and those who look at the ConfigMap are told.
func TestAListThatCannotBeReadChangesNothing(t *testing.T) {
	e := start(t).expose(t, "edited")
	there := httptest.NewServer(http.NotFoundHandler())
	defer there.Close()
	e.service(t, "web", 80, there)
	e.list(t, map[string]string{"ours": "- {namespace: edited, service: web}"})
	e.await(t, http.MethodGet, "http:web:80/", http.StatusNotFound, "")
	e.list(t, map[string]string{"ours": "- {namespace: edited, service: db}\n- {namespace: edited, service: cache, port: redis}"})
	const wanted = `The list before this edit stays in effect: key ours, entry 2: port "redis" must be a number from 1 to 65535; ` +
		"leave it out to expose all ports"
	soon(t, func() error {
		all, err := e.spoke.Dynamic(t).Resource(happened).Namespace(operatorv1.NamespaceAgent).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		// Events of other lists are there, too.
		for _, event := range all.Items {
			about, _, _ := unstructured.NestedString(event.Object, "regarding", "name")
			if event.Object["reason"] == connectv1alpha1.EventInvalidExposedServices && about == connectv1alpha1.ConfigMapExposedServices &&
				event.Object["note"] == wanted {
				return nil
			}
		}
		return fmt.Errorf("no event among %d", len(all.Items))
	})
	e.await(t, http.MethodGet, "http:web:80/", http.StatusNotFound, "")
	e.await(t, http.MethodGet, "http:db:80/", http.StatusForbidden, connectv1alpha1.CauseServiceNotExposed)
	e.list(t, map[string]string{"ours": "- {namespace: edited, service: db}"})
	e.await(t, http.MethodGet, "http:web:80/", http.StatusForbidden, connectv1alpha1.CauseServiceNotExposed)
	e.await(t, http.MethodGet, "http:db:80/", http.StatusNotFound, connectv1alpha1.CauseUnknownService)
}

// TestServicesThatLeadElsewhereAreNotDialled, although they are listed: their addresses are such as
// somebody chose.
func TestServicesThatLeadElsewhereAreNotDialled(t *testing.T) {
	e := start(t).expose(t, "elsewhere")
	for name, spec := range map[string]string{
		"metadata": `{"type":"ExternalName","externalName":"169.254.169.254","ports":[{"port":80}]}`,
		"outside":  `{"type":"ExternalName","externalName":"example.com","ports":[{"port":80}]}`,
		"node":     `{"clusterIP":"None","ports":[{"port":80}]}`,
	} {
		apply(t, e.spoke.Dynamic(t), decode(t,
			`{"apiVersion":"v1","kind":"Service","metadata":{"name":"`+name+`","namespace":"elsewhere"},"spec":`+spec+`}`))
	}
	apply(t, e.spoke.Dynamic(t), decode(t, `{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","addressType":"IPv4",
		"metadata":{"name":"node","namespace":"elsewhere","labels":{"kubernetes.io/service-name":"node"}},
		"endpoints":[{"addresses":["192.0.2.10"]}],"ports":[{"port":80}]}`))
	e.list(t, map[string]string{"all": "- {namespace: elsewhere, service: metadata}\n- {namespace: elsewhere, service: outside}\n" +
		"- {namespace: elsewhere, service: node}\n- {namespace: default, service: kubernetes}"})
	for name, want := range map[string]string{"metadata": "ExternalName", "outside": "ExternalName", "node": "headless"} {
		require.Contains(t, e.await(t, http.MethodGet, "http:"+name+":80/", http.StatusForbidden, connectv1alpha1.CauseServiceRefused), want)
	}
	answer := raw(t, e.user, http.MethodGet, connectv1alpha1.PathClusterServices+"elsewhere/proxy/default/kubernetes:443/api", nil)
	require.Equal(t, connectv1alpha1.CauseServiceRefused, answer.Header.Get(connectv1alpha1.HeaderError), "nobody asks the API server without a name")
	require.Zero(t, e.net.dials())
}

// TestServicesOverTLSAreVerified by the authority of the cluster, or by one that its administrator has
// added.
func TestServicesOverTLSAreVerified(t *testing.T) {
	e := start(t).expose(t, "verified")
	cluster, err := pki.Open(filepath.Join(e.spoke.Playground.Dir, "pki"), "kubernetes-ca-spoke", time.Now())
	require.NoError(t, err)
	other, err := pki.Open(t.TempDir(), "other", time.Now())
	require.NoError(t, err)
	for name, from := range map[string]struct {
		authority *pki.Authority
		host      string
	}{
		"good": {cluster, "good.verified.svc"}, "other": {other, "other.verified.svc"}, "misnamed": {cluster, "misnamed.elsewhere.svc"},
	} {
		pair, err := from.authority.Serving("service-"+name, []string{from.host}, nil)
		require.NoError(t, err)
		e.service(t, name, 443, servingTLS(t, pair))
	}
	e.list(t, map[string]string{"all": "- {namespace: verified, service: good}\n- {namespace: verified, service: other}\n" +
		"- {namespace: verified, service: misnamed}"})
	require.Equal(t, "HTTP/1.1 to good.verified.svc", e.await(t, http.MethodGet, "good:443/", http.StatusOK, ""))
	const unverified = "by the authorities in the ConfigMaps kube-root-ca.crt and cluster-proxy-service-ca of namespace open-cluster-management-agent there"
	for _, name := range []string{"other", "misnamed"} {
		body := e.await(t, http.MethodGet, name+":443/", http.StatusBadGateway, connectv1alpha1.CauseServiceUnreachable)
		require.Contains(t, body, "the certificate of Service verified/https:"+name+":443 of cluster verified is not valid for "+name+".verified.svc "+unverified)
	}
	t.Cleanup(func() { e.configMap(t, connectv1alpha1.ConfigMapServiceCA, nil) })
	e.configMap(t, connectv1alpha1.ConfigMapServiceCA, map[string]string{connectv1alpha1.KeyServiceCA: string(other.Certificate())})
	require.Equal(t, "HTTP/1.1 to other.verified.svc", e.await(t, http.MethodGet, "other:443/", http.StatusOK, ""))
	e.await(t, http.MethodGet, "good:443/", http.StatusOK, "")
	e.configMap(t, connectv1alpha1.ConfigMapServiceCA, map[string]string{"ca.crt": string(other.Certificate())})
	require.Contains(t, e.await(t, http.MethodGet, "good:443/", http.StatusBadGateway, connectv1alpha1.CauseServiceUnreachable),
		"key service-ca.crt of ConfigMap open-cluster-management-agent/cluster-proxy-service-ca has no certificate")
}

// servingTLS returns a server with this certificate, which says for which name it was asked.
func servingTLS(t *testing.T, pair pki.Pair) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s to %s", r.Proto, r.TLS.ServerName)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of clients that do not trust it
	server.TLS = keyPair(t, pair)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// TestAServiceIsToldNothingOfTheUser: no credential, no name, and no header but those of a list.
func TestAServiceIsToldNothingOfTheUser(t *testing.T) {
	e := start(t).expose(t, "untold")
	seen := make(chan http.Header, 1)
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Clone()
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("Access-Control-Allow-Origin", "*")
	}))
	defer there.Close()
	e.service(t, "web", 80, there)
	e.list(t, map[string]string{"ours": "- {namespace: untold, service: web}"})
	e.await(t, http.MethodGet, "http:web:80/", http.StatusOK, "")
	<-seen
	grant(t, e.dyn, "test:services:spy", "test:services:untold", "User", "system:serviceaccount:default:spy")
	e.user = e.hub.As(t, "default", "spy")
	e.user.NextProtos = []string{"http/1.1"}
	head := http.Header{
		"Cookie": {"session=1"}, "X-Forwarded-Access-Token": {"secret"}, "X-Remote-User": {"system:admin"}, "X-Api-Key": {"secret"},
		"Ocm-Caller": {"e30="}, "oCM-caLLER": {"e30="}, "Ocm-Service": {"default/https:kubernetes:443"}, "Connection": {"Ocm-Service"},
		"Accept": {"text/plain"}, "Proxy-Authorization": {"Basic secret"},
	}
	var answer *http.Response
	soon(t, func() error {
		if answer = e.ask(t, http.MethodGet, "http:web:80/", head); answer.StatusCode != http.StatusOK {
			return fmt.Errorf("%s", answer.Status)
		}
		return nil
	})
	got := <-seen
	require.Equal(t, "text/plain", got.Get("Accept"))
	text, err := json.Marshal(got)
	require.NoError(t, err)
	for _, word := range []string{
		"Authorization", "secret", "session", "X-Remote", "X-Forwarded", "Impersonate", "Ocm-", "spy", e.user.BearerToken, e.asAgent.BearerToken,
	} {
		require.NotContains(t, string(text), word)
	}
	require.Empty(t, answer.Header.Values("Set-Cookie"))
	require.Empty(t, answer.Header.Values("Access-Control-Allow-Origin"))
}

// TestServicesTakeARightOfTheirOwn: to reach the API server of a cluster is another one, and so is to
// reach the Services of another cluster.
func TestServicesTakeARightOfTheirOwn(t *testing.T) {
	s := start(t)
	e := s.expose(t, "rightful")
	s.allow(t, "User", "kim", "rightful")
	config := s.personConfig(t, "kim")
	awaitSelf(t, through(config, "rightful"))
	answer := raw(t, config, http.MethodPost, connectv1alpha1.PathClusterServices+"rightful/proxy/rightful/http:web:80/", nil)
	require.Equal(t, http.StatusForbidden, answer.StatusCode)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Contains(t, string(text), `User \"kim\" cannot create resource \"clusterservices/proxy\" in API group \"connect.open-cluster-management.io\"`)
	require.Empty(t, answer.Header.Get(connectv1alpha1.HeaderError), "the API server's own words")
	_, err = whoami(t, through(e.user, "rightful"))
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	answer = raw(t, e.user, http.MethodGet, connectv1alpha1.PathClusterServices+"other/proxy/rightful/http:web:80/", nil)
	require.Equal(t, http.StatusForbidden, answer.StatusCode)
	resources, err := s.person(t, "kubernetes-admin", "system:masters").Discovery().ServerResourcesForGroupVersion(connectv1alpha1.GroupVersion.String())
	require.NoError(t, err)
	names := []string{}
	for _, r := range resources.APIResources {
		require.Equal(t, r.Name == "managedserviceaccounts/proxy", r.Namespaced, r.Name)
		names = append(names, r.Name)
	}
	require.ElementsMatch(t, []string{"managedclusters/proxy", "clusterservices/proxy", "managedserviceaccounts/proxy", "tunnels/proxy"}, names)
}

// TestAnAgentThatKnowsNoServicesIsAskedForNone: it would take the request for one to its API server.
func TestAnAgentThatKnowsNoServicesIsAskedForNone(t *testing.T) {
	s := start(t)
	s.join(t, "old")
	link := s.link(t, "old", "one")
	defer link.Close()
	listener, _, err := tunnel.Offer(t.Context(), s.upgraded(t, link, "old"), tunnel.Hello{Program: "v0.0.0-old"}, clock.RealClock{})
	require.NoError(t, err)
	asked := make(chan struct{})
	go func() {
		for {
			stream, err := listener.Accept()
			if err != nil {
				close(asked)
				return
			}
			_ = stream.Close()
			t.Error("the agent was asked")
		}
	}()
	s.awaitTunnel(t, "old", true)
	answer := raw(t, s.personConfig(t, "root", "system:masters"), http.MethodGet, connectv1alpha1.PathClusterServices+"old/proxy/apps/web:443/api/v1/secrets", nil)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusNotImplemented, answer.StatusCode)
	require.Equal(t, connectv1alpha1.CauseAgentTooOld, answer.Header.Get(connectv1alpha1.HeaderError))
	require.Contains(t, string(text), "the agent of cluster old is too old to serve services: upgrade it")
	require.NoError(t, listener.Close())
	<-asked
}

// TestAHostedAgentLeadsToNoServices: their addresses would be others where it runs.
func TestAHostedAgentLeadsToNoServices(t *testing.T) {
	s := start(t)
	s.join(t, "hosted")
	s.connect(t, "hosted")
	answer := raw(t, s.personConfig(t, "root", "system:masters"), http.MethodGet, connectv1alpha1.PathClusterServices+"hosted/proxy/apps/web:443/", nil)
	require.Equal(t, http.StatusNotImplemented, answer.StatusCode)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Contains(t, string(text), "the agent of cluster hosted runs on another cluster, from where it does not reach Services of hosted")
}

// TestAServiceMayStreamAndUpgrade: what it sends arrives when it is sent, and a connection that switches to
// another protocol carries bytes both ways. What the client no longer wants ends there, too.
func TestAServiceMayStreamAndUpgrade(t *testing.T) {
	e := start(t).expose(t, "streaming")
	ended := make(chan struct{})
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if r.Header.Get("Upgrade") == "" {
			fmt.Fprintln(w, "first")
			_ = control.Flush()
			<-r.Context().Done()
			close(ended)
			return
		}
		conn, both, err := control.Hijack()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_, _ = io.CopyN(conn, both, 5)
	}))
	defer there.Close()
	e.service(t, "web", 80, there)
	e.list(t, map[string]string{"ours": "- {namespace: streaming, service: web}"})
	var answer *http.Response
	soon(t, func() error {
		answer = e.ask(t, http.MethodGet, "http:web:80/chat", http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}})
		if answer.StatusCode != http.StatusSwitchingProtocols {
			return fmt.Errorf("%s", answer.Status)
		}
		return nil
	})
	both := answer.Body.(io.ReadWriteCloser)
	_, err := both.Write([]byte("hello"))
	require.NoError(t, err)
	text, err := io.ReadAll(both)
	require.NoError(t, err)
	require.Equal(t, "hello", string(text))

	answer = e.ask(t, http.MethodGet, "http:web:80/events", nil)
	line, err := bufio.NewReader(answer.Body).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "first", strings.TrimSpace(line))
	require.NoError(t, answer.Body.Close())
	<-ended
}
