// SPDX-License-Identifier: Apache-2.0

package playground_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground/process"
)

// foreign is a user's kubeconfig. It has one of the contexts of a playground called taken.
const foreign = `apiVersion: v1
clusters:
- cluster:
    server: https://somewhere:6443
  name: work
contexts:
- context:
    cluster: work
    user: ""
  name: ocm-taken-cluster1
- context:
    cluster: work
    user: ""
  name: work
current-context: work
kind: Config
users: null
`

// person is a user of the built plugin, with a home folder of its own.
type person struct {
	t *testing.T
	// plugin is the program, home the folder that holds everything, assets the one with the programs of
	// Kubernetes.
	plugin, home, assets string
}

// newPerson builds the programs into one folder, as in a release archive. The home folder is
// below it, so that whatever a failed test leaves running ends with this process.
func newPerson(t *testing.T) *person {
	t.Helper()
	plugin := harness.Program(t, "plugins/kubectl-ocm")
	harness.Program(t, "controllers/ocm-hub")
	harness.Program(t, "controllers/ocm-agent")
	home, err := os.MkdirTemp(filepath.Dir(plugin), "home")
	require.NoError(t, err)
	binaries, err := harness.Binaries(t.Context())
	require.NoError(t, err)
	p := &person{t: t, plugin: plugin, home: home, assets: filepath.Dir(binaries.Etcd)}
	t.Cleanup(func() {
		require.NoError(t, process.EndAll(home))
		require.NoError(t, os.RemoveAll(home))
	})
	require.NoError(t, os.WriteFile(p.kubeconfig(), []byte(foreign), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(home, "hello.yaml"),
		[]byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: hello, namespace: default}}\n"), 0o600))
	return p
}

func (p *person) kubeconfig() string { return filepath.Join(p.home, "kubeconfig") }

// labs is the folder of all playgrounds.
func (p *person) labs() string { return filepath.Join(p.home, ".cache", "kubectl-ocm", "dev") }

func (p *person) command(words ...string) *exec.Cmd {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), p.plugin, words...)
	cmd.Dir = p.home
	cmd.Env = []string{
		"HOME=" + p.home, "KUBECONFIG=" + p.kubeconfig(), "KUBEBUILDER_ASSETS=" + p.assets,
		"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8",
	}
	return cmd
}

// types runs a command line, and returns its exit code and what it prints.
func (p *person) types(line string) (code int, out, errs string) {
	p.t.Helper()
	words, ours := strings.CutPrefix(line, "kubectl ocm ")
	require.True(p.t, ours, line)
	cmd := p.command(strings.Fields(words)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run() // the exit code tells
	p.t.Logf("%s\n%s%s", line, stdout.String(), stderr.String())
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// does runs a command line that has to succeed.
func (p *person) does(line string) string {
	p.t.Helper()
	code, out, errs := p.types(line)
	require.Zero(p.t, code, errs)
	return out
}

// nothingLeft requires that no playground has left anything.
func (p *person) nothingLeft() {
	p.t.Helper()
	left, err := os.ReadDir(p.labs())
	if !os.IsNotExist(err) {
		require.NoError(p.t, err)
	}
	require.Empty(p.t, left)
	config, err := clientcmd.LoadFromFile(p.kubeconfig())
	require.NoError(p.t, err)
	require.Len(p.t, config.Contexts, 2)
	require.Len(p.t, config.Clusters, 1)
	require.Empty(p.t, config.AuthInfos)
	require.Equal(p.t, "work", config.CurrentContext)
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(p.t, err)
	for _, file := range commands {
		line, _ := os.ReadFile(file) // a process that has ended is fine
		require.NotContains(p.t, string(line), p.labs())
	}
}

// TestAPlaygroundDownloadsItsKubernetes starts a playground on a machine that has no Kubernetes. What a
// server sends is kept only if it is what the release names.
func TestAPlaygroundDownloadsItsKubernetes(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	from := p.assets
	p.assets = ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimSuffix(filepath.Base(r.URL.Path), "-"+runtime.GOOS+"-"+runtime.GOARCH+".gz")
		content, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/forged/") {
			content = append(content, '\n')
		}
		packed, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is one that exists
		_, _ = packed.Write(content)                        // the client sees what is missing
		_ = packed.Close()
	}))
	t.Cleanup(server.Close)
	cache := filepath.Join(p.home, ".cache", "kubectl-ocm", "kubernetes")
	up := "kubectl ocm dev up --clusters 1 --download-from " + server.URL
	forged := up + "/forged"
	code, _, errs := p.types(forged + " --dry-run")
	require.Zero(t, code)
	require.Contains(t, errs, "would be downloaded from "+server.URL+"/forged")
	require.NoDirExists(t, cache, "a dry run writes nothing")
	code, _, errs = p.types(forged)
	require.Equal(t, 1, code)
	if runtime.GOOS+"/"+runtime.GOARCH != "linux/amd64" {
		require.Contains(t, errs, "it is not published for")
		return
	}
	require.Contains(t, errs, "is not the program that this release names: nothing of it was kept")
	require.Contains(t, errs, "name it by --bin-dir, or in a checkout of the project: make control-plane")
	for _, kept := range []string{"etcd", "kube-apiserver"} {
		require.Empty(t, p.find(cache, kept))
	}
	code, _, errs = p.types("kubectl ocm dev up --download-from ftp://here")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "begins with https:// or http://")

	code, _, errs = p.types(up)
	require.Zero(t, code, errs)
	require.Contains(t, errs, "[####....] ")
	require.Contains(t, errs, "downloaded into "+cache)
	require.Len(t, p.find(cache, "kube-apiserver"), 1)
	server.Close()
	require.Contains(t, p.does(up), "hub unchanged")
	p.does("kubectl ocm dev down")
	p.nothingLeft()
}

// find returns the files of that name in the folders below one.
func (p *person) find(below, name string) []string {
	p.t.Helper()
	found, err := filepath.Glob(filepath.Join(below, "*", name+"*"))
	require.NoError(p.t, err)
	return found
}

// TestTheGuideOfThePlayground types docs/guides/playground.md. Meanwhile an API server and an
// agent's node die, as after a crash: the guide's second run mends that. Then it types the guide to the
// first hour.
func TestTheGuideOfThePlayground(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../docs/guides/playground.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```\n(.*?)```").FindAllStringSubmatch(string(guide), -1)
	require.Len(t, blocks, 4)
	p := newPerson(t)

	p.does(strings.TrimSpace(blocks[0][1]))
	lab := filepath.Join(p.labs(), "lab")
	info, err := os.Stat(lab)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	for line := range strings.Lines(blocks[1][1]) {
		p.does(strings.TrimSpace(line))
	}
	require.Equal(t, "hub unchanged, context ocm-lab-hub\ncluster1 unchanged, context ocm-lab-cluster1\n", p.does("kubectl ocm dev up"))

	require.NoError(t, process.End(filepath.Join(lab, "hub"), "kube-apiserver"))
	require.NoError(t, process.End(filepath.Join(lab, "cluster1"), "process-node"))
	require.Regexp(t, `hub +ocm-lab-hub +- +\d+ +no +\d+Mi +kube-apiserver not running\n`, p.does("kubectl ocm dev status"))
	require.Equal(t, "hub configured, context ocm-lab-hub\ncluster1 configured, context ocm-lab-cluster1\ncluster2 created, context ocm-lab-cluster2\n",
		p.does(strings.TrimSpace(blocks[2][1])+" --use"))
	var list struct {
		Items []struct {
			Ready bool  `json:"ready"`
			PID   int   `json:"pid"`
			RSS   int64 `json:"rss"`
		} `json:"items"`
	}
	require.NoError(t, json.Unmarshal([]byte(p.does("kubectl ocm dev status -o json")), &list))
	require.Len(t, list.Items, 3)
	for _, item := range list.Items {
		require.True(t, item.Ready)
		require.NotZero(t, item.PID)
		require.Greater(t, item.RSS, int64(1<<20))
	}
	require.Contains(t, p.does("kubectl ocm cluster list -o name"), "cluster2", "the hub is the current context")
	code, _, errs := p.types("kubectl ocm dev up --clusters 1")
	require.Equal(t, 6, code, errs)
	p.spendsAnHour()

	require.Equal(t, "playground/lab deleted\n", p.does(strings.TrimSpace(blocks[3][1])))
	p.nothingLeft()
	require.Equal(t, "playground/lab unchanged\n", p.does("kubectl ocm dev down"))
}

// TestAPlaygroundThatCannotBeIsNotBegun: nothing is started if a context is somebody else's,
// and nothing is left after an interrupt.
func TestAPlaygroundThatCannotBeIsNotBegun(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	code, _, errs := p.types("kubectl ocm dev up --name taken")
	require.Equal(t, 6, code, errs)
	require.Contains(t, errs, `an entry "ocm-taken-cluster1" that does not belong to this playground`)
	content, err := os.ReadFile(p.kubeconfig())
	require.NoError(t, err)
	require.Equal(t, foreign, string(content))
	p.nothingLeft()

	cmd := p.command("dev", "up", "--name", "gone")
	var said bytes.Buffer
	cmd.Stderr = &said
	require.NoError(t, cmd.Start())
	require.True(t, harness.Until(patience, func() bool {
		_, err := os.Stat(filepath.Join(p.labs(), "gone", "hub", "kube-apiserver.pid"))
		return err == nil
	}))
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	require.Error(t, cmd.Wait())
	require.Equal(t, 1, cmd.ProcessState.ExitCode(), said.String())
	require.Contains(t, said.String(), "error: interrupted\n  cause: nothing of the playground is left")
	p.nothingLeft()
}
