// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
)

// privateRegistry is the registry of the guide.
const privateRegistry = "registry.example.org"

// fewerImages makes "make images" build a small program for one platform in place of ours,
// because process nodes run no images; test/e2e runs the real ones.
const fewerImages = "-platform linux/amd64 ocm-hub=./examples/webdemo ocm-agent=./examples/webdemo"

// skopeo copies an archive to a registry, as the program of this name does, and reads back
// what the registry then has.
func (g *installGuide) skopeo(t *testing.T, line string) {
	t.Helper()
	words := strings.Fields(strings.ReplaceAll(line, "$(cat VERSION)", version.Get()))[1:]
	require.Equal(t, []string{"copy", "--all"}, words[:2])
	archive, found := strings.CutPrefix(words[2], "oci-archive:")
	require.True(t, found, words[2])
	target, found := strings.CutPrefix(words[3], "docker://"+privateRegistry)
	require.True(t, found, words[3])

	folder := t.TempDir()
	output, err := exec.CommandContext(t.Context(), "tar", "-xf", filepath.Join(g.folder, archive), "-C", folder).CombinedOutput()
	require.NoError(t, err, string(output))
	if g.registry == nil {
		g.registry = httptest.NewServer(registry.New())
		t.Cleanup(g.registry.Close)
	}
	repository, tag, _ := strings.Cut(target, ":")
	digest := push(t, folder, g.registry.URL+"/v2"+repository, tag)
	response := send(t, http.MethodHead, g.registry.URL+"/v2"+repository+"/manifests/"+tag, "", nil)
	require.Equal(t, digest, response.Header.Get("Docker-Content-Digest"))
	g.pushed = append(g.pushed, privateRegistry+target)
}

// push pushes the only image of an OCI layout to a repository, for all its platforms.
func push(t *testing.T, folder, repository, tag string) (digest string) {
	t.Helper()
	blob := func(digest string) []byte {
		raw, err := os.ReadFile(filepath.Join(folder, "blobs", strings.ReplaceAll(digest, ":", "/")))
		require.NoError(t, err)
		return raw
	}
	manifest := func(d descriptor, as string) {
		send(t, http.MethodPut, repository+"/manifests/"+as, d.MediaType, blob(d.Digest))
	}
	decode := func(raw []byte) (m struct {
		Config            descriptor
		Layers, Manifests []descriptor
	}) {
		require.NoError(t, json.Unmarshal(raw, &m))
		return m
	}
	raw, err := os.ReadFile(filepath.Join(folder, "index.json"))
	require.NoError(t, err)
	top := decode(raw).Manifests
	require.Len(t, top, 1)
	for _, platform := range decode(blob(top[0].Digest)).Manifests {
		image := decode(blob(platform.Digest))
		for _, part := range append(image.Layers, image.Config) {
			send(t, http.MethodPost, repository+"/blobs/uploads/?digest="+part.Digest, "application/octet-stream", blob(part.Digest))
		}
		manifest(platform, platform.Digest)
	}
	manifest(top[0], tag)
	return top[0].Digest
}

// descriptor names a part of an image.
type descriptor struct{ MediaType, Digest string }

// send sends one request that must succeed.
func send(t *testing.T, method, url, kind string, body []byte) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", kind)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Less(t, response.StatusCode, 300, "%s %s", method, url)
	return response
}

// requirePushed checks that what runs are images that the registry has.
func (g *installGuide) requirePushed(t *testing.T) {
	t.Helper()
	for at, namespace := range map[string]string{"hub": "open-cluster-management", "cluster1": "open-cluster-management-agent"} {
		list, err := g.clusters[at].Dynamic(t).Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).
			Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.NotEmpty(t, list.Items, at)
		for _, pod := range list.Items {
			containers, _, err := unstructured.NestedSlice(pod.Object, "spec", "containers")
			require.NoError(t, err)
			for _, container := range containers {
				require.Contains(t, g.pushed, container.(map[string]any)["image"], pod.GetName())
			}
		}
	}
}
