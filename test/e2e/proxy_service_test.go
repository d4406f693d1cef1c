// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

package e2e_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// testService exposes a Service on the cluster, whose address the agent reaches by way of kube-proxy, and asks it
// from the hub.
func (r *reached) testService(t *testing.T) {
	kubectl(t, r.on("c1"), "create", "configmap", "cluster-proxy-exposed-services", "-n", "open-cluster-management-agent",
		`--from-literal=web=[{"namespace":"default","service":"webdemo","port":8080,"protocol":"http"}]`)
	listed := r.proxy(t, "", "service", "-c", "c1", "--context", "hub")
	require.Zero(t, listed.code, listed.stderr)
	require.Regexp(t, `(?m)^default +webdemo +8080 +http$`, listed.stdout)

	eventually(t, func() error { // the agent follows its list
		path := "/apis/connect.open-cluster-management.io/v1alpha1/clusterservices/c1/proxy/default/http:webdemo:8080/"
		_, err := r.hub.Kubectl(t.Context(), "get", "--raw", path)
		return err
	})
	cmd := r.prepare(t, "service", "default/webdemo", "-c", "c1", "--context", "hub")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- r.hub.Run(cmd) }()
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	page, err := r.page(t, strings.TrimSpace(line))
	require.NoError(t, err)
	require.Contains(t, page, "<h1>Declared once on the hub</h1>")
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	require.NoError(t, <-ended, "an interrupt is how it ends")
}

// testChart installs a chart with Helm, which knows nothing of the hub: it has a kubeconfig that leads through it.
func (r *reached) testChart(t *testing.T) {
	config := r.proxy(t, "", "kubeconfig", "-c", "c1", "--context", "hub")
	require.Zero(t, config.code, config.stderr)
	dir := t.TempDir()
	manifests, err := os.ReadFile(filepath.Join(root, "examples/webdemo/manifests.yaml"))
	require.NoError(t, err)
	for name, text := range map[string]string{
		"kubeconfig":               config.stdout,
		"chart/Chart.yaml":         "apiVersion: v2\nname: webdemo\nversion: 0.1.0\n",
		"chart/templates/all.yaml": string(manifests),
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	binaries, err := harness.Binaries(t.Context())
	require.NoError(t, err)
	helm := func(words ...string) string {
		cmd := r.command(t, filepath.Join(filepath.Dir(binaries.Kubectl), "helm"), words...)
		cmd.Env = []string{"HOME=" + dir, "KUBECONFIG=" + filepath.Join(dir, "kubeconfig")}
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		require.NoError(t, r.hub.Run(cmd), out.String())
		t.Logf("$ helm %s\n%s", strings.Join(words, " "), head(out.String()))
		return out.String()
	}
	helm("install", "shop", filepath.Join(dir, "chart"), "-n", "shop", "--create-namespace", "--wait", "--timeout", "3m")
	require.Equal(t, "1", kubectl(t, r.on("c1"), "get", "deployment", "webdemo", "-n", "shop", "-o", "jsonpath={.status.availableReplicas}"))
	require.Contains(t, helm("list", "-n", "shop", "-o", "json"), `"status":"deployed"`)
	helm("uninstall", "shop", "-n", "shop", "--wait", "--timeout", "3m")
	require.Empty(t, kubectl(t, r.on("c1"), "get", "deployments", "-n", "shop", "-o", "name"))
}

// page asks an address of the machine of the hub for its first page.
func (r *reached) page(t *testing.T, url string) (string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return r.hub.Config.Dial(ctx, network, request.URL.Host)
	}}}
	answer, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}
