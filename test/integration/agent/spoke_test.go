// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/memory"
)

var (
	works       = schema.GroupVersionResource{Group: "work.open-cluster-management.io", Version: "v1", Resource: "manifestworks"}
	klusterlets = schema.GroupVersionResource{Group: "operator.open-cluster-management.io", Version: "v1", Resource: "klusterlets"}
)

// binary builds the agent once.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "ocm-agent-bin-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "ocm-agent")
	args := append([]string{"build", "-trimpath", "-ldflags", "-s -w", "-o", path}, raceFlags...)
	build := exec.Command("go", append(args, "github.com/kubectl-ocm/kubectl-ocm/controllers/ocm-agent")...)
	build.Env = append(os.Environ(), cgo)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building ocm-agent: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := binary(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// spoke is a managed cluster, before or after it joins.
type spoke struct {
	*harness.Cluster
	client dynamic.Interface
	// way is the address of the proxy through which the agent reaches the API server; empty for
	// a direct connection.
	way string
}

func newSpoke(t *testing.T) *spoke {
	t.Helper()
	c := harness.Fresh(t, "spoke")
	return &spoke{Cluster: c, client: c.Dynamic(t)}
}

// apply writes an object as an administrator.
func apply(t *testing.T, client dynamic.Interface, u *unstructured.Unstructured) {
	t.Helper()
	_, err := client.Resource(reconcile.ResourceOf(u.GroupVersionKind())).Namespace(u.GetNamespace()).
		Apply(t.Context(), u.GetName(), u, metav1.ApplyOptions{FieldManager: "test", Force: true})
	require.NoError(t, err, "%s %s", u.GetKind(), u.GetName())
}

// install applies the objects of an agent, as the plugin does.
func (s *spoke) install(t *testing.T, o config.Options) {
	t.Helper()
	o.Image = "ghcr.io/kubectl-ocm/ocm-agent:test"
	objects, err := config.Objects(o)
	require.NoError(t, err)
	for _, u := range objects {
		if u.GetKind() == "Klusterlet" {
			await(t, func() bool {
				_, err := s.client.Resource(klusterlets).List(t.Context(), metav1.ListOptions{})
				return err == nil
			})
		}
		apply(t, s.client, u)
	}
}

// agent is a running ocm-agent.
type agent struct {
	cmd *exec.Cmd
	// root is the file system of its pod.
	root string
	log  string
	port int
	done chan struct{}
}

// start runs the agent's process with the token of its ServiceAccount.
func (s *spoke) start(t *testing.T, args ...string) *agent {
	t.Helper()
	if len(args) == 0 {
		args = []string{"run"}
	}
	return s.startAs(t, config.ServiceAccount("klusterlet"), t.TempDir(), args...)
}

// startAs runs a process of an agent with the token of a ServiceAccount; dir is the file system
// of its pod.
func (s *spoke) startAs(t *testing.T, account, dir string, args ...string) *agent {
	t.Helper()
	return s.startIn(t, operatorv1.NamespaceAgent, account, dir, args...)
}

// startIn does the same in another namespace.
func (s *spoke) startIn(t *testing.T, namespace, account, dir string, args ...string) *agent {
	t.Helper()
	path, err := binary()
	require.NoError(t, err)
	cfg := s.As(t, namespace, account)
	cfg.Host = cmp.Or(s.way, cfg.Host)
	files := filepath.Join(dir, "var/run/secrets/kubernetes.io/serviceaccount")
	require.NoError(t, os.MkdirAll(files, 0o700))
	for name, content := range map[string]string{"token": cfg.BearerToken, "ca.crt": string(cfg.CAData), "namespace": namespace} {
		require.NoError(t, os.WriteFile(filepath.Join(files, name), []byte(content), 0o600))
	}
	api, err := url.Parse(cfg.Host)
	require.NoError(t, err)
	a := &agent{root: dir, port: freePort(t), done: make(chan struct{})}
	a.log = filepath.Join(dir, fmt.Sprintf("log-%d", a.port))
	out, err := os.Create(a.log)
	require.NoError(t, err)
	a.cmd = exec.Command(path, args...)
	a.cmd.Stdout, a.cmd.Stderr = out, out
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	a.cmd.Env = []string{"OCM_ROOT=" + dir, fmt.Sprintf("OCM_PORTS=8443:%d", a.port), "POD_NAME=klusterlet-agent-0", "POD_NAMESPACE=" + namespace,
		"KUBERNETES_SERVICE_HOST=" + api.Hostname(), "KUBERNETES_SERVICE_PORT=" + api.Port()}
	require.NoError(t, a.cmd.Start())
	go func() {
		defer close(a.done)
		_ = a.cmd.Wait()
		_ = out.Close()
	}()
	t.Cleanup(func() {
		a.kill()
		text, err := os.ReadFile(a.log)
		require.NoError(t, err)
		require.NotContains(t, string(text), "DATA RACE")
		require.NotContains(t, string(text), "panic")
		if t.Failed() || os.Getenv("OCM_TEST_LOG") != "" {
			t.Logf("log of the agent:\n%s", text)
		}
	})
	return a
}

// kill ends the process as a crash does.
func (a *agent) kill() {
	_ = a.cmd.Process.Kill()
	<-a.done
}

// stop ends the process gracefully and returns its exit code.
func (a *agent) stop() int {
	_ = a.cmd.Process.Signal(syscall.SIGTERM)
	<-a.done
	return a.cmd.ProcessState.ExitCode()
}

// running reports whether the process is alive.
func (a *agent) running() bool {
	select {
	case <-a.done:
		return false
	default:
		return true
	}
}

// memory returns the memory of the process.
func (a *agent) memory(t *testing.T) memory.Usage {
	t.Helper()
	u, err := memory.Of(a.cmd.Process.Pid)
	require.NoError(t, err)
	return u
}

// Ports for agents are below the range from which Linux and macOS assign ports to
// outgoing connections, so that no other process gets one by chance before the agent
// binds it.
const firstPort, lastPort = 20000, 31999

// ports are the ports assigned to agents of this test process.
var ports sync.Map

func freePort(t *testing.T) int {
	t.Helper()
	for range lastPort - firstPort {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		if _, taken := ports.LoadOrStore(port, true); taken {
			continue
		}
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			require.NoError(t, l.Close())
			return port
		}
	}
	require.Fail(t, "no port is free")
	return 0
}

// secret reads a secret of the agent's namespace; nil when it does not exist.
func (s *spoke) secret(ctx context.Context, name string) map[string][]byte {
	return s.secretIn(ctx, operatorv1.NamespaceAgent, name)
}

// setBootstrap replaces the bootstrap kubeconfig.
func (s *spoke) setBootstrap(t *testing.T, raw []byte) {
	t.Helper()
	apply(t, s.client, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{"namespace": operatorv1.NamespaceAgent, "name": operatorv1.SecretBootstrapHubKubeconfig},
		"data":     map[string]any{"kubeconfig": base64.StdEncoding.EncodeToString(raw)}}})
}

func (s *spoke) klusterlet(t *testing.T) *operatorv1.Klusterlet {
	t.Helper()
	k, err := read(t.Context(), func() (*operatorv1.Klusterlet, error) {
		return typed.Get[operatorv1.Klusterlet](t.Context(), s.client, klusterlets, "", "klusterlet")
	})
	require.NoError(t, err)
	return k
}

// awaitKlusterlet waits until a condition of the Klusterlet has this reason and a message
// that contains the text.
func (s *spoke) awaitKlusterlet(t *testing.T, kind, reason, message string) {
	t.Helper()
	var last *metav1.Condition
	await(t, func() bool {
		last = apimeta.FindStatusCondition(s.klusterlet(t).Status.Conditions, kind)
		return last != nil && last.Reason == reason && strings.Contains(last.Message, message)
	}, "%s is not there with %s %q but is %+v", kind, reason, message, func() any { return last })
}

func data(t *testing.T, u *unstructured.Unstructured, path ...string) []byte {
	t.Helper()
	encoded, found, err := unstructured.NestedString(u.Object, path...)
	require.NoError(t, err)
	require.True(t, found)
	raw, err := base64.StdEncoding.DecodeString(encoded)
	require.NoError(t, err)
	return raw
}
