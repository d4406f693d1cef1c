// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

var (
	klusterlets = schema.GroupVersionResource{Group: "operator.open-cluster-management.io", Version: "v1", Resource: "klusterlets"}
	requests    = schema.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests"}
)

// written reports whether an agent was installed.
func written(t *testing.T, c *harness.Cluster) bool {
	t.Helper()
	_, err := c.Dynamic(t).Resource(klusterlets).Get(t.Context(), "klusterlet", metav1.GetOptions{})
	if err != nil {
		require.True(t, apierrors.IsNotFound(err), err)
	}
	return err == nil
}

// object returns an object with these fields.
func object(apiVersion, kind, namespace, name string, fields map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	for k, v := range fields {
		u.Object[k] = v
	}
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// ask sends the certificate request of an agent with the given configuration.
func ask(t *testing.T, config *rest.Config, cluster, agent string, groups ...string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	if groups == nil {
		groups = []string{"system:open-cluster-management:" + cluster, "system:open-cluster-management:managed-clusters"}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{
		CommonName: "system:open-cluster-management:" + cluster + ":" + agent, Organization: groups}}, key)
	require.NoError(t, err)
	u := object("certificates.k8s.io/v1", "CertificateSigningRequest", "", "", map[string]any{"spec": map[string]any{
		"request":    base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})),
		"signerName": "kubernetes.io/kube-apiserver-client",
		"usages":     []any{"digital signature", "key encipherment", "client auth"},
	}})
	u.SetGenerateName(cluster + "-")
	u.SetLabels(map[string]string{"open-cluster-management.io/cluster-name": cluster})
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	made, err := client.Resource(requests).Create(t.Context(), u, metav1.CreateOptions{})
	require.NoError(t, err)
	return made.GetName()
}

func bearer(c *harness.Cluster, token string) *rest.Config {
	return &rest.Config{Host: c.Config.Host, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: c.Config.CAData, CAFile: c.Config.CAFile}}
}

// registers creates the ManagedCluster that an agent would create. It stays for later tests.
func registers(t *testing.T, client dynamic.Interface, name string, accepted bool) *unstructured.Unstructured {
	t.Helper()
	mc, err := client.Resource(clusters).Create(t.Context(), object("cluster.open-cluster-management.io/v1", "ManagedCluster", "", name,
		map[string]any{"spec": map[string]any{"hubAcceptsClient": accepted}}), metav1.CreateOptions{})
	require.NoError(t, err)
	return mc
}

// reports makes a cluster look as if its agent reported.
func reports(t *testing.T, client dynamic.Interface, mc *unstructured.Unstructured, available string) {
	t.Helper()
	at := metav1.Now().UTC().Format("2006-01-02T15:04:05Z")
	condition := func(kind, status string) map[string]any {
		return map[string]any{"type": kind, "status": status, "reason": "Test", "message": "as the test says", "lastTransitionTime": at}
	}
	// A patch: the hub writes the cluster as well.
	raw, err := json.Marshal(map[string]any{"status": map[string]any{
		"conditions": []any{
			condition("ManagedClusterJoined", "True"),
			condition("ManagedClusterConditionAvailable", available),
		},
	}})
	require.NoError(t, err)
	_, err = client.Resource(clusters).Patch(t.Context(), mc.GetName(), types.MergePatchType, raw, metav1.PatchOptions{}, "status")
	require.NoError(t, err)
}

func TestJoinRefusesBeforeItWritesAnything(t *testing.T) {
	hub, spoke := harness.Shared(t, "hub"), harness.Shared(t, "spoke")
	kubeconfig(t, hub, spoke)
	client := asHub(t, hub)
	good := newToken(t, "--context", "hub")
	reports(t, client, registers(t, client, "taken", true), "True")
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	tokenFile := write("token", good.Token+"\n")
	wrongCA := write("ca.pem", otherCA(t))
	byToken := []string{"--hub-apiserver", good.Server, "--token-file", tokenFile}
	for name, tc := range map[string]struct {
		words []string
		code  int
		want  []string
	}{
		"a name that is no DNS label": {
			[]string{"Cluster_1", "--hub-context", "hub"},
			2,
			[]string{"cannot be the name", "cluster-1"},
		},
		"a reserved name": {[]string{"kube-system", "--hub-context", "hub"}, 2, []string{"reserved"}},
		"a context that does not exist": {
			[]string{"c1", "--hub-context", "hob"},
			1,
			[]string{`context "hob" does not exist`, `did you mean "hub"?`},
		},
		"a hub that is no hub": {
			[]string{"c1", "--hub-context", "spoke"},
			1,
			[]string{"is not a hub", "kubectl ocm hub init"},
		},
		"no hub at all":              {[]string{"c1"}, 2, []string{"the hub is not named"}},
		"a token without an address": {[]string{"c1", "--token-file", tokenFile}, 2, []string{"--hub-apiserver"}},
		"an address that is no https URL": {
			[]string{"c1", "--token-file", tokenFile, "--hub-apiserver", "http://hub"},
			2,
			[]string{"not an https URL"},
		},
		"a wrong token": {
			[]string{"c1", "--hub-apiserver", good.Server, "--hub-token", "abcdef.0123456789abcdef"},
			1,
			[]string{"rejects the token", "hub token"},
		},
		"a CA that does not match": {
			append([]string{"c1", "--ca-file", wrongCA}, byToken...),
			6,
			[]string{"is not of the CA", "--ca-file"},
		},
		"a CA hash that does not match": {
			append([]string{"c1", "--hub-ca-hash", "sha256:" + strings.Repeat("0", 64)}, byToken...),
			6,
			[]string{"not the expected one", "was not sent"},
		},
		"a CA hash that is none": {
			append([]string{"c1", "--hub-ca-hash", "abc"}, byToken...),
			2,
			[]string{"cannot be a CA hash"},
		},
		"a name that another one holds": {
			[]string{"taken", "--hub-context", "hub"},
			6,
			[]string{`another agent holds the name "taken"`},
		},
		"accepting without the hub": {append([]string{"c1", "--accept"}, byToken...), 2, []string{"--hub-context"}},
		"a layout that does not exist": {
			[]string{"c1", "--hub-context", "hub", "--layout", "other"},
			2,
			[]string{"use compact or split"},
		},
		"a layout without narrow rights": {
			[]string{"c1", "--hub-context", "hub", "--layout", "split", "--agent-rights", "narrow"},
			2,
			[]string{"--layout split does not go with --agent-rights narrow"},
		},
		"a token file that is not there": {
			[]string{"c1", "--hub-apiserver", good.Server, "--token-file", filepath.Join(dir, "none")},
			2,
			[]string{"--token-file"},
		},
		"a hub that cannot be reached": {
			[]string{"c1", "--hub-apiserver", "https://127.0.0.1:1", "--token-file", tokenFile},
			1,
			[]string{"cannot be reached"},
		},
		"a feature gate that is not there": {
			[]string{"c1", "--hub-context", "hub", "--feature-gates", "Nope=true"},
			2,
			[]string{`no feature gate "Nope"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, append([]string{"join", "--context", "spoke", "--timeout", "20s"}, tc.words...)...)
			require.Equal(t, tc.code, got.code)
			for _, want := range tc.want {
				require.Contains(t, got.err, want)
			}
			require.Contains(t, got.err, "error: ")
			require.NotContains(t, got.err, good.Token)
			require.Empty(t, got.out)
			require.False(t, written(t, spoke))
		})
	}
}

func TestJoinByTokenTakesTheCAThatTheHubPublishesAndPinsIt(t *testing.T) {
	hub, spoke := harness.Shared(t, "hub"), harness.Fresh(t, "one")
	kubeconfig(t, hub, spoke)
	asHub(t, hub)
	made := newToken(t, "--context", "hub")
	words := []string{"join", "byname", "--context", "one", "--hub-apiserver", made.Server, "--token-file", "-", "--hub-ca-hash", made.CAHash, "--wait=false"}

	// What the cluster publishes about itself, as kubeadm does, is what others get to
	// know.
	published := spoke.Dynamic(t).Resource(configMaps).Namespace("kube-public")
	info, err := published.Get(t.Context(), "cluster-info", metav1.GetOptions{})
	require.NoError(t, err)
	info.Object["data"] = map[string]any{
		"kubeconfig": "apiVersion: v1\nkind: Config\nclusters: [{name: '', cluster: {server: 'https://one.example.com:6443', certificate-authority-data: Q0E=}}]\n"}
	_, err = published.Update(t.Context(), info, metav1.UpdateOptions{})
	require.NoError(t, err)
	dry := runWith(t, made.Token, append(words, "--dry-run")...)
	require.Zero(t, dry.code)
	require.Contains(t, dry.out, "url: https://one.example.com:6443")
	require.NotContains(t, dry.out+dry.err, made.Token)
	require.False(t, written(t, spoke))

	got := runWith(t, made.Token, words...)
	require.Zero(t, got.code)
	require.Contains(t, got.err, "CA pinned "+made.CAHash[:19], "the hash that was given is named")
	require.NotContains(t, got.out+got.err, made.Token)
	klusterlet, err := spoke.Dynamic(t).Resource(klusterlets).Get(t.Context(), "klusterlet", metav1.GetOptions{})
	require.NoError(t, err)
	addresses, _, _ := unstructured.NestedSlice(klusterlet.Object, "spec", "externalServerURLs")
	require.Equal(t, []any{map[string]any{"url": "https://one.example.com:6443"}}, addresses)
	secret, err := spoke.Dynamic(t).Resource(secrets).Namespace("open-cluster-management-agent").Get(t.Context(), "bootstrap-hub-kubeconfig", metav1.GetOptions{})
	require.NoError(t, err)
	text, _, _ := unstructured.NestedString(secret.Object, "data", "kubeconfig")
	raw, err := base64.StdEncoding.DecodeString(text)
	require.NoError(t, err)
	require.Contains(t, string(raw), "certificate-authority-data")
	require.Contains(t, string(raw), made.Token)

	again := runWith(t, newToken(t, "--context", "hub").Token, words...)
	require.Zero(t, again.code)
	require.Contains(t, again.out, "(unchanged)", "the token that works is kept")

	elsewhere := runWith(t, made.Token, append([]string{"join", "othername"}, words[2:]...)...)
	require.Equal(t, 6, elsewhere.code)
	require.Contains(t, elsewhere.err, "--rejoin")

	// No agent runs here.
	late := runsOut(
		t, made.Token, "timed out after %s waiting for the agent to use "+made.Server, "join", "byname", "--context", "one",
		"--hub-apiserver", made.Server, "--token-file", "-", "--hub-ca-hash", made.CAHash,
	)
	require.Contains(t, late.err, "not scheduled to a node")

	gone := run(t, "unjoin", "byname", "--context", "one", "--yes", "--timeout", "5m")
	require.Zero(t, gone.code)
	require.Zero(t, run(t, "unjoin", "byname", "--context", "one", "--yes").code)
	require.Contains(t, run(t, "unjoin", "byname", "--context", "one", "--yes").out, "unchanged")
	require.False(t, written(t, spoke))
}

// otherCA returns a CA that has signed nothing here.
func otherCA(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "other"},
		SerialNumber:          big.NewInt(1),
		NotAfter:              metav1.Now().AddDate(1, 0, 0),
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
