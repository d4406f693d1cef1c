// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/app"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// TestMain runs the plugin once before anything else: the first time, it sets the logger of the
// client libraries, which these read without a lock whenever they log.
func TestMain(m *testing.M) {
	s := app.Streams{Out: io.Discard, Err: os.Stderr, Clock: clock.RealClock{}, Getenv: func(string) string { return "" }}
	if code := app.Run(context.Background(), s, []string{"kubectl-ocm", "options"}); code != 0 {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// typing is a user of the hub who types commands. The context hub is theirs, and spoke that of an administrator of
// the cluster.
type typing struct {
	*exposing
	kubeconfig string
}

func (e *exposing) types(t *testing.T, user *rest.Config) *typing {
	t.Helper()
	out := &typing{exposing: e, kubeconfig: filepath.Join(t.TempDir(), "config")}
	config := clientcmdapi.NewConfig()
	for name, c := range map[string]*rest.Config{"hub": user, "spoke": e.spoke.Config} {
		config.Clusters[name] = &clientcmdapi.Cluster{Server: c.Host, CertificateAuthority: c.CAFile, CertificateAuthorityData: c.CAData}
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{
			ClientCertificate: c.CertFile, ClientKey: c.KeyFile, ClientCertificateData: c.CertData, ClientKeyData: c.KeyData, Token: c.BearerToken,
		}
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	require.NoError(t, clientcmd.WriteToFile(*config, out.kubeconfig))
	return out
}

// loud is an output that several may read and write.
type loud struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *loud) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

func (l *loud) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// run runs "proxy service" on the cluster until ctx is done.
func (y *typing) run(ctx context.Context, out io.Writer, words ...string) (code int, err string) {
	var said loud
	return y.saying(ctx, out, &said, words...), said.String()
}

func (y *typing) saying(ctx context.Context, out io.Writer, said *loud, words ...string) int {
	s := app.Streams{In: strings.NewReader(""), Out: out, Err: said, Clock: clock.RealClock{}, Getenv: func(string) string { return "" }}
	return app.Run(ctx, s, append([]string{"kubectl-ocm", "proxy", "service", "-c", y.name, "--context", "hub", "--kubeconfig", y.kubeconfig}, words...))
}

// fails runs the command, which must fail with all of these words.
func (y *typing) fails(t *testing.T, words []string, want ...string) (err string) {
	t.Helper()
	soon(t, func() error { // a right counts after a moment
		code := 0
		code, err = y.run(t.Context(), io.Discard, words...)
		for _, text := range append(want, "error: ") {
			if code == 0 || !strings.Contains(err, text) {
				return fmt.Errorf("%q is not said, exit %d: %s", text, code, err)
			}
		}
		return nil
	})
	return err
}

// follows types the fix that was printed.
func (y *typing) follows(t *testing.T, said string) {
	t.Helper()
	_, fix, found := strings.Cut(said, "fix:   ")
	require.True(t, found, said)
	fix, _, _ = strings.Cut(fix, "      ")
	fix = strings.NewReplacer("<its context>", "spoke", "<you>", "user-of-"+y.name).Replace(fix)
	binaries, err := harness.Binaries(t.Context())
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", fix)
	cmd.Env = []string{"KUBECONFIG=" + y.kubeconfig, "HOME=" + t.TempDir(),
		"PATH=" + filepath.Dir(binaries.Kubectl) + string(os.PathListSeparator) + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\n%s", fix, out)
}

// opened is a command that leads to a Service.
type opened struct {
	url  string
	said *loud
	end  context.CancelFunc
	code chan int
}

func (y *typing) opens(t *testing.T, words ...string) *opened {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	o := &opened{said: &loud{}, end: cancel, code: make(chan int, 1)}
	read, write := io.Pipe()
	go func() {
		code := y.saying(ctx, write, o.said, words...)
		_ = write.Close()
		o.code <- code
	}()
	line, err := bufio.NewReader(read).ReadString('\n')
	require.NoError(t, err, "%s", o.said)
	o.url = strings.TrimSpace(line)
	t.Cleanup(cancel)
	return o
}

// asks sends a request to the port of this machine.
func (o *opened) asks(t *testing.T, method, path, body string, head ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, o.url+path, strings.NewReader(body))
	require.NoError(t, err)
	for i := 1; i < len(head); i += 2 {
		if r.Header.Set(head[i-1], head[i]); head[i-1] == "Host" {
			r.Host = head[i]
		}
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer, string(text)
}

// TestAServiceIsReachedByACommand: what a cluster exposes is listed, and a port of this machine leads to it. The
// fixes that are printed on the way are typed.
func TestAServiceIsReachedByACommand(t *testing.T) {
	e := start(t).expose(t, "commanded")
	y := e.types(t, e.user)
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			conn, both, err := http.NewResponseController(w).Hijack()
			if err == nil {
				fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
				_, _ = io.CopyN(conn, both, 5)
				_ = conn.Close()
			}
			return
		}
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/missing":
			http.NotFound(w, r)
		case "/moved":
			http.Redirect(w, r, "/", http.StatusFound)
		default:
			fmt.Fprintf(w, "%s %s %s%s", r.Method, r.URL.RequestURI(), body, r.Header.Get("Authorization"))
		}
	}))
	defer there.Close()
	e.service(t, "web", 8080, there)

	y.fails(t, nil, "cluster commanded cannot be reached through context hub", `cannot get resource "managedclusters/proxy"`)
	e.allow(t, "User", "user-of-commanded", "commanded")
	y.follows(t, y.fails(t, nil, "what cluster commanded exposes cannot be read", `"cluster-proxy-exposed-services" is forbidden`))
	soon(t, func() error {
		if code, err := y.run(t.Context(), io.Discard); code != 0 || err != "cluster commanded exposes no Services: there is no entry in configmap "+
			"open-cluster-management-agent/cluster-proxy-exposed-services there\n" {
			return fmt.Errorf("exit %d: %s", code, err)
		}
		return nil
	})
	y.fails(t, []string{"commanded/web"}, "cluster commanded does not expose Service commanded/web",
		"no entry of configmap open-cluster-management-agent/cluster-proxy-exposed-services there names it")
	// The agent says the same of what the list need not be read for.
	y.follows(t, y.fails(t, []string{"commanded/http:web:8080"}, "Service commanded/http:web:8080 of cluster commanded cannot be reached",
		"add the entry {namespace: commanded, service: web, port: 8080, protocol: http}"))
	y.follows(t, y.fails(t, []string{"commanded/gone:1"}, "cluster commanded does not expose Service commanded/gone:1"))
	y.fails(t, []string{"commanded/gone"}, "cluster commanded has no Service commanded/https:gone:1",
		"fix:   kubectl ocm proxy kubectl -c commanded --context hub -- get services -n commanded")

	var out loud
	code, err := y.run(t.Context(), &out)
	require.Zero(t, code, err)
	require.Equal(t, "NAMESPACE   SERVICE   PORT   PROTOCOL\ncommanded   gone      1      any\ncommanded   web       8080   http\n", out.String())
	out = loud{}
	stopped := clocktesting.NewFakeClock(time.Now()) // a slow hub completes nothing
	require.Zero(t, app.Run(t.Context(), app.Streams{Out: &out, Err: io.Discard, Clock: stopped, Getenv: func(string) string { return "" }},
		[]string{"kubectl-ocm", "__complete", "--context", "hub", "--kubeconfig", y.kubeconfig, "proxy", "service", "-c", "commanded", "commanded/h"}))
	require.Contains(t, out.String(), "commanded/http:web:8080\n")
	o := y.opens(t, "web", "-n", "commanded")
	y.testOpened(t, o)

	// A token of the client's own is not taken for that of the user.
	grant(t, e.dyn, "test:services:typist", "test:services:commanded", "User", "system:serviceaccount:default:typist")
	byToken := e.types(t, e.hub.As(t, "default", "typist"))
	soon(t, func() error { // the right counts after a moment
		answer := raw(t, e.hub.As(t, "default", "typist"), http.MethodGet, connectv1alpha1.ServicePath("commanded", "commanded/http:web:8080/"), nil)
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("%s", answer.Status)
		}
		return nil
	})
	second := byToken.opens(t, "commanded/http:web:8080")
	answer, text := second.asks(t, http.MethodGet, "/", "", "Authorization", "Bearer other")
	require.Equal(t, []any{http.StatusOK, "GET / "}, []any{answer.StatusCode, text})
	second.end()
	require.Zero(t, <-second.code)

	// What is taken away from the list is told to the client, and here.
	e.list(t, nil)
	soon(t, func() error {
		if answer, text := o.asks(t, http.MethodGet, "/", ""); answer.StatusCode != http.StatusForbidden {
			return fmt.Errorf("%s", text)
		}
		return nil
	})
	o.asks(t, http.MethodGet, "/", "")
	require.Equal(t, 1, strings.Count(o.said.String(), "cluster commanded does not expose Service"), "it is told once")
	require.Contains(t, o.said.String(), "; kubectl create configmap cluster-proxy-exposed-services")
	o.end()
	require.Zero(t, <-o.code)
	_, dialed := net.Dial("tcp", strings.TrimPrefix(o.url, "http://"))
	require.Error(t, dialed, "nobody listens any more")
}

// testOpened uses the port as programs and browsers do.
func (y *typing) testOpened(t *testing.T, o *opened) {
	t.Helper()
	require.Regexp(t, `^http://127\.0\.0\.1:[0-9]+$`, o.url)
	own := strings.TrimPrefix(o.url, "http://")
	for _, head := range [][]string{
		nil, {"Host", "localhost:1"}, {"Origin", o.url}, {"Sec-Fetch-Site", "none"}, {"Sec-Fetch-Site", "same-origin"}, {"Host", "[::1]:80"},
		{"Authorization", "Bearer other"}, {"Impersonate-User", "other"}, {"Cookie", "a=b"},
	} {
		answer, text := o.asks(t, http.MethodPost, "/a/b%20c/?q=1&r=%2F", "sent", head...)
		require.Equal(t, http.StatusOK, answer.StatusCode, "%v %s", head, text)
		require.Equal(t, "POST /a/b%20c/?q=1&r=%2F sent", text)
		require.Empty(t, answer.Header.Values("Content-Security-Policy"), "a browser may run its scripts")
	}
	for _, head := range [][]string{
		{"Host", "example.com"}, {"Host", own + ".example.com"}, {"Origin", "http://example.com"}, {"Origin", "null"}, {"Origin", "https://" + own},
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Host", "127.0.0.1.example.com:80"},
	} {
		answer, text := o.asks(t, http.MethodGet, "/", "", head...)
		require.Equal(t, http.StatusForbidden, answer.StatusCode, head)
		require.Contains(t, text, "not for pages of other sites")
	}
	for _, path := range []string{"/../managedclusters", "/a/..", "/%2e%2e/x", "/a%2F..%2Fb", "/./a", `/a\..\b`} {
		conn, err := net.Dial("tcp", own)
		require.NoError(t, err)
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, own)
		line, err := bufio.NewReader(conn).ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, line, "400 Bad Request", path)
		require.NoError(t, conn.Close())
	}
	conn, err := net.Dial("tcp", own)
	require.NoError(t, err)
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	fmt.Fprintf(conn, "GET /chat HTTP/1.1\r\nHost: %s\r\nOrigin: http://%s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", own, own)
	reader := bufio.NewReader(conn)
	switched, err := http.ReadResponse(reader, nil)
	require.NoError(t, err)
	defer func() { _ = switched.Body.Close() }()
	require.Equal(t, http.StatusSwitchingProtocols, switched.StatusCode)
	_, err = conn.Write([]byte("hello"))
	require.NoError(t, err)
	echo := make([]byte, len("hello"))
	_, err = io.ReadFull(reader, echo)
	require.NoError(t, err)
	require.Equal(t, "hello", string(echo))
	require.NoError(t, conn.Close())
	answer, text := o.asks(t, http.MethodGet, "/missing", "")
	require.Equal(t, []any{http.StatusNotFound, "404 page not found\n"}, []any{answer.StatusCode, text}, "what the Service says is not judged")
	require.NotContains(t, o.said.String(), "cannot be reached")
	answer, _ = o.asks(t, http.MethodGet, "/moved", "")
	require.Equal(t, http.StatusBadGateway, answer.StatusCode)
	require.Contains(t, o.said.String(), "ask for the page that it leads to")
}

// TestWhyAServiceIsNotReachedIsSaid names the cluster, the Service, the cause and what helps.
func TestWhyAServiceIsNotReachedIsSaid(t *testing.T) {
	e := start(t).expose(t, "unreached")
	y := e.types(t, e.user)
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	e.service(t, "plain", 80, plain)
	e.service(t, "down", 80, &httptest.Server{Listener: closed(t)})
	e.list(t, map[string]string{"all": "- {namespace: unreached, service: plain}\n- {namespace: unreached, service: down, protocol: http, port: 80}\n" +
		"- {namespace: unreached, service: two, port: 1}\n- {namespace: unreached, service: two, port: 2}"})
	e.allow(t, "User", "user-of-unreached", "unreached")
	apply(t, e.spoke.Dynamic(t), decode(t, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"unreached"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"},
		"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"user-of-unreached"}]}`))

	y.fails(t, []string{"unreached/plain:80"}, "Service unreached/https:plain:80 of cluster unreached does not answer",
		"fix:   kubectl ocm proxy service unreached/http:plain:80 -c unreached --context hub      if it speaks http")
	y.fails(t, []string{"unreached/down"}, "Service unreached/http:down:80 of cluster unreached does not answer",
		"-- get endpointslices -n unreached -l kubernetes.io/service-name=down")
	y.fails(t, []string{"unreached/plain"}, "cluster unreached exposes all of its ports", "-- get services -n unreached")
	y.fails(t, []string{"unreached/two"}, "cluster unreached exposes several", "fix:   kubectl ocm proxy service -c unreached --context hub")
	e.list(t, map[string]string{"all": "- {namespace: unreached, service: plain, port: http}"})
	y.fails(t, nil, `key all, entry 1: port "http" must be a number`,
		"fix:   kubectl edit configmap cluster-proxy-exposed-services -n open-cluster-management-agent")

	nobody := e.types(t, e.personConfig(t, "nobody"))
	nobody.fails(t, []string{"unreached/http:plain:80"}, `cannot get resource "clusterservices/proxy"`,
		"fix:   kubectl create clusterrolebinding reach-services --clusterrole=open-cluster-management:clusterservices:proxy")
	root := e.types(t, e.personConfig(t, "root", "system:masters"))
	e.join(t, "tunnelless")
	for name, want := range map[string]string{
		"tunnelless": "fix:   kubectl ocm join tunnelless --feature-gates ClusterProxy=true", "nosuch": "kubectl ocm cluster list --context hub",
	} {
		root.fails(t, []string{"unreached/http:plain:80", "-c", name}, name, want)
	}
	var out loud
	o := root.opens(t, "unreached/http:plain:80", "-o", "name")
	o.end()
	require.Zero(t, <-o.code)
	code, err := root.run(t.Context(), &out, "-o", "json", "--agent-namespace", operatorv1.NamespaceAgentAddOn)
	require.NotZero(t, code, "the user has no rights there: %s", err)
	code, _ = y.run(t.Context(), &out, "-o", "json", "--agent-namespace", operatorv1.NamespaceAgentAddOn)
	require.Zero(t, code)
	require.True(t, json.Valid([]byte(out.String())))
	require.Contains(t, out.String(), `"items": []`)
	code, said := y.run(t.Context(), io.Discard, "unreached/http:plain:80:1")
	require.Equal(t, 2, code, said)
}

// closed is an address at which nobody listens.
func closed(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener
}
