// SPDX-License-Identifier: Apache-2.0

//go:build perf

package work

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	agentconfig "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/audit"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/budget"
)

var (
	requests = schema.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests"}
	clusters = schema.GroupVersionResource{Group: "cluster.open-cluster-management.io", Version: "v1", Resource: "managedclusters"}
	bindings = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
)

// program is ocm-agent as a process between two control planes.
type program struct {
	*bench
	spokeCluster *harness.Cluster
	logs         []*audit.Log
	root         string
	env          []string
	cmd          *exec.Cmd
	ended        chan struct{}
}

// newProgram prepares both sides and accepts the agent's cluster.
func newProgram(t *testing.T, budgets *budget.File) *program {
	t.Helper()
	p := &program{bench: &bench{t: t, budgets: budgets}, root: t.TempDir()}
	hub, spoke := p.controlPlane("hub"), p.controlPlane("spoke")
	p.spokeCluster, p.hub, p.spoke = spoke, hub.Dynamic(t), spoke.Dynamic(t)
	for _, name := range []string{
		"managedclusteraddons.addon.open-cluster-management.io",
		"managedclusters.cluster.open-cluster-management.io",
		"manifestworks.work.open-cluster-management.io",
	} {
		p.install(p.hub, name)
	}
	definitions, err := crd.Agent()
	require.NoError(t, err)
	for _, d := range definitions {
		p.install(p.spoke, d.GetName())
	}
	p.create(p.hub, namespaces, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"c1"}}`)
	// The agent's rights on the hub are tested elsewhere.
	p.create(p.hub, bindings, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"agents"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},
		"subjects":[{"kind":"ServiceAccount","namespace":"open-cluster-management","name":"agent-registration-bootstrap"},
		{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"system:open-cluster-management:managed-clusters"}]}`)
	endpoint := &kubeconfig.Config{ClusterEntry: "hub", Server: hub.Config.Host, CAData: hub.Config.CAData}
	bootstrap, err := endpoint.WithToken(hub.As(t, "open-cluster-management", clusterv1.BootstrapServiceAccount).BearerToken)
	require.NoError(t, err)
	objects, err := agentconfig.Objects(agentconfig.Options{Image: "unused", ClusterName: cluster, BootstrapKubeconfig: bootstrap})
	require.NoError(t, err)
	for _, o := range objects {
		// A definition that was just established does not accept writes immediately.
		p.until(func() bool {
			_, err := p.spoke.Resource(reconcile.ResourceOf(o.GroupVersionKind())).Namespace(o.GetNamespace()).
				Apply(t.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: "test", Force: true})
			return err == nil
		}, o.GetKind()+" "+o.GetName()+" is not taken")
	}
	p.pod()
	p.start()
	p.accept()
	return p
}

// controlPlane starts a control plane with an audit log of the agent's requests.
func (p *program) controlPlane(name string) *harness.Cluster {
	p.t.Helper()
	log := audit.New(p.t, audit.NotAdministrators)
	p.logs = append(p.logs, log)
	return harness.ControlPlane(p.t, name, harness.APIServer(log.Flags()...))
}

// pod prepares what the agent finds in its pod: files of its ServiceAccount, and its
// environment.
func (p *program) pod() {
	p.t.Helper()
	config := p.spokeCluster.As(p.t, operatorv1.NamespaceAgent, agentconfig.ServiceAccount("klusterlet"))
	files := filepath.Join(p.root, "var/run/secrets/kubernetes.io/serviceaccount")
	require.NoError(p.t, os.MkdirAll(files, 0o700))
	for name, content := range map[string]string{"token": config.BearerToken, "ca.crt": string(config.CAData), "namespace": operatorv1.NamespaceAgent} {
		require.NoError(p.t, os.WriteFile(filepath.Join(files, name), []byte(content), 0o600))
	}
	api, err := url.Parse(config.Host)
	require.NoError(p.t, err)
	var lc net.ListenConfig
	free, err := lc.Listen(p.t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(p.t, err)
	defer func() { _ = free.Close() }()
	p.env = []string{
		"OCM_ROOT=" + p.root, fmt.Sprintf("OCM_PORTS=8443:%d", free.Addr().(*net.TCPAddr).Port), "POD_NAME=agent-0",
		"POD_NAMESPACE=" + operatorv1.NamespaceAgent, "KUBERNETES_SERVICE_HOST=" + api.Hostname(), "KUBERNETES_SERVICE_PORT=" + api.Port(),
	}
}

// start starts the agent; the end of the test stops it.
func (p *program) start() {
	p.t.Helper()
	log, err := os.OpenFile(filepath.Join(p.root, "agent.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(p.t, err)
	p.cmd = exec.CommandContext(context.Background(), harness.Program(p.t, "controllers/ocm-agent"), "agent", "--spoke-cluster-name="+cluster)
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Env = log, log, p.env
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(p.t, p.cmd.Start())
	ended := make(chan struct{})
	p.ended = ended
	go func() {
		defer close(ended)
		_ = p.cmd.Wait()
		_ = log.Close()
	}()
	p.t.Cleanup(func() {
		p.stop()
		if p.t.Failed() {
			text, err := os.ReadFile(log.Name())
			require.NoError(p.t, err)
			p.t.Logf("log of the agent:\n%s", text)
		}
	})
}

// stop ends the agent gracefully and waits for it.
func (p *program) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.ended
}

// accept approves the agent's request and accepts its cluster.
func (p *program) accept() {
	p.t.Helper()
	ctx := p.t.Context()
	var found []certificatesv1.CertificateSigningRequest
	p.until(func() bool {
		var err error
		found, err = typed.List[certificatesv1.CertificateSigningRequest](ctx, p.hub, requests, "", metav1.ListOptions{})
		return err == nil && len(found) > 0
	}, "the agent asks for no certificate")
	found[0].Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "ByTheTest",
	}}
	found[0].APIVersion, found[0].Kind = "certificates.k8s.io/v1", "CertificateSigningRequest"
	approved, err := typed.ToUnstructured(&found[0])
	require.NoError(p.t, err)
	_, err = p.hub.Resource(requests).Update(ctx, approved, metav1.UpdateOptions{}, "approval")
	require.NoError(p.t, err)
	for subresource, patch := range map[string]string{
		"": `{"spec":{"hubAcceptsClient":true}}`,
		"status": `{"status":{"conditions":[{"type":"HubAcceptedManagedCluster","status":"True","reason":"ByTheTest",
			"message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`,
	} {
		_, err = p.hub.Resource(clusters).Patch(ctx, cluster, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, strings.Fields(subresource)...)
		require.NoError(p.t, err)
	}
	p.create(
		p.hub, leases,
		`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"namespace":"c1","name":"managed-cluster-lease"},
			"spec":{"holderIdentity":"managed-cluster-lease"}}`,
	)
	p.until(func() bool {
		c, err := typed.Get[clusterv1.ManagedCluster](ctx, p.hub, clusters, "", cluster)
		return err == nil && apimeta.IsStatusConditionTrue(c.Status.Conditions, clusterv1.ConditionAvailable)
	}, "the agent does not serve its cluster")
}

// until waits for done, which takes seconds.
func (p *program) until(done func() bool, message string) {
	p.t.Helper()
	require.Eventually(p.t, done, time.Minute, 100*time.Millisecond, message)
}

// each runs f for n numbers, several at a time.
func (p *program) each(n int, f func(i int) error) {
	p.t.Helper()
	require.NoError(p.t, eachOf(n, f))
}

// eachOf runs f for n numbers, several at a time, and returns the first error.
func eachOf(n int, f func(i int) error) error {
	const atOnce = 16
	todo, failed := make(chan int), make(chan error, atOnce)
	var running sync.WaitGroup
	for range atOnce {
		running.Go(func() {
			for i := range todo {
				if err := f(i); err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			}
		})
	}
	for i := range n {
		todo <- i
	}
	close(todo)
	running.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// make creates an object.
func (p *program) make(client dynamic.Interface, gvr schema.GroupVersionResource, raw string) error {
	_, err := post(p.t.Context(), client, gvr, raw)
	return err
}

// post creates an object.
func post(ctx context.Context, client dynamic.Interface, gvr schema.GroupVersionResource, raw string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(raw), &u.Object); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", raw, err)
	}
	return client.Resource(gvr).Namespace(u.GetNamespace()).Create(ctx, u, metav1.CreateOptions{})
}

// mark returns the current ends of the audit logs.
func (p *program) mark() []int64 {
	p.t.Helper()
	var out []int64
	for _, log := range p.logs {
		out = append(out, log.Mark())
	}
	return out
}

// since counts the agent's requests to both API servers since a mark, by verb and
// resource. Requests that are fine at rest are left out: renewals of leases and watches,
// and one /livez a minute.
func (p *program) since(mark []int64) (all int, by map[string]int) {
	p.t.Helper()
	by = map[string]int{}
	for i, log := range p.logs {
		for _, r := range log.Since(mark[i]) {
			if !strings.HasPrefix(r.UserAgent, "ocm-agent/") || r.Stage != "ResponseComplete" || r.Verb == "watch" ||
				r.Object.Resource == "leases" || strings.HasPrefix(r.URI, "/livez") {
				continue
			}
			all++
			by[[]string{"hub ", "spoke "}[i]+r.What()]++
		}
	}
	return all, by
}
