// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/install"
)

// installGuide runs the blocks of docs/guides/install.md.
type installGuide struct {
	clusters map[string]*harness.Cluster
	// folder is the working directory, bin the first folder of PATH.
	folder, bin string
	// releases are those of Helm, by context and name.
	releases map[string]release
	// registry has the images in pushed.
	registry *httptest.Server
	pushed   []string
}

// release is what Helm remembers of an installation.
type release struct {
	values  map[string]any
	objects []*unstructured.Unstructured
}

// TestTheInstallGuide runs every block of docs/guides/install.md with the real processes of
// hub and agent. After each way to install and uninstall, nothing is left.
func TestTheInstallGuide(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	guide, err := os.ReadFile(filepath.Join(root, "docs", "guides", "install.md"))
	require.NoError(t, err)
	agent := harness.Program(t, "controllers/ocm-agent")
	g := &installGuide{folder: t.TempDir(), bin: t.TempDir(), releases: map[string]release{}, clusters: map[string]*harness.Cluster{
		"hub":      harness.FreshWithNode(t, "hub", map[string]string{"ocm-hub": harness.Program(t, "controllers/ocm-hub"), "ocm-agent": agent}),
		"cluster1": harness.FreshWithNode(t, "cluster1", map[string]string{"ocm-agent": agent}),
	}}
	g.install(t, root)
	kubeconfig(t, g.clusters["hub"], g.clusters["cluster1"])
	require.NoError(t, os.Symlink(filepath.Join(root, "config"), filepath.Join(g.folder, "config")))

	hub, cluster := inventory(t, g.clusters["hub"]), inventory(t, g.clusters["cluster1"])
	var ways []string
	for _, way := range strings.Split(string(guide), "\n## ")[1:] {
		name, text, _ := strings.Cut(way, "\n")
		t.Log(name)
		ways = append(ways, name)
		if name == "Operator Lifecycle Manager" {
			g.lifecycleManager(t)
		}
		for _, block := range regexp.MustCompile("(?s)```\n(.*?)```").FindAllStringSubmatch(text, -1) {
			g.run(t, block[1])
		}
		fresh(t, g.clusters["hub"])
		// Kubernetes does so after an hour.
		require.NoError(t, g.clusters["hub"].Dynamic(t).Resource(requests).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
		becomes(t, g.clusters["hub"], hub)
		becomes(t, g.clusters["cluster1"], cluster)
	}
	require.Equal(t, []string{"The plugin", "kubectl and kustomize", "Helm", "Operator Lifecycle Manager", "make", "Without access to ghcr.io"}, ways)
	require.Empty(t, g.releases)
}

// install puts the programs that the guide uses into bin: make leaves out its build, because
// the plugin is there already.
func (g *installGuide) install(t *testing.T, root string) {
	t.Helper()
	binaries, err := harness.Binaries(t.Context())
	require.NoError(t, err)
	require.NoError(t, os.Symlink(binaries.Kubectl, filepath.Join(g.bin, "kubectl")))
	require.NoError(t, os.Symlink(harness.Program(t, "plugins/kubectl-ocm"), filepath.Join(g.bin, "kubectl-ocm")))
	program, err := exec.LookPath("make")
	require.NoError(t, err)
	caches, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE").Output()
	require.NoError(t, err)
	of := strings.Fields(string(caches)) // the home folder will be another one
	script := fmt.Sprintf("#!/bin/sh\nexport GOCACHE=%s GOMODCACHE=%s\n"+
		"exec %s --no-print-directory -C %s -o build BIN=%s VERSION=%s DIST=\"$PWD/dist\" IMAGES='%s' \"$@\"\n",
		of[0], of[1], program, root, g.bin, version.Get(), fewerImages) // the plugin is not stamped with a release
	require.NoError(t, os.WriteFile(filepath.Join(g.bin, "make"), []byte(script), 0o700))
}

// run runs one block: in a shell, except for the lines of Helm and skopeo.
func (g *installGuide) run(t *testing.T, block string) {
	t.Helper()
	var script strings.Builder
	shell := func() {
		command := exec.CommandContext(t.Context(), "sh", "-exc", script.String())
		command.Dir, command.Stdout, command.Stderr = g.folder, t.Output(), t.Output()
		command.Env = append(environment(t), "PATH="+g.bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
		require.NoError(t, command.Run(), script.String())
		script.Reset()
	}
	for line := range strings.Lines(strings.ReplaceAll(block, "\\\n", "")) {
		words := strings.Fields(line)
		switch words[0] {
		case "helm":
			shell()
			t.Log(line)
			g.helm(t, words[1], words[2], flags(t, words[3:]))
		case "skopeo":
			shell()
			g.skopeo(t, line)
		default:
			script.WriteString(line)
		}
		if words[len(words)-1] == "--accept" && strings.Contains(line, "--image-registry") {
			shell()
			g.requirePushed(t)
		}
	}
	shell()
	if strings.Contains(block, "bootstrap.kubeconfig\n") {
		info, err := os.Stat(filepath.Join(g.folder, "bootstrap.kubeconfig"))
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o077, "others can read it")
	}
}

// flags reads the flags of Helm that the guide uses, and the chart as "".
func flags(t *testing.T, words []string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for i := 0; i < len(words); i++ {
		switch word := words[i]; word {
		case "--create-namespace", "--reuse-values":
			out[word] = []string{"true"}
		case "--namespace", "--kube-context", "--set", "--set-file":
			i++
			out[word] = append(out[word], words[i])
		default:
			require.False(t, strings.HasPrefix(word, "-"), word)
			out[""] = append(out[""], word)
		}
	}
	return out
}

// helm does what the program of this name does.
func (g *installGuide) helm(t *testing.T, verb, name string, flags map[string][]string) {
	t.Helper()
	at, namespace := flags["--kube-context"][0], flags["--namespace"][0]
	client := g.clusters[at].Dynamic(t)
	before, known := g.releases[at+"/"+name]
	switch verb {
	case "install":
		require.False(t, known, "it is installed already")
		require.NotNil(t, flags["--create-namespace"])
		err := apply(t, client, object("v1", "Namespace", "", namespace, nil))
		require.NoError(t, err)
	case "upgrade":
		require.True(t, known)
		require.NotNil(t, flags["--reuse-values"])
	case "uninstall":
		require.True(t, known)
		g.uninstall(t, at, name)
		return
	}
	values := g.values(t, before.values, flags)
	rendered, err := install.Render(filepath.Join(g.folder, flags[""][0]), namespace, values)
	require.NoError(t, err)
	if !known {
		for _, o := range rendered.Definitions {
			require.NoError(t, apply(t, client, o))
			established(t, client, o.GetName())
		}
	}
	sorted(rendered.Objects, releaseutil.InstallOrder)
	for _, o := range rendered.Objects {
		require.NoError(t, apply(t, client, o))
	}
	g.releases[at+"/"+name] = release{values, rendered.Objects}
}

// values returns those of an earlier installation, changed by flags.
func (g *installGuide) values(t *testing.T, before map[string]any, flags map[string][]string) map[string]any {
	t.Helper()
	out := maps.Clone(before)
	if out == nil {
		out = map[string]any{}
	}
	set := func(path string, value any) {
		keys := strings.Split(path, ".")
		for i := len(keys) - 1; i > 0; i-- {
			value = map[string]any{keys[i]: value}
		}
		out = loader.MergeMaps(out, map[string]any{keys[0]: value})
	}
	for _, flag := range flags["--set"] {
		path, value, _ := strings.Cut(flag, "=")
		set(path, value)
	}
	for _, flag := range flags["--set-file"] {
		path, file, _ := strings.Cut(flag, "=")
		text, err := os.ReadFile(filepath.Join(g.folder, file))
		require.NoError(t, err)
		set(path, string(text))
	}
	return out
}

// uninstall deletes what Helm does not keep, without waiting, and checks that objects of
// works stay.
func (g *installGuide) uninstall(t *testing.T, at, name string) {
	t.Helper()
	if name == "klusterlet" {
		require.Zero(t, runWith(t, configMap, "work", "apply", "web", "-f", "-", "-c", "cluster1", "--context", "hub", "--wait", "--timeout", "5m").code)
		defer g.requireKept(t)
	}
	client, objects := g.clusters[at].Dynamic(t), g.releases[at+"/"+name].objects
	sorted(objects, releaseutil.UninstallOrder)
	for _, o := range objects {
		if install.Kept(o) {
			continue
		}
		err := client.Resource(reconcile.ResourceOf(o.GroupVersionKind())).Namespace(o.GetNamespace()).Delete(t.Context(), o.GetName(), metav1.DeleteOptions{})
		require.NoError(t, err)
	}
	delete(g.releases, at+"/"+name)
}

// requireKept waits until the agent is gone and checks that what its work applied is there;
// then it removes that, with what the agent leaves for it.
func (g *installGuide) requireKept(t *testing.T) {
	t.Helper()
	cluster := g.clusters["cluster1"]
	client := cluster.Dynamic(t)
	absent(t, cluster, namespaces, "", "open-cluster-management-agent")
	require.NoError(t, client.Resource(configMaps).Namespace("default").Delete(t.Context(), "greeting", metav1.DeleteOptions{}))
	applied := workv1.GroupVersion.WithResource("appliedmanifestworks")
	require.NoError(t, client.Resource(applied).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	require.NoError(t, client.Resource(definitions).Delete(t.Context(), applied.GroupResource().String(), metav1.DeleteOptions{}))
	absent(t, cluster, definitions, "", applied.GroupResource().String())
}

// sorted sorts objects by kind, others last.
func sorted(objects []*unstructured.Unstructured, order releaseutil.KindSortOrder) {
	place := func(o *unstructured.Unstructured) int {
		if i := slices.Index(order, o.GetKind()); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return place(a) - place(b) })
}

func apply(t *testing.T, client dynamic.Interface, o *unstructured.Unstructured) error {
	t.Helper()
	_, err := client.Resource(reconcile.ResourceOf(o.GroupVersionKind())).Namespace(o.GetNamespace()).
		Apply(t.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: "helm"})
	return err
}

// established waits until the kind of a definition is served.
func established(t *testing.T, client dynamic.Interface, name string) {
	t.Helper()
	plural, group, _ := strings.Cut(name, ".")
	until(t, func() error {
		_, err := client.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural}).List(t.Context(), metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			return errors.New(name + " is not served")
		}
		return err
	})
}
