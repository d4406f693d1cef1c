// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent"
	"github.com/kubectl-ocm/kubectl-ocm/config/agent/operator"
	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/manifest"
)

// built returns the objects of a kustomization and of the file with its custom resource, by name.
func built(t *testing.T, folder, resource string) map[string]any {
	t.Helper()
	source, err := manifest.Kustomize(filepath.Join(root, folder), folder)
	require.NoError(t, err)
	objects, err := read(nil, source.Data)
	require.NoError(t, err)
	sample, err := os.ReadFile(filepath.Join(root, resource))
	require.NoError(t, err)
	objects, err = read(objects, sample)
	require.NoError(t, err)
	return named(t, objects)
}

func TestTheHubsKustomizationHasWhatThePluginApplies(t *testing.T) {
	for folder, layout := range map[string]string{"config/hub": hub.LayoutCompact, "config/split": hub.LayoutSplit} {
		want, err := hub.Objects(hub.Options{Version: version(t), Layout: layout})
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(named(t, want), built(t, folder, "config/hub/manifests/clustermanager.yaml")), layout)
	}
}

func TestTheAgentsKustomizationHasWhatThePluginApplies(t *testing.T) {
	want, err := agent.Objects(agent.Options{Image: "ghcr.io/kubectl-ocm/ocm-agent:" + version(t), ClusterName: "cluster1"})
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(named(t, want), built(t, "config/agent", "config/agent/manifests/klusterlet.yaml")))
}

func TestTheOperatorsKustomizationHasWhatThePluginApplies(t *testing.T) {
	want, err := operator.Objects("ghcr.io/kubectl-ocm/ocm-agent:" + version(t))
	require.NoError(t, err)
	source, err := manifest.Kustomize(filepath.Join(root, "config/agent/operator"), "config/agent/operator")
	require.NoError(t, err)
	objects, err := read(nil, source.Data)
	require.NoError(t, err)
	// The operator applies the other definitions itself.
	got := named(t, objects)
	for _, u := range want {
		require.Empty(t, cmp.Diff(named(t, []*unstructured.Unstructured{u}), only(got, named(t, []*unstructured.Unstructured{u}))))
	}
}

// only returns those entries of all that some has.
func only(all, some map[string]any) map[string]any {
	out := map[string]any{}
	for name := range some {
		out[name] = all[name]
	}
	return out
}

// TestStampedFilesHaveTheVersion: "make generate" writes the version to the marked lines.
func TestStampedFilesHaveTheVersion(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	files := regexp.MustCompile(`(?m)^STAMPED *= *(.*)$`).FindSubmatch(makefile)
	require.NotNil(t, files)
	marked := 0
	for _, file := range strings.Fields(string(files[1])) {
		text, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?m): ?v?([^\s:]+) # VERSION$`).FindAllSubmatch(text, -1) {
			marked++
			require.Equal(t, strings.TrimPrefix(version(t), "v"), string(m[1]), file)
		}
	}
	require.Equal(t, 9, marked)
}
