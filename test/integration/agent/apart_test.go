// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// The ServiceAccounts of an agent whose halves are processes of their own.
const registrationAccount, workAccount = "klusterlet-registration-sa", "klusterlet-work-sa"

var applieds = schema.GroupVersionResource{Group: "work.open-cluster-management.io", Version: "v1", Resource: "appliedmanifestworks"}

// parts are the objects of an agent without a Klusterlet: what its cluster holds for its pods,
// and what the managed cluster holds. The rights of registration belong to the ServiceAccount
// that is given, all others to that of works.
func parts(t *testing.T, registration string, o config.Options) (pods, managed []*unstructured.Unstructured) {
	t.Helper()
	o.Image = "ghcr.io/kubectl-ocm/ocm-agent:test"
	objects, err := config.Objects(o)
	require.NoError(t, err)
	for _, u := range objects {
		if strings.Contains(u.GetName(), "klusterlet-registration:") {
			if subjects, found, _ := unstructured.NestedSlice(u.Object, "subjects"); found {
				subjects[0].(map[string]any)["name"] = registration
				require.NoError(t, unstructured.SetNestedSlice(u.Object, subjects, "subjects"))
			}
		}
		switch kind := u.GetKind(); {
		case kind == "Secret" || kind == "Role" || kind == "RoleBinding":
			pods = append(pods, u)
		case kind == "Namespace":
			pods, managed = append(pods, u), append(managed, u)
		case strings.HasPrefix(kind, "ClusterRole") && u.GetName() != "kubectl-ocm:klusterlet":
			managed = append(managed, u)
			if strings.HasSuffix(u.GetName(), ":addon-management") {
				pods = append(pods, u)
			}
		}
	}
	definitions, err := crd.Agent()
	require.NoError(t, err)
	return pods, append(managed, definitions...)
}

func applyAll(t *testing.T, client dynamic.Interface, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, u := range objects {
		apply(t, client, u)
	}
}

// mount writes the files of a secret at a path of a pod. Each is replaced as a whole, as a
// kubelet does.
func mount(t *testing.T, dir, at string, data map[string][]byte) {
	t.Helper()
	at = filepath.Join(dir, at)
	require.NoError(t, os.MkdirAll(at, 0o700))
	for name, content := range data {
		next := filepath.Join(at, "..next")
		require.NoError(t, os.WriteFile(next, content, 0o600))
		require.NoError(t, os.Rename(next, filepath.Join(at, name)))
	}
}

// managedAccess returns the kubeconfig with which a hosted agent reaches its managed cluster,
// and the token that it refers to.
func (s *spoke) managedAccess(t *testing.T, context string) map[string][]byte {
	t.Helper()
	cfg := s.As(t, operatorv1.NamespaceAgent, workAccount)
	return map[string][]byte{"token": []byte(cfg.BearerToken), "kubeconfig": fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: %[1]s
contexts: [{name: %[1]s, context: {cluster: cluster, user: user}}]
clusters: [{name: cluster, cluster: {server: '%[2]s', certificate-authority-data: %[3]s}}]
users: [{name: user, user: {tokenFile: token}}]
`, context, cfg.Host, base64.StdEncoding.EncodeToString(cfg.CAData))}
}

func TestHostedAgentManagesAnotherClusterThanItsOwn(t *testing.T) {
	t.Parallel()
	h, s, host := newAddonHub(t), newSpoke(t), newSpoke(t)
	pods, managed := parts(t, workAccount, config.Options{ClusterName: "hosted", BootstrapKubeconfig: h.bootstrap(t)})
	applyAll(t, host.client, pods)
	applyAll(t, s.client, managed)
	s.node(t, "n1", "2", false)
	dir := t.TempDir()
	mount(t, dir, "spoke/config", s.managedAccess(t, "context"))
	args := []string{
		"agent", "--spoke-cluster-name=hosted", "--agent-id=uid-of-klusterlet", "--spoke-kubeconfig=/spoke/config/kubeconfig",
		"--terminate-on-files=/spoke/config/kubeconfig", "--bootstrap-kubeconfig=/spoke/bootstrap/kubeconfig",
		"--spoke-external-server-urls=https://hosted.example.com:6443", "--workload-source-driver=kube",
		"--workload-source-config=/spoke/hub-kubeconfig/kubeconfig", "--status-sync-interval=60s", "--kube-api-qps=50", "--kube-api-burst=100",
	}
	a := host.startAs(t, workAccount, dir, args...)
	h.join(t, "hosted")

	// What the hub sees is the managed cluster, and what it sends arrives there.
	h.deliver(t, "hosted", "first")
	s.applied(t, "first-2")
	s.claim(t, "id.k8s.io", "of-the-managed-cluster", nil)
	await(t, func() bool {
		c := h.cluster(t.Context(), "hosted")
		cpu := c.Status.Capacity["cpu"]
		return cpu.String() == "2" && len(c.Status.ClusterClaims) == 1 && c.Status.ClusterClaims[0].Value == "of-the-managed-cluster"
	})
	require.NotEqual(t, s.Config.CAData, host.Config.CAData)
	require.Equal(t, []clusterv1.ClientConfig{{URL: "https://hosted.example.com:6443", CABundle: s.Config.CAData}},
		h.cluster(t.Context(), "hosted").Spec.ManagedClusterClientConfigs)
	_, err := host.client.Resource(configMaps).Namespace("default").Get(t.Context(), "first-1", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	list, err := s.client.Resource(applieds).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	agentID, _, _ := unstructured.NestedString(list.Items[0].Object, "spec", "agentID")
	require.Equal(t, "uid-of-klusterlet", agentID)

	// What belongs to the agent itself is where it runs.
	require.Equal(t, "hosted", string(host.secret(t.Context(), "hub-kubeconfig-secret")["cluster-name"]))
	none, err := s.client.Resource(secrets).Namespace(operatorv1.NamespaceAgent).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, none.Items)
	require.True(t, host.locked(t, "klusterlet-agent-lock"))
	require.False(t, s.locked(t, "klusterlet-agent-lock"))

	h.testAddonsOfAHostedAgent(t, s, host)
	s.testNewToken(t, h, a)
	s.testHostedHalves(t, h, host, a)
}

// locked reports whether a process of the agent has this lease.
func (s *spoke) locked(t *testing.T, name string) bool {
	t.Helper()
	u, err := s.client.Resource(leases).Namespace(operatorv1.NamespaceAgent).Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false
	}
	require.NoError(t, err)
	holder, _, _ := unstructured.NestedString(u.Object, "spec", "holderIdentity")
	return holder != ""
}

// testAddonsOfAHostedAgent checks that the credential of an add-on is kept where it runs, and
// the request for it where the agent runs.
func (h *hub) testAddonsOfAHostedAgent(t *testing.T, s, host *spoke) {
	t.Helper()
	for name, annotations := range map[string]any{"plain": nil, "beside": map[string]any{addonv1alpha1.AnnotationHostingClusterName: "host"}} {
		apply(t, h.client, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterAddOn",
			"metadata": map[string]any{"namespace": "hosted", "name": name, "annotations": annotations}, "spec": map[string]any{}}})
		h.setAddon(t, "hosted", name, func(a *addonv1alpha1.ManagedClusterAddOn) {
			a.Status.Registrations = []addonv1alpha1.RegistrationConfig{kubeClient()}
		})
		h.awaitAddonRequest(t, "hosted", name, addonv1alpha1.KubeAPIServerSigner)
		await(t, func() bool { return len(host.pending(t, name)) == 1 })
		require.Empty(t, s.pending(t, name))
		h.grant(t, "hosted", name)
	}
	s.awaitSecret(t, addonSpace, "plain-hub-kubeconfig")
	host.awaitSecret(t, addonSpace, "beside-hub-kubeconfig")
	require.Nil(t, host.secretIn(t.Context(), addonSpace, "plain-hub-kubeconfig"))
	require.Nil(t, s.secretIn(t.Context(), addonSpace, "beside-hub-kubeconfig"))
}

// testNewToken replaces the token of a hosted agent on its managed cluster.
func (s *spoke) testNewToken(t *testing.T, h *hub, a *agent) {
	t.Helper()
	// With its ServiceAccount, the old token ends.
	require.NoError(t, s.client.Resource(accounts).Namespace(operatorv1.NamespaceAgent).Delete(t.Context(), workAccount, metav1.DeleteOptions{}))
	mount(t, a.root, "spoke/config", map[string][]byte{"token": s.managedAccess(t, "context")["token"]})
	h.deliver(t, "hosted", "second")
	s.applied(t, "second-2")
	require.True(t, a.running(), "a new token needs no new process")
}

// testHostedHalves replaces the kubeconfig of the managed cluster, which ends the process. Its two
// halves, as processes of their own, go on under the same identity.
func (s *spoke) testHostedHalves(t *testing.T, h *hub, host *spoke, a *agent) {
	t.Helper()
	next := s.managedAccess(t, "next")
	mount(t, a.root, "spoke/config", next)
	await(t, func() bool { return !a.running() }, "the process goes on with the old kubeconfig")
	require.Equal(t, 0, a.cmd.ProcessState.ExitCode())
	a.logged(t, "A watched file changed", "/spoke/config/kubeconfig")
	require.False(t, host.locked(t, "klusterlet-agent-lock"), "the lock is given back")

	for _, args := range [][]string{
		{"registration", "--bootstrap-kubeconfig=/spoke/bootstrap/kubeconfig"},
		{"work", "--agent-id=uid-of-klusterlet"},
	} {
		pod := t.TempDir()
		mount(t, pod, "spoke/config", next)
		mount(t, pod, "spoke/hub-kubeconfig", host.secret(t.Context(), "hub-kubeconfig-secret"))
		host.startAs(t, workAccount, pod, append(args, "--spoke-cluster-name=hosted",
			"--spoke-kubeconfig=/spoke/config/kubeconfig", "--terminate-on-files=/spoke/config/kubeconfig")...)
	}
	h.condition(t, "hosted", clusterv1.ConditionAvailable, metav1.ConditionUnknown, clusterv1.ReasonManagedClusterLeaseUpdateStopped)
	h.awaitCondition(t, "hosted", clusterv1.ConditionAvailable, metav1.ConditionTrue)
	h.deliver(t, "hosted", "third")
	s.applied(t, "third-2")
	require.NoError(t, h.client.Resource(works).Namespace("hosted").Delete(t.Context(), "first", metav1.DeleteOptions{}))
	s.awaitUnapplied(t, "first-1")
	require.Len(t, h.requestsOf(t, "hosted"), 3, "one for the cluster and one for each add-on")
}

// awaitUnapplied waits until the ConfigMap of a deleted work is gone.
func (s *spoke) awaitUnapplied(t *testing.T, name string) {
	t.Helper()
	await(t, func() bool {
		_, err := s.client.Resource(configMaps).Namespace("default").Get(t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func TestRegistrationAndWorkAreTwoProcesses(t *testing.T) {
	t.Parallel()
	h, s := newHub(t), newSpoke(t)
	// Without the role admin, which can read secrets.
	pods, managed := parts(t, registrationAccount, config.Options{ClusterName: "apart", BootstrapKubeconfig: h.bootstrap(t), NarrowRights: true})
	applyAll(t, s.client, append(pods, managed...))
	apply(t, s.client, object(t, &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: "configmaps-by-works", Labels: map[string]string{operatorv1.LabelAggregateToWork: "true"}},
		Rules:      []rbacv1.PolicyRule{rule("", "configmaps", "", "get", "list", "watch", "create", "update", "patch", "delete")},
	}))
	registration := s.startAs(t, registrationAccount, t.TempDir(), "registration", "--spoke-cluster-name=apart",
		"--bootstrap-kubeconfig=/spoke/bootstrap/kubeconfig", "--kube-api-qps=50", "--kube-api-burst=100")
	h.join(t, "apart")
	kept := s.secret(t.Context(), "hub-kubeconfig-secret")

	dir := t.TempDir()
	mount(t, dir, "spoke/hub-kubeconfig", kept)
	startWorks := func() *agent {
		return s.startAs(t, workAccount, dir, "work", "--spoke-cluster-name=apart", "--workload-source-driver=kube",
			"--workload-source-config=/spoke/hub-kubeconfig/kubeconfig", "--agent-id=uid-of-klusterlet",
			"--terminate-on-files=/spoke/hub-kubeconfig/kubeconfig", "--status-sync-interval=60s",
			"--kube-api-qps=50", "--kube-api-burst=100", "--hub-kube-api-qps=50", "--hub-kube-api-burst=100")
	}
	w := startWorks()
	h.deliver(t, "apart", "first")
	s.applied(t, "first-2")
	await(t, func() bool { return h.applied(t, "apart") == 1 })
	require.True(t, s.locked(t, "registration-agent-lock"))
	require.True(t, s.locked(t, "work-agent-lock"))
	require.False(t, s.locked(t, "klusterlet-agent-lock"))
	client, err := dynamic.NewForConfig(s.As(t, operatorv1.NamespaceAgent, workAccount))
	require.NoError(t, err)
	_, err = client.Resource(secrets).Namespace(operatorv1.NamespaceAgent).Get(t.Context(), "hub-kubeconfig-secret", metav1.GetOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)

	// The next certificate: the registration goes on in its process, and so do the works, under
	// the same identity.
	first := h.requestsOf(t, "apart")[0].GetName()
	require.NoError(t, s.client.Resource(secrets).Namespace(operatorv1.NamespaceAgent).Delete(t.Context(), "hub-kubeconfig-secret", metav1.DeleteOptions{}))
	h.approve(t, h.awaitRequest(t, "apart", first).GetName())
	next := s.awaitSecret(t, operatorv1.NamespaceAgent, "hub-kubeconfig-secret")
	require.NotEqual(t, kept["tls.crt"], next["tls.crt"])
	require.Equal(t, kept["kubeconfig"], next["kubeconfig"])
	mount(t, dir, "spoke/hub-kubeconfig", next)
	h.deliver(t, "apart", "second")
	await(t, func() bool { return h.applied(t, "apart") == 2 })
	require.True(t, registration.running())
	require.True(t, w.running())

	t.Logf("measured: registration %s; works %s", registration.memory(t), w.memory(t))

	// Another hub kubeconfig ends the process of the works, and nothing that they made.
	mount(t, dir, "spoke/hub-kubeconfig", map[string][]byte{"kubeconfig": append(bytes.Clone(next["kubeconfig"]), "# again\n"...)})
	await(t, func() bool { return !w.running() }, "the works go on with the old kubeconfig")
	require.Equal(t, 0, w.cmd.ProcessState.ExitCode())
	require.False(t, s.locked(t, "work-agent-lock"), "the lock is given back")
	startWorks()
	require.NoError(t, h.client.Resource(works).Namespace("apart").Delete(t.Context(), "first", metav1.DeleteOptions{}))
	s.awaitUnapplied(t, "first-1")
	s.applied(t, "second-1")
	require.True(t, apimeta.IsStatusConditionTrue(h.cluster(t.Context(), "apart").Status.Conditions, clusterv1.ConditionAvailable))
}
