// SPDX-License-Identifier: Apache-2.0

package serviceaccount_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	multiclusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/multicluster/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

const (
	toProfiles = "authentication.open-cluster-management.io/sync-to-clusterprofile"
	syncedFrom = "authentication.open-cluster-management.io/synced-from"
)

var (
	profiles = multiclusterv1alpha1.GroupVersion.WithResource("clusterprofiles")
	sets     = clusterv1beta2.GroupVersion.WithResource("managedclustersets")
	bindings = clusterv1beta2.GroupVersion.WithResource("managedclustersetbindings")
	events   = corev1.SchemeGroupVersion.WithResource("events")
)

// bind makes a set of the cluster, and a namespace that is bound to it.
func (p *place) bind(t *testing.T, namespace string) {
	t.Helper()
	set := object(sets.GroupVersion().String(), "ManagedClusterSet", "", p.cluster)
	set.Object["spec"] = map[string]any{"clusterSelector": map[string]any{"selectorType": "LabelSelector", "labelSelector": map[string]any{
		"matchLabels": map[string]any{"only": p.cluster},
	}}}
	apply(t, p.onHub, set)
	p.patch(t, p.onHub, clusters, reconcile.Key{Name: p.cluster}, `{"metadata":{"labels":{"only":"`+p.cluster+`"}}}`)
	apply(t, p.onHub, object("v1", "Namespace", "", namespace))
	t.Cleanup(func() {
		_ = p.onHub.Resource(sets).Delete(context.Background(), p.cluster, metav1.DeleteOptions{})
		_ = p.onHub.Resource(namespaces).Delete(context.Background(), namespace, metav1.DeleteOptions{})
	})
	binding := object(bindings.GroupVersion().String(), "ManagedClusterSetBinding", namespace, p.cluster)
	binding.Object["spec"] = map[string]any{"clusterSet": p.cluster}
	apply(t, p.onHub, binding)
}

// profile waits for the profile of the cluster, or until there is none.
func (p *place) profile(t *testing.T, namespace string, there bool) *unstructured.Unstructured {
	t.Helper()
	var found *unstructured.Unstructured
	var err error
	require.True(t, harness.Until(patience, func() bool {
		found, err = p.onHub.Resource(profiles).Namespace(namespace).Get(t.Context(), p.cluster, metav1.GetOptions{})
		return (err == nil) == there
	}), "%v", err)
	return found
}

// at returns a Secret, or nil.
func (p *place) at(t *testing.T, namespace, name string) *corev1.Secret {
	t.Helper()
	s, err := typed.Get[corev1.Secret](t.Context(), p.onHub, secrets, namespace, name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	return s
}

// copied waits until a copy holds what a Secret holds.
func (p *place) copied(t *testing.T, namespace string, of *corev1.Secret) *corev1.Secret {
	t.Helper()
	var s *corev1.Secret
	require.True(t, harness.Until(patience, func() bool {
		s = p.at(t, namespace, p.cluster+"-"+of.Name)
		return s != nil && len(s.Data) == 2 && bytes.Equal(s.Data["token"], of.Data["token"]) && bytes.Equal(s.Data["ca.crt"], of.Data["ca.crt"])
	}), "it is not copied: %v", stringer(func() any { return s }))
	return s
}

// gone waits until the copy of the account web is gone.
func (p *place) gone(t *testing.T, namespace string) {
	t.Helper()
	name := p.cluster + "-web"
	require.True(t, harness.Until(patience, func() bool { return p.at(t, namespace, name) == nil }), "%s/%s stays", namespace, name)
}

// share sets the label of a ManagedServiceAccount, or removes it.
func (p *place) share(t *testing.T, name, value string) {
	t.Helper()
	p.patch(t, p.onHub, asked, reconcile.Key{Namespace: p.cluster, Name: name}, `{"metadata":{"labels":{"`+toProfiles+`":`+value+`}}}`)
}

func TestTokensAreCopiedBesideProfiles(t *testing.T) {
	t.Parallel()
	p := start(t).join(t, "shared")
	p.bind(t, "readers")
	p.bind(t, "others")
	p.ask(t, "web", `{"rotation":{"validity":"10m"}}`)
	_, token := p.reported(t, "web")
	profile := p.profile(t, "readers", true)
	p.share(t, "web", `"true"`)
	s := p.copied(t, "readers", token)
	require.EqualValues(t, "Opaque", s.Type)
	require.Equal(t, map[string]string{syncedFrom: "shared-web"}, s.Labels)
	controls := true
	require.Equal(t, []metav1.OwnerReference{{
		APIVersion: "multicluster.x-k8s.io/v1alpha1", Kind: "ClusterProfile", Name: p.cluster, UID: profile.GetUID(), Controller: &controls,
	}}, s.OwnerReferences)
	p.copied(t, "others", token)

	// What somebody changes is put back, what somebody deletes comes back, and a new token is copied.
	at := reconcile.Key{Namespace: "readers", Name: "shared-web"}
	p.patch(t, p.onHub, secrets, at, `{"data":{"token":"eA==","more":"eA=="}}`)
	p.copied(t, "readers", token)
	require.NoError(t, p.onHub.Resource(secrets).Namespace("readers").Delete(t.Context(), "shared-web", metav1.DeleteOptions{}))
	p.copied(t, "readers", token)
	require.NoError(t, p.onHub.Resource(secrets).Namespace(p.cluster).Delete(t.Context(), "web", metav1.DeleteOptions{}))
	token = p.renewed(t, "web", token)
	p.copied(t, "readers", token)
	p.copied(t, "others", token)

	// Without the label they go, and with the account; with the profile goes only that one.
	p.share(t, "web", "null")
	p.gone(t, "readers")
	p.share(t, "web", `"true"`)
	p.copied(t, "readers", token)
	p.copied(t, "others", token)
	require.NoError(t, p.onHub.Resource(bindings).Namespace("readers").Delete(t.Context(), p.cluster, metav1.DeleteOptions{}))
	p.profile(t, "readers", false)
	p.gone(t, "readers")
	p.copied(t, "others", token)
	require.NoError(t, p.onHub.Resource(asked).Namespace(p.cluster).Delete(t.Context(), "web", metav1.DeleteOptions{}))
	p.gone(t, "others")
}

// Nobody gets a token by writing a profile, or by a name.
func TestTokensGoNowhereElse(t *testing.T) {
	t.Parallel()
	p := start(t).join(t, "kept")
	p.bind(t, "bound")
	p.ask(t, "web", `{"rotation":{}}`)
	p.ask(t, "taken", `{"rotation":{}}`)
	p.ask(t, "quiet", `{"rotation":{}}`)
	_, web := p.reported(t, "web")
	p.reported(t, "taken")
	p.reported(t, "quiet")

	// A profile that somebody wrote, in a namespace that is bound to nothing.
	apply(t, p.onHub, object("v1", "Namespace", "", "forger"))
	t.Cleanup(func() {
		_ = p.onHub.Resource(namespaces).Delete(context.Background(), "forger", metav1.DeleteOptions{})
	})
	forged := p.profile(t, "bound", true).DeepCopy()
	unstructured.RemoveNestedField(forged.Object, "metadata", "uid")
	forged.SetNamespace("forger")
	forged.SetResourceVersion("")
	forged.SetManagedFields(nil)
	_, err := p.onHub.Resource(profiles).Namespace("forger").Create(t.Context(), forged, metav1.CreateOptions{})
	require.NoError(t, err)

	// A Secret of somebody else with the name of a copy, with the label and without.
	for name, labels := range map[string]string{"kept-taken": "{}", "kept-quiet": `{"` + syncedFrom + `":"kept-quiet"}`} {
		u := object("v1", "Secret", "bound", name)
		marks := map[string]string{}
		require.NoError(t, json.Unmarshal([]byte(labels), &marks))
		u.SetLabels(marks)
		u.Object["data"] = map[string]any{"mine": "eA=="}
		apply(t, p.onHub, u)
	}
	// A Secret of the namespace of the cluster that no agent wrote.
	own := object("v1", "Secret", p.cluster, "import")
	own.Object["data"] = map[string]any{"token": "c2VjcmV0"}
	apply(t, p.onHub, own)
	p.ask(t, "import", `{"rotation":{}}`)
	for _, name := range []string{"taken", "quiet", "import", "web"} {
		p.share(t, name, `"true"`)
	}
	p.copied(t, "bound", web)
	for _, name := range []string{"taken", "quiet"} {
		require.True(t, harness.Until(patience, func() bool { return p.isSaid(t, "bound", "Secret bound/kept-"+name+" is no copy of it") }), name)
		require.Equal(t, map[string][]byte{"mine": []byte("x")}, p.at(t, "bound", "kept-"+name).Data)
	}
	require.Nil(t, p.at(t, "bound", "kept-import"))
	list, err := p.onHub.Resource(secrets).Namespace("forger").List(t.Context(), metav1.ListOptions{LabelSelector: syncedFrom})
	require.NoError(t, err)
	require.Empty(t, list.Items, "a profile that somebody wrote has no copies")

	// A copy that is no longer marked is not removed.
	p.patch(t, p.onHub, secrets, reconcile.Key{Namespace: "bound", Name: "kept-web"}, `{"metadata":{"labels":{"`+syncedFrom+`":null}}}`)
	require.True(t, harness.Until(patience, func() bool { return p.isSaid(t, "bound", "Secret bound/kept-web is no copy of it") }))
	p.share(t, "web", "null")
	require.NotNil(t, p.at(t, "bound", "kept-web"))
}

// isSaid reports whether an Event of a namespace has a text.
func (p *place) isSaid(t *testing.T, namespace, text string) bool {
	t.Helper()
	list, err := p.onHub.Resource(events).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, e := range list.Items {
		message, _, _ := unstructured.NestedString(e.Object, "message")
		if e.Object["reason"] == "CredentialNotCopied" && strings.Contains(message, text) {
			return true
		}
	}
	return false
}

// A program finds a cluster by its profile, and lists its namespaces with the token that the
// plugin, as its credential program, gets from the hub.
func TestAProgramReachesAClusterByItsProfile(t *testing.T) {
	t.Parallel()
	p := start(t).join(t, "reached")
	address, err := json.Marshal(map[string]any{"spec": map[string]any{"managedClusterClientConfigs": []any{map[string]any{
		"url": p.spoke.Config.Host, "caBundle": base64.StdEncoding.EncodeToString(p.spoke.Config.CAData),
	}}}})
	require.NoError(t, err)
	p.patch(t, p.onHub, clusters, reconcile.Key{Name: p.cluster}, string(address))
	p.bind(t, "programs")
	p.ask(t, "lister", `{"rotation":{}}`)
	_, token := p.reported(t, "lister")
	p.share(t, "lister", `"true"`)
	p.copied(t, "programs", token)
	binding := object(rbacv1.SchemeGroupVersion.String(), "ClusterRoleBinding", "", "lister-"+p.cluster)
	binding.Object["roleRef"] = map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": "view"}
	binding.Object["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "namespace": p.namespace, "name": "lister"}}
	apply(t, p.onSpoke, binding)
	t.Cleanup(func() {
		_ = p.onSpoke.Resource(rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings")).Delete(context.Background(), binding.GetName(), metav1.DeleteOptions{})
	})

	var config []byte
	require.True(t, harness.Until(patience, func() bool {
		config = p.kubeconfig(t, "programs", "lister")
		return config != nil
	}), "the profile has no way of access")
	rest, err := clientcmd.RESTConfigFromKubeConfig(config)
	require.NoError(t, err)
	client, err := dynamic.NewForConfig(rest)
	require.NoError(t, err)
	var list *unstructured.UnstructuredList
	require.True(t, harness.Until(patience, func() bool { // the right may not count yet
		list, err = client.Resource(namespaces).List(t.Context(), metav1.ListOptions{})
		return !apierrors.IsForbidden(err)
	}))
	require.NoError(t, err)
	require.NotEmpty(t, list.Items)

	// A person who runs it is told what is missing, and never sees a token.
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), harness.Program(t, "plugins/kubectl-ocm"), "credential", "--managed-serviceaccount", "absent", "-n", "programs",
		"--kubeconfig", rest.ExecProvider.Args[len(rest.ExecProvider.Args)-1])
	cmd.Env = append(os.Environ(), `KUBERNETES_EXEC_INFO={"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",`+
		`"spec":{"interactive":false,"cluster":{"server":"https://x","config":{"clusterName":"reached"}}}}`)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.Error(t, err)
	require.Empty(t, out)
	require.Contains(t, stderr.String(), "Secret programs/reached-absent does not exist")
	require.Contains(t, stderr.String(), "kubectl label managedserviceaccount absent -n reached "+toProfiles+"=true")
}

// kubeconfig returns what a program makes of the profile: the cluster of the entry of this hub, and
// the plugin as the credential program. It returns nil while there is no entry.
func (p *place) kubeconfig(t *testing.T, namespace, account string) []byte {
	t.Helper()
	ways, _, err := unstructured.NestedSlice(p.profile(t, namespace, true).Object, "status", "accessProviders")
	require.NoError(t, err)
	if len(ways) == 0 {
		return nil
	}
	own := ways[0].(map[string]any)
	require.Equal(t, "open-cluster-management", own["name"])
	hub := filepath.Join(t.TempDir(), "hub.kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*p.hubKubeconfig(), hub))
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": []any{map[string]any{"name": "c", "cluster": own["cluster"]}},
		"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "c", "user": "u"}}},
		"users": []any{map[string]any{"name": "u", "user": map[string]any{"exec": map[string]any{
			"apiVersion": "client.authentication.k8s.io/v1", "provideClusterInfo": true, "interactiveMode": "Never",
			"command": harness.Program(t, "plugins/kubectl-ocm"),
			"args":    []any{"credential", "--managed-serviceaccount=" + account, "--namespace=" + namespace, "--kubeconfig", hub},
		}}}},
	})
	require.NoError(t, err)
	return raw
}

// hubKubeconfig returns the administrator's access to the hub.
func (s *scene) hubKubeconfig() *clientcmdapi.Config {
	c := s.hub.Config
	out := clientcmdapi.NewConfig()
	out.Clusters["hub"] = &clientcmdapi.Cluster{Server: c.Host, CertificateAuthorityData: c.CAData}
	out.AuthInfos["hub"] = &clientcmdapi.AuthInfo{ClientCertificateData: c.CertData, ClientKeyData: c.KeyData, Token: c.BearerToken}
	out.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub", AuthInfo: "hub"}
	out.CurrentContext = "hub"
	return out
}
