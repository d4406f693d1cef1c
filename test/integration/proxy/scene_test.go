// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	confighub "github.com/kubectl-ocm/kubectl-ocm/config/hub"
	proxyagent "github.com/kubectl-ocm/kubectl-ocm/controllers/proxy/agent"
	proxyhub "github.com/kubectl-ocm/kubectl-ocm/controllers/proxy/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground/pki"
)

// patience bounds every wait. It is longer than what the product waits for by itself: the lease of a leader, the pauses
// of an agent, and the minute before a hub that has started says that there is no tunnel.
const patience = 3 * time.Minute

var (
	clusters = clusterv1.GroupVersion.WithResource("managedclusters")
	services = schema.GroupVersionResource{Version: "v1", Resource: "services"}
)

// scene is a hub that serves the API, and a cluster that agents of the test manage, under any
// number of names.
type scene struct {
	hub, spoke *harness.Cluster
	dyn        dynamic.Interface
	authority  *pki.Authority
	registry   *proxyhub.Registry
	// port is that of the hub's server in the test. moved is true when the API was made that of another one since a test
	// began, and moves counts that.
	port, moves int
	moved       bool
	// asAgent is the agent's account on the managed cluster.
	asAgent *rest.Config
	// provider has the users of the hub that come with OpenID.
	provider *provider
}

var (
	shared              scene
	provided, installed sync.Once
)

// start returns the scene that all tests share.
func start(t *testing.T) *scene {
	t.Helper()
	s := &shared
	provided.Do(func() { s.provider = newProvider(t) })
	first, second := harness.Shared(t, "hub", s.provider.trusted()), harness.Shared(t, "spoke")
	installed.Do(func() {
		s.hub, s.spoke, s.dyn = first, second, first.Dynamic(t)
		var err error
		s.authority, err = pki.Open(filepath.Join(first.Playground.Dir, "pki"), "kubernetes-ca-hub", time.Now())
		require.NoError(t, err)
		s.installHub(t)
		s.installSpoke(t)
	})
	soon(t, func() error {
		_, err := s.person(t, "kubernetes-admin", "system:masters").Discovery().ServerResourcesForGroupVersion(connectv1alpha1.GroupVersion.String())
		return err
	})
	if s.moved { // it is that of this server again, but the API server may not know that yet
		s.moved, s.moves = false, s.moves+1
		name := fmt.Sprintf("returned-%d", s.moves)
		s.join(t, name)
		s.connect(t, name)()
	}
	return s
}

// installHub applies what an installer and the operator apply, and serves the API.
func (s *scene) installHub(t *testing.T) {
	t.Helper()
	definition, err := crd.Get("managedclusters.cluster.open-cluster-management.io")
	require.NoError(t, err)
	apply(t, s.dyn, definition)
	objects, err := confighub.Objects(confighub.Options{Image: "none", Version: "v0.0.0-test"})
	require.NoError(t, err)
	for _, u := range objects {
		switch u.GetKind() {
		case "Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding":
			apply(t, s.dyn, u)
		}
	}
	s.registry, s.port = s.serve(context.Background(), t, proxyhub.Options{}) // until the process ends
	s.register(t, s.port)
}

// serve serves the API on a local port until ctx is done; what the options leave out is that of every
// process of the hub.
func (s *scene) serve(ctx context.Context, t *testing.T, o proxyhub.Options) (registry *proxyhub.Registry, port int) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	client, err := dynamic.NewForConfig(s.hub.As(t, confighub.Namespace, confighub.Name))
	require.NoError(t, err)
	serving := s.serving(t)
	certificate, err := tls.LoadX509KeyPair(serving.CertFile, serving.KeyFile)
	require.NoError(t, err)
	o.Client, o.Registry, o.Clock, o.Version, o.Log = client, proxyhub.NewRegistry(time.Now), clock.RealClock{}, "v0.0.0-test", logr.Discard()
	o.Certificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &certificate, nil }
	server := proxyhub.NewServer(o)
	go func() { _ = server.Run(ctx, listener) }()
	return o.Registry, listener.Addr().(*net.TCPAddr).Port
}

// serving is the certificate with which the API is served.
func (s *scene) serving(t *testing.T) pki.Pair {
	t.Helper()
	pair, err := s.authority.Serving("proxy", []string{confighub.ProxyService + "." + confighub.Namespace + ".svc"}, nil)
	require.NoError(t, err)
	return pair
}

// register makes the API that of the server at a local port.
func (s *scene) register(t *testing.T, port int) {
	t.Helper()
	s.moved = s.moved || port != s.port
	apply(t, s.dyn, decode(t, fmt.Sprintf(`{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"%s","name":"%s"},
		"spec":{"type":"ExternalName","externalName":"127.0.0.1","ports":[{"port":%d}]}}`, confighub.Namespace, confighub.ProxyService, port)))
	api := decode(t, fmt.Sprintf(`{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"%s"},
		"spec":{"group":"%s","version":"v1alpha1","groupPriorityMinimum":1000,"versionPriority":15,
		"service":{"namespace":"%s","name":"%s","port":%d}}}`,
		connectv1alpha1.APIService, connectv1alpha1.GroupName, confighub.Namespace, confighub.ProxyService, port))
	require.NoError(t, unstructured.SetNestedField(api.Object, b64(s.authority.Certificate()), "spec", "caBundle"))
	apply(t, s.dyn, api)
}

// installSpoke gives an account the rights of an agent.
func (s *scene) installSpoke(t *testing.T) {
	t.Helper()
	rights, err := manifests.Rights(manifests.Agent{Klusterlet: operatorv1.DefaultKlusterletName, Namespace: operatorv1.NamespaceAgent, Proxy: true})
	require.NoError(t, err)
	apply(t, s.spoke.Dynamic(t), decode(t, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+operatorv1.NamespaceAgentAddOn+`"}}`))
	s.asAgent = s.spoke.As(t, operatorv1.NamespaceAgent, manifests.WorkAccount(operatorv1.DefaultKlusterletName))
	for _, u := range rights {
		apply(t, s.spoke.Dynamic(t), u)
	}
}

// join creates an accepted cluster of this name.
func (s *scene) join(t *testing.T, name string) {
	t.Helper()
	s.hub.Claim(t, name)
	apply(t, s.dyn, decode(t, `{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster","metadata":{"name":"`+name+`"},
		"spec":{"hubAcceptsClient":true}}`))
	t.Cleanup(func() {
		err := s.dyn.Resource(clusters).Delete(context.Background(), name, metav1.DeleteOptions{})
		require.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
	})
}

// link is the connection of the agent of a cluster to the hub.
func (s *scene) link(t *testing.T, cluster, name string) *agent.Link {
	t.Helper()
	link, err := agent.NewLink(s.access(t, cluster, name), "test")
	require.NoError(t, err)
	return link
}

// access is what an agent of a cluster connects to the hub with. Each call issues a certificate.
func (s *scene) access(t *testing.T, cluster, name string) *kubeconfig.Config {
	t.Helper()
	as := identity.Agent{Cluster: cluster, Name: name}
	pair, err := s.authority.Client("agent-"+cluster+"-"+name, as.User(), identity.ClusterGroup(cluster), clusterv1.GroupManagedClusters)
	require.NoError(t, err)
	cert, err := os.ReadFile(pair.CertFile)
	require.NoError(t, err)
	key, err := os.ReadFile(pair.KeyFile)
	require.NoError(t, err)
	return &kubeconfig.Config{Server: s.hub.Config.Host, CAData: s.hub.Config.CAData, CertData: cert, KeyData: key}
}

// connect runs the agent of a cluster until the test ends or the returned function is called, and
// waits for its tunnel.
func (s *scene) connect(t *testing.T, cluster string) (stop func()) {
	t.Helper()
	return s.connectTo(t, cluster, s.asAgent)
}

// connectTo is connect with another managed cluster.
func (s *scene) connectTo(t *testing.T, cluster string, spoke *rest.Config) (stop func()) {
	t.Helper()
	stop = s.run(t, cluster, spoke)
	s.awaitTunnel(t, cluster, true)
	return stop
}

// run runs the agent of a cluster until the test ends or the returned function is called.
func (s *scene) run(t *testing.T, cluster string, spoke *rest.Config) (stop func()) {
	t.Helper()
	return s.runOn(t, s.link(t, cluster, "one"), cluster, spoke)
}

// runOn is run on a connection to the hub, which is closed with it.
func (s *scene) runOn(t *testing.T, link *agent.Link, cluster string, spoke *rest.Config) (stop func()) {
	t.Helper()
	return hold(t, link, proxyagent.Config{Spoke: spoke, Cluster: cluster, Clock: clock.RealClock{}, Log: testr.New(t)})
}

// hold runs an agent on a connection to the hub until the test ends or the returned function is
// called; what its configuration leaves out is that of every agent.
func hold(t *testing.T, link *agent.Link, config proxyagent.Config) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	config.Hub, config.Upgrades, config.Version, config.UserAgent = link.Config.Host, link.Upgrades, "v0.0.0-test", "test"
	config.Random = func() float64 { return 0 }
	c := proxyagent.New(config)
	var running sync.WaitGroup
	running.Go(func() { _ = c.Run(ctx) })
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		link.Close()
	})
	t.Cleanup(stop)
	return stop
}

// awaitTunnel waits until the hub has a tunnel to the cluster, or none.
func (s *scene) awaitTunnel(t *testing.T, cluster string, connected bool) {
	t.Helper()
	soon(t, func() error {
		if p := s.registry.Presence(cluster); p.Connected != connected {
			return fmt.Errorf("the tunnel of %s: %+v", cluster, p)
		}
		return nil
	})
}

// personConfig is the client configuration of a user of the hub with a certificate.
func (s *scene) personConfig(t *testing.T, user string, groups ...string) *rest.Config {
	t.Helper()
	pair, err := s.authority.Client(fmt.Sprintf("person-%x", sha256.Sum256([]byte(user+fmt.Sprint(groups)))), user, groups...)
	require.NoError(t, err)
	config := rest.AnonymousClientConfig(s.hub.Config)
	config.CertFile, config.KeyFile, config.QPS = pair.CertFile, pair.KeyFile, -1
	return config
}

func (s *scene) person(t *testing.T, user string, groups ...string) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(s.personConfig(t, user, groups...))
	require.NoError(t, err)
	return client
}

// through is the configuration that leads to a cluster.
func through(config *rest.Config, cluster string) *rest.Config {
	out := rest.CopyConfig(config)
	out.Host += connectv1alpha1.ServerPath(cluster)
	return out
}

// on returns a client of a cluster for a user of the hub.
func (s *scene) on(t *testing.T, cluster, user string, groups ...string) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(through(s.personConfig(t, user, groups...), cluster))
	require.NoError(t, err)
	return client
}

// allow lets a user of the hub reach clusters, or all of them without names.
func (s *scene) allow(t *testing.T, kind, name string, to ...string) {
	t.Helper()
	role := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "test:" + name},
		"rules": []any{map[string]any{
			"apiGroups": []any{connectv1alpha1.GroupName}, "resources": []any{"managedclusters/proxy"}, "resourceNames": list(to), "verbs": []any{"*"},
		}},
	}}
	apply(t, s.dyn, role)
	grant(t, s.dyn, "test:"+name, "test:"+name, kind, name)
}

// grant binds a role of a cluster to a user or group.
func grant(t *testing.T, on dynamic.Interface, binding, role, kind, name string) {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": binding},
		"roleRef":  map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": role},
		"subjects": []any{map[string]any{"apiGroup": rbacv1.GroupName, "kind": kind, "name": name}},
	}}
	apply(t, on, u)
	resource := reconcile.ResourceOf(u.GroupVersionKind())
	t.Cleanup(func() {
		require.NoError(t, on.Resource(resource).Delete(context.Background(), binding, metav1.DeleteOptions{}))
	})
}

// hubSecrets are the Secrets of the hub's own namespace.
func (s *scene) hubSecrets(t *testing.T) typedcorev1.SecretInterface {
	t.Helper()
	return s.person(t, "kubernetes-admin", "system:masters").CoreV1().Secrets(confighub.ComponentNamespace)
}

// requireCause requires an answer of the hub or the agent itself.
func requireCause(t *testing.T, err error, code int32, cause string) {
	t.Helper()
	var status apierrors.APIStatus
	require.ErrorAs(t, err, &status)
	is := status.Status()
	require.Equal(t, code, is.Code, "%v", err)
	require.NotNil(t, is.Details)
	require.Len(t, is.Details.Causes, 1)
	require.Equal(t, cause, string(is.Details.Causes[0].Type), "%v", err)
}

func decodeKind(apiVersion, kind string) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(apiVersion, kind)
}

func list(names []string) (out []any) {
	for _, n := range names {
		out = append(out, n)
	}
	return out
}

func apply(t *testing.T, on dynamic.Interface, u *unstructured.Unstructured) {
	t.Helper()
	soon(t, func() error {
		_, err := on.Resource(reconcile.ResourceOf(u.GroupVersionKind())).Namespace(u.GetNamespace()).
			Apply(context.Background(), u.GetName(), u, metav1.ApplyOptions{FieldManager: "test", Force: true})
		return err
	})
}

// soon waits until f returns nil.
func soon(t *testing.T, f func() error) {
	t.Helper()
	last := error(nil)
	err := wait.PollUntilContextTimeout(context.Background(), 20*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		last = f()
		return last == nil, nil
	})
	require.NoError(t, err, "%v", last)
}

// raw sends a request with a client configuration, and returns the answer.
func raw(t *testing.T, config *rest.Config, method, path string, head http.Header) *http.Response {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), method, config.Host+path, http.NoBody)
	require.NoError(t, err)
	for name, values := range head {
		request.Header[name] = values
	}
	answer, err := client.Do(request)
	require.NoError(t, err)
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// keyPair returns what serves with a certificate.
func keyPair(t *testing.T, pair pki.Pair) *tls.Config {
	t.Helper()
	certificate, err := tls.LoadX509KeyPair(pair.CertFile, pair.KeyFile)
	require.NoError(t, err)
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
}
