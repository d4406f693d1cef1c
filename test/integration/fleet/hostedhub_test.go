// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	confighub "github.com/kubectl-ocm/kubectl-ocm/config/hub"
	addonv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1beta1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/inpod"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// hostedHub is a hub on the cluster far whose process runs on the cluster hosting, which has a hub
// of its own.
type hostedHub struct {
	hosting, far *harness.Cluster
	// c1 joins it.
	c1          *harness.Cluster
	name        string
	kube, there kubernetes.Interface
	// port is where the API server of far reaches the webhooks.
	port int
}

func TestAHostedHub(t *testing.T) {
	t.Parallel()
	h := &hostedHub{
		hosting: harness.FreshWithNode(t, "hosting", map[string]string{"ocm-hub": harness.Program(t, "controllers/ocm-hub")}),
		far:     harness.Fresh(t, "far"), name: "east",
	}
	h.c1 = harness.FreshWithNode(t, "c1", map[string]string{"ocm-agent": harness.Program(t, "controllers/ocm-agent")})
	kubeconfig(t, h.hosting, h.far, h.c1)
	var err error
	h.kube, err = kubernetes.NewForConfig(h.hosting.Config)
	require.NoError(t, err)
	h.there, err = kubernetes.NewForConfig(h.far.Config)
	require.NoError(t, err)
	h.port = h.forward(t)
	before := inventory(t, h.far)
	defer h.logs(t)
	require.Zero(t, run(t, "hub", "init", "--context", "hosting", "--timeout", "5m").code)
	hostingBefore := inventory(t, h.hosting)

	t.Run("it waits for what is missing and says so", h.waits)
	t.Run("it runs, with the rights of its own account", h.runs)
	t.Run("an agent joins it, works and leaves", h.joins)
	t.Run("what others change is put back", h.repairs)
	t.Run("the plugin says the truth", h.plugin)
	t.Run("others are refused", h.refused)
	t.Run("a hub that is away is not harmed", h.away)
	t.Run("it is removed from both clusters", func(t *testing.T) {
		h.delete(t, h.name)
		h.gone(t, h.name)
		asBefore(t, h.far, before, "namespaces/c1")
		asBefore(t, h.hosting, hostingBefore, "namespaces/"+h.name, "rolebindings/"+h.name+confighub.HostingRole)
	})
	require.Zero(t, run(t, "hub", "status", "--context", "hosting").code, "the hub of the cluster itself runs all the time")
	require.Zero(t, run(t, "hub", "clean", "--context", "hosting", "--yes", "--timeout", "5m").code)
}

// create creates a ClusterManager whose webhooks are reached through the forwarded port.
func (h *hostedHub) create(t *testing.T, name, mode string) {
	t.Helper()
	webhook := map[string]any{"address": "127.0.0.1", "port": int64(h.port)}
	_, err := h.hosting.Dynamic(t).Resource(clusterManagers).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operator.open-cluster-management.io/v1", "kind": "ClusterManager", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"deployOption": map[string]any{"mode": mode, "hosted": map[string]any{
			"registrationWebhookConfiguration": webhook, "workWebhookConfiguration": webhook,
		}}},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func (h *hostedHub) delete(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, h.hosting.Dynamic(t).Resource(clusterManagers).Delete(t.Context(), name, metav1.DeleteOptions{}))
}

func (h *hostedHub) gone(t *testing.T, name string) {
	t.Helper()
	require.True(t, harness.Until(patience, func() bool {
		_, err := h.hosting.Dynamic(t).Resource(clusterManagers).Get(t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}))
}

// await waits for a condition whose message has the text.
func (h *hostedHub) await(t *testing.T, name, kind string, status metav1.ConditionStatus, reason, text string) {
	t.Helper()
	var last *metav1.Condition
	require.True(t, harness.Until(patience, func() bool {
		cm, err := typed.Get[operatorv1.ClusterManager](t.Context(), h.hosting.Dynamic(t), clusterManagers, "", name)
		require.NoError(t, err)
		last = apimeta.FindStatusCondition(cm.Status.Conditions, kind)
		return last != nil && last.Status == status && last.Reason == reason && strings.Contains(last.Message, text)
	}), "%+v", &last)
}

func (h *hostedHub) isUp(t *testing.T) {
	t.Helper()
	h.await(t, h.name, operatorv1.ConditionApplied, metav1.ConditionTrue, operatorv1.ReasonClusterManagerApplied, "")
	h.await(t, h.name, operatorv1.ConditionProgressing, metav1.ConditionFalse, operatorv1.ReasonClusterManagerUpToDate, "")
	h.await(t, h.name, operatorv1.ConditionHubRegistrationDegraded, metav1.ConditionFalse, operatorv1.ReasonRegistrationFunctional, "")
	h.await(t, h.name, operatorv1.ConditionHubPlacementDegraded, metav1.ConditionFalse, operatorv1.ReasonPlacementFunctional, "")
}

// prepare makes a namespace in which the operator may run a hub.
func (h *hostedHub) prepare(t *testing.T, name string) {
	t.Helper()
	_, err := h.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = h.kube.RbacV1().RoleBindings(name).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: confighub.HostingRole},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: confighub.HostingRole},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: confighub.Namespace, Name: confighub.Name}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// open writes the kubeconfig of a hub.
func (h *hostedHub) open(t *testing.T, name, content string) {
	t.Helper()
	secrets := h.kube.CoreV1().Secrets(name)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: operatorv1.SecretExternalHubKubeconfig}, Data: map[string][]byte{"kubeconfig": []byte(content)},
	}
	_, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = secrets.Create(t.Context(), secret, metav1.CreateOptions{})
	}
	require.NoError(t, err)
}

// access returns the kubeconfig of a file with its content in it.
func access(t *testing.T, file string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(file)
	require.NoError(t, err)
	require.NoError(t, clientcmdapi.FlattenConfig(config))
	raw, err := clientcmd.Write(*config)
	require.NoError(t, err)
	return string(raw)
}

func (h *hostedHub) waits(t *testing.T) {
	applied := func(reason, text string) {
		t.Helper()
		h.await(t, h.name, operatorv1.ConditionApplied, metav1.ConditionFalse, reason, text)
	}
	h.create(t, h.name, "Hosted")
	applied(operatorv1.ReasonRuntimeResourceApplyFailed, confighub.AllowHosting(h.name))
	h.prepare(t, h.name)
	applied(operatorv1.ReasonHubResourceApplyFailed, "Secret east/external-hub-kubeconfig is missing")
	h.open(t, h.name, "a: [")
	applied(operatorv1.ReasonHubResourceApplyFailed, "Secret east/external-hub-kubeconfig: ")
	h.open(t, h.name, h.astray(t))
	applied(operatorv1.ReasonHubResourceApplyFailed, "The hub cannot be reached: ")
	cm, err := typed.Get[operatorv1.ClusterManager](t.Context(), h.hosting.Dynamic(t), clusterManagers, "", h.name)
	require.NoError(t, err)
	require.Empty(t, cm.Finalizers, "nothing is protected yet")
}

// astray returns a kubeconfig that leads to a port on which nothing answers.
func (h *hostedHub) astray(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return strings.ReplaceAll(access(t, h.far.Kubeconfig), h.far.Config.Host, "https://"+listener.Addr().String())
}

// joins lets an agent join the hub, apply a work and leave; nothing of it is on the hosting cluster.
func (h *hostedHub) joins(t *testing.T) {
	require.Zero(t, run(t, "join", "c1", "--context", "c1", "--hub-context", "far", "--accept", "--timeout", "5m").code)
	_, err := h.hosting.Dynamic(t).Resource(clusters).Get(t.Context(), "c1", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "it is on the hub: %v", err)
	require.Zero(t, runWith(t, configMap, "work", "apply", "web", "-f", "-", "-c", "c1", "--context", "far", "--wait", "--timeout", "5m").code)
	_, err = h.c1.Dynamic(t).Resource(configMaps).Namespace("default").Get(t.Context(), "greeting", metav1.GetOptions{})
	require.NoError(t, err)
	require.Zero(t, run(t, "unjoin", "c1", "--context", "c1", "--hub-context", "far", "--yes", "--force", "--timeout", "5m").code)
	_, err = h.far.Dynamic(t).Resource(clusters).Get(t.Context(), "c1", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "it has left: %v", err)
}

func (h *hostedHub) runs(t *testing.T) {
	h.open(t, h.name, access(t, h.far.Kubeconfig))
	h.isUp(t)
	ctx := t.Context()
	// Admission and conversion answer at the address; the API server learns a moment later that it has to ask.
	far := h.far.Dynamic(t)
	until(t, func() error {
		_, err := far.Resource(clusters).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster", "metadata": map[string]any{"name": "kube-c1"},
		}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), "admission webhook") {
			return fmt.Errorf("admission does not refuse a reserved name: %w", err)
		}
		return nil
	})
	until(t, func() error { // it is stored in the older version
		_, err := far.Resource(addonv1beta1.GroupVersion.WithResource("clustermanagementaddons")).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": addonv1beta1.GroupVersion.String(), "kind": "ClusterManagementAddOn", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{},
		}}, metav1.CreateOptions{})
		return err
	})
	// Nothing of it is here but its process.
	require.Zero(t, len(h.pods(t, operatorv1.NamespaceHub)))
	pods := h.pods(t, h.name)
	require.Len(t, pods, 1)
	for _, volume := range pods[0].Spec.Volumes {
		require.True(t, volume.Secret == nil || volume.Secret.SecretName == "cluster-manager-kubeconfig", volume.Name)
	}
	require.False(t, *pods[0].Spec.AutomountServiceAccountToken)
	secret, err := h.kube.CoreV1().Secrets(h.name).Get(ctx, "cluster-manager-kubeconfig", metav1.GetOptions{})
	require.NoError(t, err)
	review, err := h.there.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: string(secret.Data["token"])},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, "system:serviceaccount:open-cluster-management:cluster-manager", review.Status.User.Username)
	for _, key := range []string{"expiration", "serviceaccount_namespace", "serviceaccount_name", "serviceaccount_uid"} {
		require.NotEmpty(t, secret.Data[key], key)
	}
	cm, err := typed.Get[operatorv1.ClusterManager](ctx, h.hosting.Dynamic(t), clusterManagers, "", h.name)
	require.NoError(t, err)
	require.Equal(t, []string{operatorv1.FinalizerClusterManager}, cm.Finalizers)
	require.Len(t, cm.Status.Generations, 1)
	require.Equal(t, "east", cm.Status.Generations[0].Namespace)
	require.Contains(t, cm.Status.RelatedResources, operatorv1.RelatedResourceMeta{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions", Name: "managedclusters.cluster.open-cluster-management.io",
	})
	for _, line := range strings.Split(h.logOf(t, &pods[0]), "\n") {
		require.NotContains(t, line, "forbidden")
	}
}

// pods returns the pods of a namespace that are not on their way out.
func (h *hostedHub) pods(t *testing.T, namespace string) []corev1.Pod {
	t.Helper()
	list, err := h.kube.CoreV1().Pods(namespace).List(context.Background(), metav1.ListOptions{})
	require.NoError(t, err)
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

func (h *hostedHub) logOf(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	text, err := h.kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(context.Background())
	require.NoError(t, err)
	return string(text)
}

func (h *hostedHub) logs(t *testing.T) {
	if !t.Failed() {
		return
	}
	for _, namespace := range []string{operatorv1.NamespaceOperator, h.name} {
		for _, pod := range h.pods(t, namespace) {
			t.Logf("pod %s/%s %s\n%s", namespace, pod.Name, pod.Status.Phase, h.logOf(t, &pod))
		}
	}
}

func (h *hostedHub) repairs(t *testing.T) {
	ctx := t.Context()
	here, far := h.hosting.Dynamic(t), h.far.Dynamic(t)
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	roles := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	require.NoError(t, far.Resource(roles).Delete(ctx, "cluster-manager", metav1.DeleteOptions{}))
	require.NoError(t, here.Resource(schema.GroupVersionResource{Version: "v1", Resource: "services"}).Namespace(h.name).
		Delete(ctx, confighub.WorkService, metav1.DeleteOptions{}))
	_, err := here.Resource(deployments).Namespace(h.name).Patch(ctx, confighub.Name, types.MergePatchType,
		[]byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	_, err = far.Resource(clusterManagers).Patch(ctx, confighub.Name, types.MergePatchType,
		[]byte(`{"spec":{"registrationImagePullSpec":"example.com/other"}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	// Nobody removes a hub by accident: its process does not obey, and goes on.
	require.NoError(t, far.Resource(clusterManagers).Delete(ctx, confighub.Name, metav1.DeleteOptions{}))
	require.True(t, harness.Until(patience, func() bool {
		_, err := far.Resource(roles).Get(ctx, "cluster-manager", metav1.GetOptions{})
		_, err2 := h.kube.CoreV1().Services(h.name).Get(ctx, confighub.WorkService, metav1.GetOptions{})
		d, err3 := h.kube.AppsV1().Deployments(h.name).Get(ctx, confighub.Name, metav1.GetOptions{})
		m, err4 := typed.Get[operatorv1.ClusterManager](ctx, far, clusterManagers, "", confighub.Name)
		return err == nil && err2 == nil && err3 == nil && err4 == nil && *d.Spec.Replicas == 1 && d.Status.AvailableReplicas == 1 &&
			m.Spec.RegistrationImagePullSpec != "example.com/other"
	}))
	h.isUp(t)
	_, err = far.Resource(clusters).List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
}

func (h *hostedHub) plugin(t *testing.T) {
	status := run(t, "hub", "status", "--context", "far", "--wait")
	require.Zero(t, status.code)
	require.Contains(t, status.out, "its process runs on another cluster")
	checked := run(t, "check", "--context", "far")
	require.Contains(t, checked.out, "its process runs on another cluster, as clustermanager/east there says")
	require.NotContains(t, checked.out, "nothing runs the hub")
	for _, words := range [][]string{{"hub", "clean", "--yes", "--force"}, {"hub", "init"}, {"hub", "upgrade"}} {
		refused := run(t, append(words, "--context", "far")...)
		require.Equal(t, 6, refused.code)
		require.Contains(t, refused.err, "kubectl delete clustermanager east")
	}
	refused := run(t, "hub", "clean", "--yes", "--force", "--context", "hosting")
	require.Equal(t, 6, refused.code)
	require.Contains(t, refused.err, "kubectl delete clustermanager east --context hosting")
	// What runs the hub counts, not what its ClusterManager says.
	const said = `{"metadata":{"annotations":{"` + operatorv1.AnnotationHostedBy + `":%s}}}`
	patched(t, h.hosting, managers, "", "cluster-manager", fmt.Sprintf(said, `"other/1"`))
	require.NotContains(t, run(t, "hub", "status", "--context", "hosting").out, "its process runs on another cluster")
	patched(t, h.hosting, managers, "", "cluster-manager", fmt.Sprintf(said, "null"))
}

func (h *hostedHub) refused(t *testing.T) {
	applied := func(name, reason, text string) {
		t.Helper()
		h.await(t, name, operatorv1.ConditionApplied, metav1.ConditionFalse, reason, text)
		h.delete(t, name)
		h.gone(t, name)
	}
	h.create(t, "other", "Default")
	applied("other", "ClusterManagerNotServed", "must have spec.deployOption.mode Hosted")
	h.create(t, "kube-public", "Hosted")
	applied("kube-public", "ClusterManagerNotServed", "choose another name")
	h.prepare(t, "west")
	h.open(t, "west", access(t, h.far.Kubeconfig))
	h.create(t, "west", "Hosted")
	h.await(t, "west", operatorv1.ConditionApplied, metav1.ConditionFalse, operatorv1.ReasonHubResourceApplyFailed, "is a hub already")
	h.open(t, "west", access(t, h.hosting.Kubeconfig))
	applied("west", operatorv1.ReasonHubResourceApplyFailed, "leads to this very cluster")
	require.NoError(t, h.kube.CoreV1().Namespaces().Delete(t.Context(), "west", metav1.DeleteOptions{}))
	h.isUp(t)
}

func (h *hostedHub) away(t *testing.T) {
	before := h.pods(t, h.name)
	require.Len(t, before, 1)
	h.open(t, h.name, h.astray(t))
	h.await(t, h.name, operatorv1.ConditionApplied, metav1.ConditionFalse, operatorv1.ReasonHubResourceApplyFailed, "The hub cannot be reached: ")
	now := h.pods(t, h.name)
	require.Len(t, now, 1)
	require.Equal(t, before[0].UID, now[0].UID)
	h.open(t, h.name, access(t, h.far.Kubeconfig))
	h.isUp(t)
}

// forward makes the webhook port of the hub's pod one that stays, as a load balancer does, and
// returns it. The process node tells a pod its ports by an environment variable.
func (h *hostedHub) forward(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer client.Close()
				server, err := net.Dial("tcp", "127.0.0.1:"+h.podPort())
				if err != nil {
					return
				}
				defer server.Close()
				go func() {
					_, _ = io.Copy(server, client)
					_ = server.Close()
				}()
				_, _ = io.Copy(client, server)
			}()
		}
	}()
	return listener.Addr().(*net.TCPAddr).Port
}

// podPort returns the local port of the webhooks of the newest process of the hub.
func (h *hostedHub) podPort() string {
	environments, _ := filepath.Glob("/proc/[0-9]*/environ")
	found, newest := "", 0
	for _, file := range environments {
		raw, err := os.ReadFile(file)
		env := "\x00" + string(raw)
		if err != nil || !strings.Contains(env, "\x00"+inpod.EnvNamespace+"="+h.name+"\x00") || !strings.Contains(env, filepath.Dir(h.hosting.Kubeconfig)) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		_, ports, _ := strings.Cut(env, "\x00"+inpod.EnvPorts+"=")
		ports, _, _ = strings.Cut(ports, "\x00")
		for entry := range strings.SplitSeq(ports, ",") {
			if port, ok := strings.CutPrefix(entry, strconv.Itoa(confighub.WebhookPort)+":"); ok && pid > newest {
				found, newest = port, pid
			}
		}
	}
	return found
}
