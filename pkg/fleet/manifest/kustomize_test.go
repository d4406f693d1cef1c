// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/manifest"
)

// folder writes files into a folder of the test; names may contain folders.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	return dir
}

const (
	greeting = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: greeting}\ndata: {text: hello}\n"
	alone    = "resources: [greeting.yaml]\n"
)

func TestAKustomizationIsBuilt(t *testing.T) {
	dir := folder(t, map[string]string{
		"base/kustomization.yaml": alone, "base/greeting.yaml": greeting,
		"prod/kustomization.yaml": `resources: [../base]
namespace: shop
namePrefix: prod-
labels: [{pairs: {env: prod}}]
patches: [{patch: '[{"op": "replace", "path": "/data/text", "value": "see https://example.org"}]', target: {kind: ConfigMap}}]
configMapGenerator: [{name: made, literals: ["URL=https://example.org"], files: [key=made@2x.txt], options: {disableNameSuffixHash: true}}]
transformers:
- annotations.yaml
- |
  apiVersion: builtin
  kind: LabelTransformer
  metadata: {name: any}
  labels: {made: inline}
  fieldSpecs: [{path: metadata/labels, create: true}]
`,
		"prod/made@2x.txt": "made",
		"prod/annotations.yaml": "apiVersion: builtin\nkind: AnnotationsTransformer\nmetadata: {name: any}\n" +
			"annotations: {docs: https://example.org}\nfieldSpecs: [{path: metadata/annotations, create: true}]\n",
	})
	source, err := manifest.Kustomize(filepath.Join(dir, "prod"), "it")
	require.NoError(t, err)
	objects, err := manifest.Read([]manifest.Source{source}, "")
	require.NoError(t, err)
	require.Len(t, objects, 2)
	names := map[string]map[string]any{}
	for _, u := range objects {
		require.Equal(t, "shop", u.GetNamespace())
		require.Equal(t, "https://example.org", u.GetAnnotations()["docs"])
		require.Equal(t, map[string]string{"env": "prod", "made": "inline"}, u.GetLabels())
		names[u.GetName()] = u.Object["data"].(map[string]any)
	}
	require.Equal(t, "see https://example.org", names["prod-greeting"]["text"])
	require.Equal(t, map[string]any{"URL": "https://example.org", "key": "made", "text": "see https://example.org"},
		names["prod-made"])
}

// Whatever a kustomization names, nothing is fetched: neither by HTTP nor by git, which is
// replaced on PATH by a program that records when it is run.
func TestAKustomizationFetchesNothing(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(server.Close)
	programs := t.TempDir()
	ran := filepath.Join(programs, "ran")
	require.NoError(t, os.WriteFile(filepath.Join(programs, "git"), []byte("#!/bin/sh\ntouch "+ran+"\nexit 1\n"), 0o700)) //nolint:gosec // it is run
	t.Setenv("PATH", programs+":/usr/bin:/bin")
	url := server.URL + "/x.yaml"
	for name, kustomization := range map[string]string{
		"a resource":              "resources: [" + url + "]",
		"a capital letter":        "Resources: [" + strings.Replace(url, "http", "HTTP", 1) + "]",
		"a repository":            "resources: ['" + server.URL + "/org/repo.git//path?ref=main']",
		"a repository of GitHub":  "resources: [github.com/org/repo]",
		"a forced protocol":       "resources: ['git::github.com/org/repo']",
		"a repository by SSH":     "resources: ['git@127.0.0.1:org/repo.git']",
		"a file as a repository":  "resources: ['file:///srv/repo']",
		"a base":                  "bases: ['" + server.URL + "/org/repo']",
		"a component":             "components: ['" + server.URL + "/org/repo']",
		"a patch":                 alone + "patches: [{path: '" + url + "', target: {kind: ConfigMap}}]",
		"an old patch":            alone + "patchesStrategicMerge: ['" + url + "']",
		"a JSON patch":            alone + "patchesJson6902: [{path: '" + url + "', target: {version: v1, kind: ConfigMap, name: greeting}}]",
		"a replacement":           alone + "replacements: [{path: '" + url + "'}]",
		"a definition":            alone + "crds: ['" + url + "']",
		"a configuration":         alone + "configurations: ['" + url + "']",
		"a schema":                alone + "openapi: {path: '" + url + "'}",
		"a generator's file":      "configMapGenerator: [{name: a, files: ['" + url + "']}]",
		"a file under a key":      "secretGenerator: [{name: a, files: ['key=" + url + "']}]",
		"a generator's variables": "configMapGenerator: [{name: a, envs: ['" + url + "']}]",
		"an old variable file":    "configMapGenerator: [{name: a, env: '" + url + "'}]",
		"a generator":             "generators: ['" + url + "']",
		"a transformer":           alone + "transformers: ['" + url + "']",
		"a validator":             alone + "validators: ['" + url + "']",
		"an inline generator":     "generators:\n- |\n  apiVersion: builtin\n  kind: ConfigMapGenerator\n  metadata: {name: a}\n  files: ['" + url + "']\n",
		"a generator in a file":   "generators: [generator.yaml]",
		"a generator in a folder": "generators: [generators]",
	} {
		t.Run(name, func(t *testing.T) {
			generator := "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: a}\nfiles: ['k=" + url + "']\n"
			dir := folder(t, map[string]string{"kustomization.yaml": kustomization, "greeting.yaml": greeting,
				"generator.yaml":                generator,
				"generators/kustomization.yaml": "resources: [g.yaml]\n", "generators/g.yaml": generator})
			_, err := manifest.Kustomize(dir, "it")
			require.Error(t, err)
			var e *fleet.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, fleet.Usage, e.Kind)
			require.NotEmpty(t, e.Fix)
			require.Regexp(t, "is a remote address|is a folder|cannot be built", e.Message)
			require.Zero(t, asked.Load(), "a request was sent")
			require.NoFileExists(t, ran, "git was run")
		})
	}
	_, err := manifest.Kustomize(server.URL+"/org/repo", "it")
	require.ErrorContains(t, err, "is a remote address")
}

// Hostile content is refused in bounded time, and errors say what is wrong.
func TestABadKustomizationIsRefused(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 'b'; i < 'k'; i++ {
		bomb += fmt.Sprintf("%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", i, i, i-1, i-1, i-1, i-1, i-1,
			i-1, i-1, i-1, i-1, i-1)
	}
	for name, tc := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no kustomization": {map[string]string{"greeting.yaml": greeting}, "unable to find one of 'kustomization.yaml'"},
		"an unknown field": {map[string]string{"kustomization.yaml": "resorces: [a.yaml]\n"}, `unknown field "resorces"`},
		"a missing file":   {map[string]string{"kustomization.yaml": "resources: [a.yaml]\n"}, "a.yaml"},
		"a file outside":   {map[string]string{"kustomization.yaml": "resources: [/etc/hostname]\n"}, "security"},
		"a way out": {map[string]string{"a/kustomization.yaml": "resources: [../greeting.yaml]\n", "greeting.yaml": greeting,
			"kustomization.yaml": "resources: [a]\n"}, "security"},
		"itself": {map[string]string{"kustomization.yaml": "resources: ['.']\n"}, "cannot be built"},
		"aliases that grow": {
			map[string]string{"kustomization.yaml": alone, "greeting.yaml": greeting + bomb},
			"its aliases make it larger",
		},
		"a bomb by itself": {map[string]string{"kustomization.yaml": bomb}, "its aliases make it larger"},
		"a program": {
			map[string]string{"kustomization.yaml": alone + "transformers: [f.yaml]\n", "greeting.yaml": greeting,
				"f.yaml": "apiVersion: v1\nkind: Any\nmetadata:\n  name: f\n  annotations: {config.kubernetes.io/function: 'exec: {path: /bin/true}'}\n"},
			"external plugins disabled",
		},
		"a chart": {
			map[string]string{"kustomization.yaml": "helmCharts: [{name: a, repo: https://127.0.0.1:1}]\n"},
			"--enable-helm",
		},
		"a file that is large": {map[string]string{"kustomization.yaml": "configMapGenerator: [{name: a, files: [large]}]\n",
			"large": strings.Repeat("x", 9<<20)}, "is larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := manifest.Kustomize(folder(t, tc.files), "it")
			require.ErrorContains(t, err, tc.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
	_, err := manifest.Kustomize(filepath.Join(t.TempDir(), "nosuch"), "it")
	require.ErrorContains(t, err, "is not a folder")
}
