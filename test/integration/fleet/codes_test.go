// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// typist is what a person puts into a printed fix, and adds to its commands.
type typist struct {
	// instead are pairs of a placeholder and what it means here.
	instead []string
	// more ends a command of the plugin: no process runs on these clusters that a command could
	// wait for.
	more string
}

// mendedBy types the fix of a code, each of its commands, and waits until check no longer reports it.
func (p typist) mendedBy(t *testing.T, code, cause string, words ...string) {
	t.Helper()
	f := found(t, code, words...)
	require.Contains(t, f.Title+"; "+f.Cause, cause)
	for _, line := range strings.Split(f.Fix, "      and then ") {
		line, _, _ = strings.Cut(strings.NewReplacer(p.instead...).Replace(line), "      ")
		if strings.HasPrefix(line, "kubectl ocm ") {
			line += p.more
		}
		typeLine(t, line)
	}
	eventually(t, func() bool {
		_, still := looked(t, words...)[code]
		return !still
	}, patience, 500*time.Millisecond, "%s does not mend %s", f.Fix, code)
}

// TestEntriesOfAKubeconfigThatCannotBeUsedAreNamed breaks one entry of a kubeconfig after the other.
func TestEntriesOfAKubeconfigThatCannotBeUsedAreNamed(t *testing.T) {
	t.Parallel()
	hub := harness.Fresh(t, "hub")
	contexts(t, map[string]*harness.Cluster{"hub": hub})
	asHub(t, hub)
	folder, config := t.TempDir(), configOf(t)
	whole, err := clientcmd.LoadFromFile(config)
	require.NoError(t, err)
	write := func(name string, data []byte) string {
		t.Helper()
		require.NotEmpty(t, data, name)
		file := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(file, data, 0o600))
		return file
	}
	ca := write("ca.pem", hub.Config.CAData)
	certificate, key := write("cert.pem", whole.AuthInfos["hub"].ClientCertificateData), write("key.pem", whole.AuthInfos["hub"].ClientKeyData)
	token := hub.As(t, "default", "somebody").BearerToken
	old := "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"exp":1000000000}`)) + ".x"
	instead := []string{"--certificate-authority=<file>", "--certificate-authority=" + ca, "--client-certificate=<file>", "--client-certificate=" + certificate,
		"--client-key=<file>", "--client-key=" + key, "<token>", token}
	for cause, tc := range map[string]struct {
		spoil func(*clientcmdapi.Config)
		// fixed is false where the fix is no command.
		fixed bool
	}{
		`its user "nobody" is not in the kubeconfig`:  {func(c *clientcmdapi.Config) { c.Contexts["hub"].AuthInfo = "nobody" }, true},
		`its cluster "none" is not in the kubeconfig`: {func(c *clientcmdapi.Config) { c.Contexts["hub"].Cluster = "none" }, true},
		"does not verify its server": {func(c *clientcmdapi.Config) {
			c.Clusters["hub"].InsecureSkipTLSVerify, c.Clusters["hub"].CertificateAuthorityData = true, nil
		}, true},
		"the CA of its cluster cannot be read": {func(c *clientcmdapi.Config) {
			c.Clusters["hub"].CertificateAuthority, c.Clusters["hub"].CertificateAuthorityData = "/nosuch/ca", nil
		}, true},
		"a file of its user cannot be read: /nosuch/key": {func(c *clientcmdapi.Config) {
			c.AuthInfos["hub"] = &clientcmdapi.AuthInfo{ClientCertificate: certificate, ClientKey: "/nosuch/key"}
		}, true},
		"the token of its user expired": {func(c *clientcmdapi.Config) { c.AuthInfos["hub"] = &clientcmdapi.AuthInfo{Token: old} }, true},
		"the token of its user cannot be read: /nosuch/token": {func(c *clientcmdapi.Config) {
			c.AuthInfos["hub"] = &clientcmdapi.AuthInfo{TokenFile: "/nosuch/token"}
		}, false},
		"the program nosuch-login, which is not on PATH": {func(c *clientcmdapi.Config) {
			c.AuthInfos["hub"] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{Command: "nosuch-login", APIVersion: "client.authentication.k8s.io/v1",
				InteractiveMode: clientcmdapi.NeverExecInteractiveMode}}
		}, false},
	} {
		spoiled := whole.DeepCopy()
		tc.spoil(spoiled)
		require.NoError(t, clientcmd.WriteToFile(*spoiled, config))
		words := []string{"hub", "--context", "hub"}
		if tc.fixed {
			typist{instead: instead}.mendedBy(t, "OCM0101", cause, words...)
			continue
		}
		f := looked(t, words...)["OCM0101"]
		require.Contains(t, f.Cause, cause)
		require.NotEmpty(t, f.Fix)
	}
	require.NoError(t, clientcmd.WriteToFile(*whole, config))
	require.NotContains(t, looked(t, "hub", "--context", "hub"), "OCM0101")
}

// TestNamesThatHideOthersInKubeconfigsAreNamed reads two kubeconfigs that use the same names for two
// clusters. The files come from the environment, so nothing runs beside this test.
func TestNamesThatHideOthersInKubeconfigsAreNamed(t *testing.T) {
	hub, other := harness.Fresh(t, "hub"), harness.Fresh(t, "spoke")
	contexts(t, map[string]*harness.Cluster{"hub": hub})
	asHub(t, hub)
	first := configOf(t)
	config, err := clientcmd.LoadFromFile(first)
	require.NoError(t, err)
	config.Clusters["hub"].Server = other.Config.Host
	config.AuthInfos["hub"] = &clientcmdapi.AuthInfo{Token: "other"}
	config.Contexts["hub"].Namespace = "other"
	second := filepath.Join(t.TempDir(), "second")
	require.NoError(t, clientcmd.WriteToFile(*config, second))
	t.Setenv("KUBECONFIG", first+string(filepath.ListSeparator)+second)
	words := []string{"hub", "--context", "hub", "--kubeconfig", ""}
	for _, kind := range []string{"users", "clusters", "contexts"} { // the last of a code is told
		f := looked(t, words...)["OCM0102"]
		require.Contains(t, f.Title, fmt.Sprintf("%s and %s have different %s %q", first, second, kind, "hub"))
		require.Contains(t, f.Cause, first+" counts")
		typeLine(t, f.Fix)
	}
	require.NotContains(t, looked(t, words...), "OCM0102")
	left, err := clientcmd.LoadFromFile(second)
	require.NoError(t, err)
	require.Contains(t, left.Contexts, "hub-2")
}

// TestWhatAHubAdmitsByIsNamed spoils what a hub publishes, its join tokens, and the users of
// automatic acceptance.
func TestWhatAHubAdmitsByIsNamed(t *testing.T) {
	t.Parallel()
	hub, other := harness.Fresh(t, "hub"), harness.Fresh(t, "spoke")
	contexts(t, map[string]*harness.Cluster{"hub": hub})
	client := asHub(t, hub)
	check := []string{"hub", "--context", "hub"}
	p := typist{more: " --wait=false"}
	for _, code := range []string{"OCM0101", "OCM0213", "OCM0214", "OCM0215"} {
		require.NotContains(t, looked(t, check...), code)
	}

	info, err := client.Resource(configMaps).Namespace("kube-public").Get(t.Context(), "cluster-info", metav1.GetOptions{})
	require.NoError(t, err)
	text, _, _ := unstructured.NestedString(info.Object, "data", "kubeconfig")
	published, err := clientcmd.Load([]byte(text))
	require.NoError(t, err)
	published.Clusters[""].CertificateAuthorityData = other.Config.CAData
	raw, err := clientcmd.Write(*published)
	require.NoError(t, err)
	info.Object["data"] = map[string]any{"kubeconfig": string(raw)}
	info.SetLabels(nil) // of another program, so that hub init leaves it alone
	_, err = client.Resource(configMaps).Namespace("kube-public").Update(t.Context(), info, metav1.UpdateOptions{})
	require.NoError(t, err)
	p.mendedBy(t, "OCM0213", "the CA that the hub publishes did not issue the certificate of "+hub.Config.Host, check...)

	made := newToken(t, "--cluster", "late", "--context", "hub")
	patched(t, hub, secrets, "open-cluster-management", "join-token-"+made.ID, `{"data":{"expiration":"`+
		base64.StdEncoding.EncodeToString([]byte("2026-01-01T00:00:00Z"))+`"}}`)
	typist{}.mendedBy(t, "OCM0214", "the join token of cluster late expired", check...)
	bootstrap := object("v1", "Secret", "kube-system", "bootstrap-token-abcdef", map[string]any{"type": "bootstrap.kubernetes.io/token",
		"stringData": map[string]any{"token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true"}})
	bootstrap.SetLabels(map[string]string{"app": "cluster-manager"})
	_, err = client.Resource(secrets).Namespace("kube-system").Create(t.Context(), bootstrap, metav1.CreateOptions{})
	require.NoError(t, err)
	typist{more: " --yes"}.mendedBy(t, "OCM0214", "join token abcdef never expires", check...)
	lasting := object("v1", "Secret", "open-cluster-management", "lasting", map[string]any{"type": "kubernetes.io/service-account-token"})
	lasting.SetAnnotations(map[string]string{"kubernetes.io/service-account.name": "agent-registration-bootstrap"})
	_, err = client.Resource(secrets).Namespace("open-cluster-management").Create(t.Context(), lasting, metav1.CreateOptions{})
	require.NoError(t, err)
	typist{}.mendedBy(t, "OCM0214", "lasting holds a join token that never expires", check...)

	approvers := func(mode string, users ...string) {
		patched(t, hub, managers, "", "cluster-manager", fmt.Sprintf(`{"spec":{"registrationConfiguration":{"autoApproveUsers":["%s"],`+
			`"featureGates":[{"feature":"ManagedClusterAutoApproval","mode":%q}]}}}`, strings.Join(users, `","`), mode))
	}
	for cause, user := range map[string]string{
		"names are compared exactly":                 "ali*",
		"there is no serviceaccount default/nosuch":  "system:serviceaccount:default:nosuch",
		"there is no secret kube-system/bootstrap-t": "system:bootstrap:nosuch",
		"it is a group":                               "system:masters",
		"no user name is empty":                       "",
		"is system:serviceaccount:NAMESPACE:NAME":     "system:serviceaccount:nosuch",
		"is everyone; whoever reaches the API server": "system:anonymous",
	} {
		approvers("Enable", "alice", user, "system:serviceaccount:default:default")
		typist{}.mendedBy(t, "OCM0215", cause, check...)
	}
	approvers("Disable", "alice")
	p.mendedBy(t, "OCM0215", "1 user of automatic acceptance have no effect; the feature gate ManagedClusterAutoApproval is off", check...)
}

// TestWhatAnAgentJoinsByIsNamed spoils the rights of an agent that no node runs, its join token, and its proxies.
func TestWhatAnAgentJoinsByIsNamed(t *testing.T) {
	t.Parallel()
	const namespace = "open-cluster-management-agent"
	hub, spoke := harness.Fresh(t, "hub"), harness.Fresh(t, "spoke")
	contexts(t, map[string]*harness.Cluster{"hub": hub, "spoke": spoke})
	asHub(t, hub)
	require.Zero(t, run(t, "join", "cluster1", "--context", "spoke", "--hub-context", "hub", "--wait=false").code)
	check := []string{"spoke", "--context", "spoke"}
	require.NotContains(t, looked(t, check...), "OCM0411")
	require.NotContains(t, looked(t, check...), "OCM0412")
	agentRightsFaults(t, spoke)
	require.NoError(t, hub.Dynamic(t).Resource(secrets).Namespace("open-cluster-management").DeleteCollection(t.Context(), metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: "open-cluster-management.io/join-token"}))
	typist{more: " --wait=false"}.mendedBy(t, "OCM0411", "the hub rejects its join token", append(check, "--hub-context", "hub")...)

	client := spoke.Dynamic(t)
	secret, err := client.Resource(secrets).Namespace(namespace).Get(t.Context(), "bootstrap-hub-kubeconfig", metav1.GetOptions{})
	require.NoError(t, err)
	encoded, _, _ := unstructured.NestedString(secret.Object, "data", "kubeconfig")
	raw, err := base64.StdEncoding.DecodeString(encoded)
	require.NoError(t, err)
	config, err := clientcmd.Load(raw)
	require.NoError(t, err)
	reaches := func(server, proxy string) {
		t.Helper()
		config.Clusters["hub"].Server, config.Clusters["hub"].ProxyURL = server, proxy
		raw, err := clientcmd.Write(*config)
		require.NoError(t, err)
		patched(t, spoke, secrets, namespace, "bootstrap-hub-kubeconfig", `{"data":{"kubeconfig":"`+base64.StdEncoding.EncodeToString(raw)+`"}}`)
	}
	own, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "services"}).Namespace("default").
		Get(t.Context(), "kubernetes", metav1.GetOptions{})
	require.NoError(t, err)
	address, _, _ := unstructured.NestedString(own.Object, "spec", "clusterIP")
	sets := func(variables ...string) {
		t.Helper()
		var env []string
		for i := 0; i+1 < len(variables); i += 2 {
			env = append(env, fmt.Sprintf(`{"name":%q,"value":%q}`, variables[i], variables[i+1]))
		}
		body := `[{"op":"add","path":"/spec/template/spec/containers/0/env","value":[` + strings.Join(env, ",") + `]}]`
		_, err := client.Resource(deployments).Namespace(namespace).Patch(t.Context(), "klusterlet-agent", types.JSONPatchType, []byte(body), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	reaches("https://hub.example.com:6443", "")
	const proxy = "http://proxy.example.net:3128"
	p := typist{instead: []string{"<proxy>", proxy}}
	sets("HTTPS_PROXY", proxy)
	p.mendedBy(t, "OCM0412", "does not have "+address, check...)
	sets("HTTPS_PROXY", proxy, "NO_PROXY", ".example.com,"+address)
	p.mendedBy(t, "OCM0412", "excepts hub.example.com", check...)
	sets("HTTPS_PROXY", "http://127.0.0.1:3128", "NO_PROXY", address)
	p.mendedBy(t, "OCM0412", "names a loopback address", check...)
	sets("HTTPS_PROXY", "::", "NO_PROXY", address)
	p.mendedBy(t, "OCM0412", "the agent's proxy is no address", check...)
	sets("HTTP_PROXY", "http://me:secret@proxy.example.net:3128", "NO_PROXY", address)
	require.NotContains(t, looked(t, check...)["OCM0412"].Fix, "secret")
	p.mendedBy(t, "OCM0412", "has HTTP_PROXY and no HTTPS_PROXY", check...)
	sets()
	reaches("https://hub.example.com:6443", "http://localhost:3128")
	f := looked(t, append(check, "--hub-context", "hub")...)["OCM0412"]
	require.Equal(t, "the agent's proxy localhost:3128 is its own pod", f.Title)
	require.Equal(t, "kubectl ocm join cluster1 --context spoke --hub-context hub --proxy-url http://<proxy>:3128", f.Fix)
}
