// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

package e2e_test

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/terminal"
	"github.com/kubectl-ocm/kubectl-ocm/tools/image/oci"
)

// TestPodsAreReachedThroughTheHub runs pods on a cluster and uses them with kubectl through the hub: logs, commands,
// forwarded ports, files and terminals.
func TestPodsAreReachedThroughTheHub(t *testing.T) {
	f := startFleetWith(t, []string{"tar"}, "c1")
	f.ocm(t, "hub", "init", "--context", "hub", "--feature-gates", "ClusterProxy=true", "--timeout", "3m")
	f.ocm(t, "join", "c1", "--context", "c1", "--hub-context", "hub", "--accept", "--feature-gates", "ClusterProxy=true", "--timeout", "3m")
	manifests, err := filepath.Abs(filepath.Join(root, "examples/webdemo/manifests.yaml"))
	require.NoError(t, err)
	kubectl(t, f.on("c1"), "apply", "-f", manifests)
	box := filepath.Join(t.TempDir(), "box.yaml")
	require.NoError(t, os.WriteFile(box, fmt.Appendf(nil, boxPod, oci.DefaultRepository+"/tar:"+version(t)), 0o600))
	kubectl(t, f.on("c1"), "apply", "-f", box)
	kubectl(t, f.on("c1"), "wait", "--for=condition=Available", "deployment/webdemo", "--timeout=180s")
	kubectl(t, f.on("c1"), "wait", "--for=condition=Ready", "pod/box", "--timeout=180s")
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
	eventually(t, func() error { // the API server learns of it a moment later
		if got := r.proxy(t, "", r.through("auth", "can-i", "*", "*")...); got.code != 0 {
			return errors.New(got.stdout + got.stderr)
		}
		return nil
	})
	t.Run("logs are read and followed", r.testLogs)
	t.Run("commands run, and their exit code and input arrive", r.testExec)
	t.Run("ports are forwarded", r.testForward)
	t.Run("a Service is reached", r.testService)
	t.Run("a chart is installed", r.testChart)
	t.Run("a running program is attached to", r.testAttach)
	for name, sockets := range map[string]string{"WebSocket": "true", "SPDY": "false"} {
		r.sockets = sockets
		t.Run("files are copied both ways by "+name, r.testCopy)
		t.Run("a terminal is resized by "+name, r.testTerminal)
	}
}

// boxPod runs test/e2e/tar, with a folder for files.
const boxPod = `apiVersion: v1
kind: Pod
metadata: {name: box}
spec:
  automountServiceAccountToken: false
  containers:
  - name: box
    image: %s
    args: [repeat]
    stdin: true
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, emptyDir: {}}]
`

type reached struct {
	*fleet
	// sockets is whether kubectl uses WebSockets: true, false, or empty for its default.
	sockets string
}

// prepare returns a command of the plugin with kubectl on its PATH.
func (r *reached) prepare(t *testing.T, words ...string) *exec.Cmd {
	t.Helper()
	binaries, err := harness.Binaries(t.Context())
	require.NoError(t, err)
	cmd := r.command(t, plugin(t), append([]string{"proxy"}, words...)...)
	cmd.Env[0] = "PATH=" + filepath.Dir(binaries.Kubectl) + ":/usr/bin:/bin"
	if r.sockets != "" {
		cmd.Env = append(cmd.Env, "KUBECTL_REMOTE_COMMAND_WEBSOCKETS="+r.sockets)
	}
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
	page, err := r.page(t, "http://"+port[1])
	require.NoError(t, err)
	require.Contains(t, page, "<h1>Declared once on the hub</h1>")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Error(t, <-ended, "kubectl is ended by the signal")
}

// testAttach types a line, which the program in the pod repeats.
func (r *reached) testAttach(t *testing.T) {
	cmd := r.prepare(t, r.through("attach", "-i", "box")...)
	shown := &screen{}
	cmd.Stdout = shown
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- r.hub.Run(cmd) }()
	_, err = io.WriteString(in, "are you there?\n")
	require.NoError(t, err)
	shows(t, shown, "are you there?\n")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Error(t, <-ended, "kubectl is ended by the signal")
}

// shows waits until a text is on a screen.
func shows(t *testing.T, s *screen, text string) {
	t.Helper()
	eventually(t, func() error {
		if got := s.String(); !strings.Contains(got, text) {
			return fmt.Errorf("%q does not show %q", got, text)
		}
		return nil
	})
}

// testCopy copies a file to the pod and back that is larger than what a stream holds.
func (r *reached) testCopy(t *testing.T) {
	content := make([]byte, 3<<20+1)
	_, _ = rand.Read(content) // never fails
	here, back := filepath.Join(t.TempDir(), "here"), filepath.Join(t.TempDir(), "back")
	require.NoError(t, os.WriteFile(here, content, 0o600))
	there := "default/box:/data/by-" + r.sockets
	require.Zero(t, r.proxy(t, "", r.through("cp", here, there)...).code)
	require.Zero(t, r.proxy(t, "", r.through("cp", there, back)...).code)
	got, err := os.ReadFile(back)
	require.NoError(t, err)
	require.True(t, bytes.Equal(content, got), "%d bytes came back of %d", len(got), len(content))
}

// testTerminal changes the size of a terminal in which a program of the pod runs.
func (r *reached) testTerminal(t *testing.T) {
	own, shown := terminal.Open(t, 33, 99), &screen{}
	cmd := r.prepare(t, r.through("exec", "-it", "box", "--", "tar", "terminal")...)
	own.Give(cmd)
	go func() { _, _ = io.Copy(shown, own) }() // until the terminal is closed
	ended := make(chan error, 1)
	go func() { ended <- r.hub.Run(cmd) }()
	shows(t, shown, "size 33 99\r\n")
	own.Resize(t, 44, 111)
	shows(t, shown, "size 44 111\r\n")
	_, err := own.WriteString("\n")
	require.NoError(t, err)
	var exit *exec.ExitError
	require.ErrorAs(t, <-ended, &exit)
	require.Equal(t, 5, exit.ExitCode(), shown)
}
