// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	library "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// planted is in every secret of these objects, and must not be in a bundle.
const planted = "PLANTED"

// withSecrets are objects with secrets in every place where one can be.
const withSecrets = `
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata:
  name: bundled
  namespace: bundle1
  labels: {app: bundled}
  annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"data":"PLANTED"}', example.com/note: PLANTED}
spec:
  workload:
    manifests:
    - apiVersion: v1
      kind: Secret
      metadata: {name: credentials, namespace: default, annotations: {note: PLANTED}}
      data: {password: UExBTlRFRAo=PLANTED}
      stringData: {password: PLANTED}
    - apiVersion: v1
      kind: ConfigMap
      metadata: {name: settings, namespace: default}
      data: {settings: PLANTED}
    - apiVersion: apps/v1
      kind: Deployment
      metadata: {name: web, namespace: default}
      spec:
        selector: {matchLabels: {app: web}}
        template:
          metadata: {labels: {app: web}}
          spec: {containers: [{name: web, image: web, args: [--password=PLANTED], env: [{name: PASSWORD, value: PLANTED}]}]}
status:
  conditions:
  - type: Applied
    status: "False"
    reason: Test
    message: 'the server says token=PLANTED is wrong; Invalid value: "PLANTED": too long'
    lastTransitionTime: "2026-01-01T00:00:00Z"
  resourceStatus:
    manifests:
    - resourceMeta: {ordinal: 0, kind: Secret, name: credentials, namespace: default, resource: secrets, version: v1}
      conditions: [{type: Applied, status: "False", reason: Test, message: "Authorization: Bearer PLANTED.token", lastTransitionTime: "2026-01-01T00:00:00Z"}]
      statusFeedback:
        values:
        - {name: password, fieldValue: {type: String, string: PLANTED}}
        - {name: raw, fieldValue: {type: JsonRaw, jsonRaw: '{"a":"PLANTED"}'}}
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnDeploymentConfig
metadata: {name: bundled, namespace: bundle1}
spec:
  customizedVariables: [{name: PASSWORD, value: PLANTED}]
  proxyConfig: {httpsProxy: "https://user:PLANTED@proxy.example.com:3128", caBundle: UExBTlRFRAo=}
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata: {name: bundled}
spec:
  addonName: bundled
  agentSpec:
    workload:
      manifests:
      - {apiVersion: v1, kind: Secret, metadata: {name: credentials, namespace: default}, stringData: {password: PLANTED}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: bundled, namespace: open-cluster-management, annotations: {note: PLANTED}}
spec:
  replicas: 0
  selector: {matchLabels: {app: bundled}}
  template:
    metadata: {labels: {app: bundled}, annotations: {note: PLANTED}}
    spec:
      containers:
      - {name: bundled, image: example.com/bundled:v1, args: [--token=PLANTED], command: [run, PLANTED], env: [{name: PASSWORD, value: PLANTED}]}
---
apiVersion: v1
kind: Secret
metadata: {name: bundled, namespace: open-cluster-management}
stringData: {token: PLANTED}
---
apiVersion: v1
kind: Event
metadata: {name: bundled, namespace: open-cluster-management}
involvedObject: {kind: Deployment, name: bundled, namespace: open-cluster-management}
reason: Test
type: Warning
message: the registry refuses https://user:PLANTED@registry.example.com with password "PLANTED-too"
`

// TestABundleHasNoSecrets plants secrets on a real hub and looks for them in the bundle.
func TestABundleHasNoSecrets(t *testing.T) {
	hub := harness.Shared(t, "hub")
	kubeconfig(t, hub)
	client := asHub(t, hub)
	mc := registers(t, client, "bundle1", true)
	reports(t, client, mc, "True")
	_, err := client.Resource(namespaces).Create(t.Context(), object("v1", "Namespace", "", "bundle1", nil), metav1.CreateOptions{})
	require.NoError(t, err)
	patched(t, hub, clusters, "", "bundle1", `{"metadata":{"annotations":{"note":"PLANTED"}},"spec":{"managedClusterClientConfigs":[`+
		`{"url":"https://bundle1.example.com","caBundle":"UExBTlRFRAo="}]}}`)
	_, err = client.Resource(clusters).Patch(t.Context(), "bundle1", types.MergePatchType, []byte(`{"status":{"clusterClaims":[`+
		`{"name":"secret.example.com","value":"PLANTED"},{"name":"id.k8s.io","value":"the-id"}]}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	for _, text := range strings.Split(withSecrets, "\n---\n") {
		u := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(text), &u.Object))
		api := client.Resource(library.ResourceOf(u)).Namespace(u.GetNamespace())
		made, err := api.Create(t.Context(), u.DeepCopy(), metav1.CreateOptions{})
		require.NoError(t, err, text)
		t.Cleanup(func() { _ = api.Delete(context.Background(), u.GetName(), metav1.DeleteOptions{}) })
		if u.GetKind() == "ManifestWork" {
			made.Object["status"] = u.Object["status"]
			_, err := api.UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
			require.NoError(t, err)
		}
	}

	path := filepath.Join(t.TempDir(), "out.tgz")
	got := run(t, "check", "--bundle", path, "--context", "hub", "-o", "json")
	require.Contains(t, got.err, "secrets, values, manifests and annotations are left out")
	require.Contains(t, got.err, "hub/manifestworks.yaml")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	files := unpacked(t, path)
	for name, content := range files {
		require.NotContains(t, content, planted, name)
		require.NotContains(t, content, "UExBTlRFRAo", name)
		require.NotContains(t, content, "last-applied-configuration: '{", name)
	}
	for name, want := range map[string]string{
		"versions.yaml":                                "hub: \"v1.",
		"contents.yaml":                                "name: hub/manifestworks.yaml",
		"findings.yaml":                                "code: OCM0201",
		"hub/manifestworks.yaml":                       "name: credentials",
		"hub/managedclusters.yaml":                     "value: the-id",
		"hub/addontemplates.yaml":                      "addonName: bundled",
		"hub/clustermanagers.yaml":                     "name: cluster-manager",
		"hub/definitions.yaml":                         "name: manifestworks.work.open-cluster-management.io",
		"hub/managedclusteraddons.yaml":                "",
		"hub/open-cluster-management/deployments.yaml": "image: example.com/bundled:v1",
		"hub/open-cluster-management/events.yaml":      "the registry refuses https://REDACTED@registry.example.com",
		"hub/addondeploymentconfigs.yaml":              "httpsProxy: https://REDACTED@proxy.example.com:3128",
	} {
		require.Contains(t, files, name)
		require.Contains(t, files[name], want, name)
	}

	again := run(t, "check", "--bundle", path, "--context", "hub")
	require.Equal(t, 6, again.code, "it overwrites nothing")
	require.Contains(t, again.err, path+" exists")
	nowhere := filepath.Join(t.TempDir(), "none.tgz")
	require.NotZero(t, run(t, "check", "placement", "nosuch", "--bundle", nowhere, "--context", "other").code)
	require.NoFileExists(t, nowhere, "what is not whole is removed")
}

// unpacked returns the files of an archive by name.
func unpacked(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	zipped, err := gzip.NewReader(file)
	require.NoError(t, err)
	out := map[string]string{}
	for archive := tar.NewReader(zipped); ; {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		raw, err := io.ReadAll(archive)
		require.NoError(t, err)
		out[head.Name] = string(raw)
	}
}
