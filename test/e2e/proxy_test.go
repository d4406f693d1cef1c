// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// TestPodsAreReachedThroughTheHub runs a pod on a cluster and uses it with kubectl through the hub: logs, commands and
// forwarded ports.
func TestPodsAreReachedThroughTheHub(t *testing.T) {
	f := startFleet(t, "c1")
	f.ocm(t, "hub", "init", "--context", "hub", "--feature-gates", "ClusterProxy=true", "--timeout", "3m")
	f.ocm(t, "join", "c1", "--context", "c1", "--hub-context", "hub", "--accept", "--feature-gates", "ClusterProxy=true", "--timeout", "3m")
	manifests, err := filepath.Abs(filepath.Join(root, "examples/webdemo/manifests.yaml"))
	require.NoError(t, err)
	kubectl(t, f.on("c1"), "apply", "-f", manifests)
	kubectl(t, f.on("c1"), "wait", "--for=condition=Available", "deployment/webdemo", "--timeout=180s")
	r := &reached{fleet: f}
	eventually(t, func() error {
		if got := r.proxy(t, "", "health", "--context", "hub"); got.code != 0 {
			return errors.New(got.stdout + got.stderr)
		}
		return nil
	})
	who := r.proxy(t, "", "kubectl", "-c", "c1", "--context", "hub", "--", "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
	require.Zero(t, who.code, who.stderr)
	kubectl(t, f.on("c1"), "create", "clusterrolebinding", "person", "--clusterrole=cluster-admin", "--user="+who.stdout)
	t.Run("logs are read and followed", r.testLogs)
	t.Run("commands run, and their exit code and input arrive", r.testExec)
	t.Run("ports are forwarded", r.testForward)
}

type reached struct{ *fleet }

// prepare returns a command of the plugin with kubectl on its PATH.
func (r *reached) prepare(t *testing.T, words ...string) *exec.Cmd {
	t.Helper()
	binaries, err := harness.Binaries(t.Context())
	require.NoError(t, err)
	cmd := r.command(t, plugin(t), append([]string{"proxy"}, words...)...)
	cmd.Env[0] = "PATH=" + filepath.Dir(binaries.Kubectl) + ":/usr/bin:/bin"
	return cmd
}

// proxy runs "kubectl ocm proxy".
func (r *reached) proxy(t *testing.T, stdin string, words ...string) outcome {
	t.Helper()
	cmd := r.prepare(t, words...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	var exit *exec.ExitError
	if err := r.hub.Run(cmd); !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	out := outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
	t.Logf("$ kubectl ocm proxy %s   (exit %d)\n%s\n%s", strings.Join(words, " "), out.code, head(out.stdout), head(out.stderr))
	return out
}

// on runs kubectl on c1 through the hub.
func (r *reached) through(words ...string) []string {
	return append([]string{"kubectl", "-c", "c1", "--context", "hub", "--"}, words...)
}

func (r *reached) testLogs(t *testing.T) {
	got := r.proxy(t, "", r.through("logs", "deployment/webdemo")...)
	require.Zero(t, got.code)
	require.Contains(t, got.stdout, "serves pod webdemo-")

	cmd := r.prepare(t, r.through("logs", "-f", "deployment/webdemo")...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- r.hub.Run(cmd) }()
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "serves pod webdemo-")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Error(t, <-ended, "kubectl is ended by the signal")
}

func (r *reached) testExec(t *testing.T) {
	got := r.proxy(t, "", r.through("exec", "deployment/webdemo", "--", "/webdemo")...)
	require.Equal(t, 1, got.code, "the exit code of the command")
	require.Contains(t, got.stderr, "listening on port 8080")
	require.NotContains(t, got.stderr, "cannot be reached")
}

func (r *reached) testForward(t *testing.T) {
	cmd := r.prepare(t, "port-forward", "-c", "c1", "deployment/webdemo", "0:8080", "--context", "hub")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- r.hub.Run(cmd) }()
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	port := regexp.MustCompile(`^Forwarding from (127\.0\.0\.1:\d+) -> 8080\n$`).FindStringSubmatch(line)
	require.NotNil(t, port, line)
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return r.hub.Config.Dial(ctx, network, port[1])
	}}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://forwarded/", http.NoBody)
	require.NoError(t, err)
	answer, err := client.Do(request)
	require.NoError(t, err)
	page, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Contains(t, string(page), "<h1>Declared once on the hub</h1>", fmt.Sprint(answer.Status))
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Error(t, <-ended, "kubectl is ended by the signal")
}
