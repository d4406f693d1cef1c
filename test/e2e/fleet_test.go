// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness/nodes"
)

// fleet is a hub and the clusters to be managed, on one fabric, with the project's images
// on their nodes and nothing of the project installed yet.
type fleet struct {
	hub     *nodes.Cluster
	managed []*nodes.Cluster
	// kubeconfig has a context for each cluster, named after it.
	kubeconfig string
	// home is the plugin's HOME.
	home string
	// before is what each cluster held at the start.
	before map[string][]string
	// typed holds the command lines of the plugin that were run.
	typed map[string]bool
}

// startFleet starts a hub and clusters of the given names.
func startFleet(t *testing.T, names ...string) *fleet {
	t.Helper()
	return startFleetWith(t, nil, names...)
}

// startFleetWith starts a fleet with additional images on all nodes.
func startFleetWith(t *testing.T, images []string, names ...string) *fleet {
	t.Helper()
	plugin(t) // before clusters start and times are measured
	var more []string
	for _, name := range images {
		more = append(more, image(t, name))
	}
	options := []nodes.Options{{Name: "hub", Images: append([]string{image(t, "ocm-hub"), image(t, "ocm-agent")}, more...)}}
	for _, name := range names {
		options = append(options, nodes.Options{Name: name, Images: append([]string{image(t, "ocm-agent"), image(t, "webdemo")}, more...)})
	}
	clusters := nodes.Start(t, options...)
	f := &fleet{hub: clusters[0], managed: clusters[1:], home: t.TempDir(), before: map[string][]string{}, typed: map[string]bool{}}
	f.kubeconfig = filepath.Join(f.home, "config")
	require.NoError(t, nodes.WriteKubeconfig(f.kubeconfig, clusters...))
	for _, c := range clusters {
		var err error
		f.before[c.Name], err = objects(t, c)
		require.NoError(t, err)
	}
	t.Cleanup(func() { f.explain(t) })
	return f
}

// outcome is how a run of the plugin ended.
type outcome struct {
	code           int
	stdout, stderr string
}

// run runs the plugin in the hub's network, without a terminal (hence without colours)
// and with one kubeconfig for all clusters.
func (f *fleet) run(t *testing.T, arguments ...string) outcome {
	t.Helper()
	return f.runWith(t, "", arguments...)
}

// runWith is run with a standard input.
func (f *fleet) runWith(t *testing.T, stdin string, arguments ...string) outcome {
	t.Helper()
	f.typed["kubectl ocm "+strings.TrimSuffix(strings.Join(arguments, " "), " --yes")] = true
	command := f.command(t, plugin(t), arguments...)
	var stdout, stderr bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := f.hub.Run(command)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	out := outcome{code: command.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
	t.Logf("$ kubectl ocm %s   (exit %d)\n%s\n%s", strings.Join(arguments, " "), out.code, head(out.stdout), head(out.stderr))
	return out
}

// command prepares a program with the environment of run.
func (f *fleet) command(t *testing.T, program string, arguments ...string) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, arguments...)
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + f.home, "KUBECONFIG=" + f.kubeconfig}
	return command
}

// head shortens a text for the log.
func head(text string) string {
	const most = 30
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > most {
		lines = append(lines[:most], fmt.Sprintf("... and %d lines more", len(lines)-most))
	}
	return strings.Join(lines, "\n")
}

// ocm runs the plugin, which must succeed, and returns its standard output.
func (f *fleet) ocm(t *testing.T, arguments ...string) string {
	t.Helper()
	out := f.run(t, arguments...)
	require.Zero(t, out.code, out.stderr)
	return out.stdout
}

// refused runs the plugin, which must end with this exit code, and returns its output.
func (f *fleet) refused(t *testing.T, code int, arguments ...string) string {
	t.Helper()
	out := f.run(t, arguments...)
	require.Equal(t, code, out.code, out.stderr)
	return out.stderr
}

// on returns a managed cluster by its name.
func (f *fleet) on(name string) *nodes.Cluster {
	i := slices.IndexFunc(f.managed, func(c *nodes.Cluster) bool { return c.Name == name })
	return f.managed[i]
}

// explain prints what helps to understand a failed test: pods and events of the project's
// namespaces, and the ends of the logs of its processes.
func (f *fleet) explain(t *testing.T) {
	if !t.Failed() {
		return
	}
	for _, c := range append([]*nodes.Cluster{f.hub}, f.managed...) {
		for _, arguments := range [][]string{
			{"get", "pods", "-A", "-o", "wide"},
			{"get", "events", "-A", "--sort-by=.lastTimestamp"},
			{"-n", "open-cluster-management", "logs", "deployment/cluster-manager", "--tail=60"},
			{"-n", "open-cluster-management-agent", "logs", "deployment/klusterlet-agent", "--tail=60"},
			{"get", "managedclusters,manifestworks,csr,clustermanagers", "-A"},
			{"get", "klusterlets,appliedmanifestworks", "-A", "-o", "yaml"},
		} {
			out, _ := c.Kubectl(context.WithoutCancel(t.Context()), arguments...)
			if out != "" {
				t.Logf("%s: kubectl %s\n%s", c.Name, strings.Join(arguments, " "), out)
			}
		}
	}
}

// passing are kinds whose objects come and go on their own: Kubernetes removes Events,
// and issued CSRs, after an hour.
var passing = []string{"events", "events.events.k8s.io", "certificatesigningrequests.certificates.k8s.io", "componentstatuses"}

// objects lists everything that a cluster holds, of every kind that can be listed:
// "<version> <kind> <namespace>/<name>", sorted. It fails when a kind is removed in the
// meantime.
func objects(t *testing.T, c *nodes.Cluster) ([]string, error) {
	t.Helper()
	served, err := c.Kubectl(t.Context(), "api-resources", "--verbs=list", "--cached=false", "-o", "name")
	if err != nil {
		return nil, err
	}
	kinds := slices.DeleteFunc(strings.Fields(served), func(kind string) bool { return slices.Contains(passing, kind) })
	const row = `jsonpath={range .items[*]}{.apiVersion} {.kind} {.metadata.namespace}/{.metadata.name}{"\n"}{end}`
	out, err := c.Kubectl(t.Context(), "get", strings.Join(kinds, ","), "-A", "-o", row)
	rows := slices.DeleteFunc(strings.Split(strings.TrimSpace(out), "\n"), func(row string) bool {
		return strings.Contains(row, " Lease kube-") // of kubelet and kube-apiserver
	})
	slices.Sort(rows)
	return slices.Compact(rows), err
}

// requireAsBefore waits until a cluster holds exactly what it held at the start and the
// given rows of objects.
func (f *fleet) requireAsBefore(t *testing.T, c *nodes.Cluster, and ...string) {
	t.Helper()
	want := append(slices.Clone(f.before[c.Name]), and...)
	slices.Sort(want)
	eventually(t, func() error {
		now, err := objects(t, c)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, now); diff != "" {
			return fmt.Errorf("%s is not as before (-gone +left):\n%s", c.Name, diff)
		}
		return nil
	})
}

// namespaceOf returns what stays on the hub of a cluster that left without force: its
// namespace, with what Kubernetes puts into each namespace, and its last lease.
func namespaceOf(cluster string) []string {
	return []string{
		"v1 Namespace /" + cluster, "v1 ServiceAccount " + cluster + "/default", "v1 ConfigMap " + cluster + "/kube-root-ca.crt",
		"coordination.k8s.io/v1 Lease " + cluster + "/managed-cluster-lease",
	}
}

// condition returns a function that reads the status of a condition of an object.
func condition(t *testing.T, c *nodes.Cluster, kind string, arguments ...string) func(name string) string {
	return func(name string) string {
		query := fmt.Sprintf(`jsonpath={.status.conditions[?(@.type==%q)].status}`, name)
		out, err := c.Kubectl(t.Context(), append([]string{"get", kind, "-o", query}, arguments...)...)
		if err != nil {
			return err.Error()
		}
		return out
	}
}

// folder matches the folder of a file in a command line.
var folder = regexp.MustCompile(` (-f|--bundle) \S*/`)

// requireTyped checks that the test ran every command line of a guide; files may be in
// another folder.
func (f *fleet) requireTyped(t *testing.T, guide string, atLeast int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, guide))
	require.NoError(t, err)
	typed := map[string]bool{}
	for line := range f.typed {
		typed[folder.ReplaceAllString(line, " $1 ")] = true
	}
	lines := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "kubectl ") {
			lines++
			require.True(t, typed[strings.TrimSpace(line)], "the guide has %q, which nothing here types", line)
		}
	}
	require.GreaterOrEqual(t, lines, atLeast)
}

// page reads the page of the application on a cluster.
func page(t *testing.T, c *nodes.Cluster, namespace string) (string, error) {
	return c.Get(t.Context(), "/api/v1/namespaces/"+namespace+"/services/webdemo:http/proxy/")
}

// manifests writes the application of the demo, declared for a namespace of its own, to a
// file and returns its path.
func manifests(t *testing.T, namespace string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "examples/webdemo/manifests.yaml"))
	require.NoError(t, err)
	placed := strings.ReplaceAll(string(content), "metadata:\n  name: webdemo\n", "metadata:\n  name: webdemo\n  namespace: "+namespace+"\n")
	require.Equal(t, 3, strings.Count(placed, "namespace: "+namespace))
	path := filepath.Join(t.TempDir(), "app.yaml")
	home := "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + namespace + "\n---\n"
	require.NoError(t, os.WriteFile(path, []byte(home+placed), 0o600))
	return path
}
