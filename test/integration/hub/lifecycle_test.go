// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/teardown"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/memory"
)

// hubPID returns the PID of the hub's process, found by its program.
func hubPID(t testing.TB, s *scene) int {
	t.Helper()
	found := 0
	require.True(t, eventually(func() bool {
		found = 0
		dirs, _ := filepath.Glob("/proc/[0-9]*")
		for _, dir := range dirs {
			line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
			env, also := os.ReadFile(filepath.Join(dir, "environ"))
			if err != nil || also != nil || !strings.Contains(string(line), "ocm-hub\x00run") || !strings.Contains(string(env), s.Playground.Dir) {
				continue
			}
			found, _ = strconv.Atoi(filepath.Base(dir))
		}
		return found != 0
	}))
	return found
}

// held returns the memory of the hub's process.
func held(t testing.TB, s *scene) memory.Usage {
	t.Helper()
	u, err := memory.Of(hubPID(t, s))
	require.NoError(t, err)
	return u
}

func TestTheWholeLifeOfAHub(t *testing.T) {
	t.Parallel()
	s := ownHub(t)
	for _, name := range []string{"c1", "c2"} {
		s.joined(t, s.register(t, name, "a"), name)
		// There are no renewals from here on, however long the rest takes.
		require.NoError(t, patch(s.dyn, name, `{"spec":{"leaseDurationSeconds":3600}}`))
	}
	t.Logf("measured: with 2 clusters %s", held(t, s))

	t.Run("its own objects are repaired", func(t *testing.T) { s.testRepair(t) })
	t.Run("gates change without a new process", func(t *testing.T) { s.testGates(t) })
	t.Run("metrics are shown to who may read them", func(t *testing.T) { s.testMetrics(t) })
	t.Run("limits of connections change without a new process", func(t *testing.T) { s.testLimits(t) })
	t.Run("the gate NetworkPolicies limits what the process reaches", func(t *testing.T) { s.testPolicy(t) })
	t.Run("a restart writes nothing", func(t *testing.T) { s.testRestart(t) })
	t.Run("a split hub is not joined", func(t *testing.T) { s.testSplit(t) })
	t.Logf("measured: at the end %s", held(t, s))
	t.Run("a removal that skips the APIs leaves all objects of users, which a later hub takes over", func(t *testing.T) { s.testKept(t) })
	t.Run("removing the ClusterManager removes what the process made", func(t *testing.T) { s.testRemoval(t) })
	t.Run("the rest goes by its label", func(t *testing.T) { s.testClean(t) })
}

func (s *scene) testRepair(t *testing.T) {
	ctx := context.Background()
	const name = "managedclustervalidators.admission.cluster.open-cluster-management.io"
	api := s.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	live, err := api.Get(ctx, name, metav1.GetOptions{})
	require.NoError(t, err)
	live.Webhooks[0].Rules = nil
	_, err = api.Update(ctx, live, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.True(t, eventually(func() bool {
		live, err := api.Get(ctx, name, metav1.GetOptions{})
		return err == nil && len(live.Webhooks[0].Rules) == 1
	}))
	require.NoError(t, s.kube.CoreV1().Secrets(hub.ComponentNamespace).Delete(ctx, operatorv1.SecretWorkWebhookServingCert, metav1.DeleteOptions{}))
	require.True(t, eventually(func() bool {
		_, err := s.kube.CoreV1().Secrets(hub.ComponentNamespace).Get(ctx, operatorv1.SecretWorkWebhookServingCert, metav1.GetOptions{})
		return err == nil
	}))
	require.NoError(t, s.kube.CoreV1().Secrets(hub.ComponentNamespace).Delete(ctx, operatorv1.SecretSigner, metav1.DeleteOptions{}))
	require.True(t, eventually(func() bool {
		_, err := s.kube.CoreV1().Secrets(hub.ComponentNamespace).Get(ctx, operatorv1.SecretSigner, metav1.GetOptions{})
		return err == nil
	}))
	for _, name := range []string{operatorv1.ServiceRegistrationWebhook, operatorv1.ServiceWorkWebhook} {
		require.NoError(t, s.kube.CoreV1().Services(hub.Namespace).Delete(ctx, name, metav1.DeleteOptions{}))
	}
	addons, err := s.kube.CoreV1().Services(hub.Namespace).Patch(
		ctx, operatorv1.ServiceAddOnWebhook, types.MergePatchType, []byte(`{"spec":{"selector":{"app":"other"}}}`),
		metav1.PatchOptions{},
	)
	require.NoError(t, err)
	require.NoError(t, s.kube.CoreV1().ServiceAccounts(hub.ComponentNamespace).Delete(ctx, hub.AddOnManager, metav1.DeleteOptions{}))
	soon(t, func() bool {
		for _, name := range []string{operatorv1.ServiceRegistrationWebhook, operatorv1.ServiceWorkWebhook, operatorv1.ServiceAddOnWebhook} {
			service, err := s.kube.CoreV1().Services(hub.Namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil || service.Spec.Selector["app"] != hub.Name || service.UID == "" {
				return false
			}
		}
		_, err := s.kube.CoreV1().ServiceAccounts(hub.ComponentNamespace).Get(ctx, hub.AddOnManager, metav1.GetOptions{})
		return err == nil
	}, "Services and the account of the add-on manager are put back: %s", &addons.Name)
	before, err := s.kube.CoreV1().Namespaces().Get(ctx, hub.ComponentNamespace, metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, s.kube.CoreV1().Namespaces().Delete(ctx, hub.ComponentNamespace, metav1.DeleteOptions{}))
	soon(t, func() bool {
		now, err := s.kube.CoreV1().Namespaces().Get(ctx, hub.ComponentNamespace, metav1.GetOptions{})
		if err != nil || now.UID == before.UID {
			return false
		}
		_, err = s.kube.CoreV1().Secrets(hub.ComponentNamespace).Get(ctx, operatorv1.SecretSigner, metav1.GetOptions{})
		return err == nil
	}, "the namespace of the certificates is put back with them")
	s.awaitHub(t)
	settled(t, func() error { return create(s.dyn, cluster("admitted")) }) // admission works after it
	require.NoError(t, s.dyn.Resource(clusters).Delete(ctx, "admitted", metav1.DeleteOptions{}))
}

func (s *scene) testGates(t *testing.T) {
	before := hubPID(t, s)
	ctx := context.Background()
	set := func(body string) {
		_, err := s.dyn.Resource(managers).Patch(ctx, hub.Name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	set(`{"spec":{"registrationConfiguration":{"autoApproveUsers":["system:serviceaccount:open-cluster-management:agent-registration-bootstrap"],
		"featureGates":[{"feature":"ManagedClusterAutoApproval","mode":"Enable"},{"feature":"NoSuchGate","mode":"Enable"}]}}}`)
	require.True(t, eventually(func() bool {
		cm, err := typed.Get[operatorv1.ClusterManager](ctx, s.dyn, managers, "", hub.Name)
		require.NoError(t, err)
		c := apimeta.FindStatusCondition(cm.Status.Conditions, operatorv1.ConditionValidFeatureGates)
		return c != nil && c.Status == metav1.ConditionFalse && strings.Contains(c.Message, "NoSuchGate")
	}))
	token := s.joinToken(t, "auto", false)
	settled(t, func() error { return create(token.dyn, cluster("auto")) })
	csr, key := agentRequest(t, token.kube, "auto", "a")
	s.issued(t, csr.Name, key)
	s.await(t, "auto", "is accepted by itself", conditionIs(clusterv1.ConditionHubAccepted, metav1.ConditionTrue, ""))
	reached(t, func() error { return create(s.dyn, cluster("by-hand")) })
	s.accept(t, "auto", false)
	s.await(t, "auto", "stays denied", conditionIs(clusterv1.ConditionHubAccepted, metav1.ConditionFalse, clusterv1.ReasonHubClusterAdminDenied))
	require.False(t, s.get(t, "by-hand").Spec.HubAcceptsClient, "its creator is not on the list")
	require.Equal(t, before, hubPID(t, s))
	set(`{"spec":{"registrationConfiguration":null}}`)
	for _, name := range []string{"auto", "by-hand"} {
		require.NoError(t, s.dyn.Resource(clusters).Delete(ctx, name, metav1.DeleteOptions{}))
		s.await(t, name, "is gone", func(mc *clusterv1.ManagedCluster) bool { return mc == nil })
	}
}

func (s *scene) testMetrics(t *testing.T) {
	ctx := context.Background()
	// Through the API server's proxy the caller's token does not arrive: the
	// answer is 401, and health needs none.
	pods, err := s.kube.CoreV1().Pods(hub.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + hub.Name})
	require.NoError(t, err)
	get := func(path string) ([]byte, error) {
		return s.kube.CoreV1().RESTClient().Get().Namespace(hub.Namespace).Resource("pods").Name("https:" + pods.Items[0].Name + ":8443").
			SubResource("proxy").Suffix(path).DoRaw(ctx)
	}
	raw, err := get("readyz")
	require.NoError(t, err)
	require.Equal(t, "ok\n", string(raw))
	_, err = get("metrics")
	require.True(t, apierrors.IsUnauthorized(err), "%v", err)

	reader, err := s.kube.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "metrics-reader"}, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = s.kube.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: reader.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: reader.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "scraper"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	code, _ := s.scrape(t, s.As(t, "default", "passer-by").BearerToken)
	require.Equal(t, http.StatusForbidden, code)
	code, _ = s.scrape(t, "no token of this cluster")
	require.Equal(t, http.StatusUnauthorized, code)
	token, body := s.As(t, "default", "scraper").BearerToken, ""
	require.True(t, eventually(func() bool {
		code, body = s.scrape(t, token)
		return code == http.StatusOK && strings.Contains(body, `ocm_clusters{state="available"} 2`)
	}), "%s", body)
	require.Contains(t, body, `ocm_cluster_lease_age_seconds_count 2`)
	require.Contains(t, body, `ocm_manifestworks{state="deleting"} 0`)
	require.Contains(t, body, `ocm_manifestwork_deletion_age_seconds 0`)
	require.Contains(t, body, `ocm_manifestworkreplicaset_clusters{state="selected"} 0`)
	require.Contains(t, body, `ocm_cluster_certificate_expiry_timestamp_seconds `)
	require.Contains(t, body, `ocm_serving_certificate_expiry_timestamp_seconds{name="cluster-manager-work-webhook.open-cluster-management.svc"}`)
	require.Contains(t, body, `workqueue_adds_total{name="cluster.accept"}`)
	require.Contains(t, body, `rest_client_requests_total{`)
	require.NotContains(t, body, token)

	s.work(t, "default", "held", -1)
	require.NoError(t, s.dyn.Resource(works).Namespace("default").Delete(ctx, "held", metav1.DeleteOptions{}))
	require.True(t, eventually(func() bool {
		_, body = s.scrape(t, token)
		return strings.Contains(body, `ocm_manifestworks{state="deleting"} 1`) && !strings.Contains(body, "ocm_manifestwork_deletion_age_seconds 0\n")
	}), "%s", body)
	s.letGo(t, works, "default", "held")
}

// portOf returns the address of a port of the hub's process.
func (s *scene) portOf(t testing.TB, port int) string {
	t.Helper()
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", hubPID(t, s)))
	require.NoError(t, err)
	found := regexp.MustCompile(fmt.Sprintf(`OCM_PORTS=[^\x00]*%d:(\d+)`, port)).FindSubmatch(env)
	require.NotNil(t, found)
	return "127.0.0.1:" + string(found[1])
}

// scrape reads the metrics of the hub's process with a token.
func (s *scene) scrape(t testing.TB, token string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "https://"+s.portOf(t, 8443)+"/metrics", nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // it signed its certificate itself
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body)
}

func (s *scene) testRestart(t *testing.T) {
	before := map[string]string{}
	for _, name := range []string{"c1", "c2"} {
		mc := s.get(t, name)
		role, err := s.kube.RbacV1().ClusterRoles().Get(context.Background(), clusterv1.RolePrefixManagedCluster+name, metav1.GetOptions{})
		require.NoError(t, err)
		before[name] = mc.ResourceVersion + " " + role.ResourceVersion
	}
	s.scale(t, 0)
	whole := s.rob(t)
	s.scale(t, 1)
	whole()
	s.awaitHub(t)
	a := s.register(t, "after", "a")
	a.renew(t, "after", 0)
	for name, versions := range before {
		mc := s.get(t, name)
		role, err := s.kube.RbacV1().ClusterRoles().Get(context.Background(), clusterv1.RolePrefixManagedCluster+name, metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, versions, mc.ResourceVersion+" "+role.ResourceVersion)
	}
}

// rob removes, while no hub runs, things whose absence leaves no trace in the metadata of
// an object, and returns a function that waits until all of it is back.
func (s *scene) rob(t *testing.T) (whole func()) {
	ctx := context.Background()
	looks := map[string]func() (string, error){}
	bundles := regexp.MustCompile(`caBundle:[A-Za-z0-9+/=]+`)
	take := func(resource schema.GroupVersionResource, name, patch string, fields ...string) {
		look := func() (string, error) {
			u, err := s.dyn.Resource(resource).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			value, _, _ := unstructured.NestedFieldNoCopy(u.Object, fields...)
			// The authority is new as well: its key is removed with the namespace.
			return bundles.ReplaceAllString(fmt.Sprint(value), "caBundle:some"), nil
		}
		before, err := look()
		require.NoError(t, err)
		_, err = s.dyn.Resource(resource).Patch(ctx, name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
		require.NoError(t, err)
		after, err := look()
		require.NoError(t, err)
		require.NotEqual(t, before, after, name)
		looks[name] = func() (string, error) {
			now, err := look()
			if err == nil && now != before {
				err = fmt.Errorf("%s is %s", name, now)
			}
			return now, err
		}
	}
	validating := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	take(
		validating, "manifestworkvalidators.admission.work.open-cluster-management.io",
		`[{"op":"remove","path":"/webhooks/0/clientConfig/caBundle"}]`, "webhooks",
	)
	take(validating, "managedclustersetbindingvalidators.admission.cluster.open-cluster-management.io", `[{"op":"remove","path":"/webhooks/0/rules"}]`, "webhooks")
	take(
		definitions, "managedclusteraddons.addon.open-cluster-management.io",
		`[{"op":"remove","path":"/spec/conversion/webhook/clientConfig/caBundle"}]`, "spec", "conversion",
	)
	take(
		definitions, "placements.cluster.open-cluster-management.io",
		`[{"op":"remove","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/tolerations"}]`,
		"spec", "versions",
	)
	take(
		rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings"), clusterv1.RolePrefixManagedCluster+"c1",
		`[{"op":"remove","path":"/subjects"}]`, "subjects",
	)
	// Objects that an installer created and the process needs: the namespace with its
	// rights, certificates and account, and Services.
	remove := func(resource schema.GroupVersionResource, namespace, name string) {
		api := s.dyn.Resource(resource).Namespace(namespace)
		before, err := api.Get(ctx, name, metav1.GetOptions{})
		require.NoError(t, err)
		if namespace != hub.ComponentNamespace {
			require.NoError(t, api.Delete(ctx, name, metav1.DeleteOptions{}))
		}
		looks[resource.Resource+" "+name] = func() (string, error) {
			now, err := api.Get(ctx, name, metav1.GetOptions{})
			if err == nil && now.GetUID() == before.GetUID() {
				err = errors.New("it is the old one")
			}
			return "", err
		}
	}
	core := schema.GroupVersion{Version: "v1"}
	remove(core.WithResource("serviceaccounts"), hub.ComponentNamespace, hub.AddOnManager)
	remove(core.WithResource("secrets"), hub.ComponentNamespace, operatorv1.SecretSigner)
	remove(core.WithResource("configmaps"), hub.ComponentNamespace, operatorv1.ConfigMapCABundle)
	remove(rbacv1.SchemeGroupVersion.WithResource("rolebindings"), hub.ComponentNamespace, hub.ComponentsRole)
	remove(core.WithResource("namespaces"), "", hub.ComponentNamespace)
	for _, name := range []string{hub.RegistrationService, hub.WorkService, hub.AddonService, hub.PlacementService} {
		remove(core.WithResource("services"), hub.Namespace, name)
	}
	soon(t, func() bool {
		_, err := s.dyn.Resource(core.WithResource("namespaces")).Get(ctx, hub.ComponentNamespace, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, "the namespace of the certificates does not go")
	return func() {
		for name, look := range looks {
			var err error
			soon(t, func() bool { _, err = look(); return err == nil }, "%s was not put back: %v", name, &err)
		}
	}
}

func (s *scene) testSplit(t *testing.T) {
	ctx := context.Background()
	own, err := s.kube.AppsV1().Deployments(hub.Namespace).Get(ctx, hub.Name, metav1.GetOptions{})
	require.NoError(t, err)
	s.scale(t, 0)
	split := own.DeepCopy()
	split.ObjectMeta = metav1.ObjectMeta{Namespace: hub.ComponentNamespace, Name: "cluster-manager-registration-controller"}
	zero := int32(0)
	split.Spec.Replicas = &zero
	split, err = s.kube.AppsV1().Deployments(hub.ComponentNamespace).Create(ctx, split, metav1.CreateOptions{})
	require.NoError(t, err)
	// The Deployment controller overwrites the status, so the test only writes that one
	// replica runs.
	one := int32(1)
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(tick):
				d, err := s.kube.AppsV1().Deployments(hub.ComponentNamespace).Get(ctx, split.Name, metav1.GetOptions{})
				if err == nil {
					d.Status.Replicas, d.Status.AvailableReplicas, d.Status.ReadyReplicas = one, one, one
					_, _ = s.kube.AppsV1().Deployments(hub.ComponentNamespace).UpdateStatus(ctx, d, metav1.UpdateOptions{})
				}
			}
		}
	}()
	body := []byte(`{"spec":{"replicas":1}}`)
	_, err = s.kube.AppsV1().Deployments(hub.Namespace).Patch(ctx, hub.Name, types.MergePatchType, body, metav1.PatchOptions{})
	require.NoError(t, err)
	require.True(t, eventually(func() bool {
		cm, err := typed.Get[operatorv1.ClusterManager](ctx, s.dyn, managers, "", hub.Name)
		if err != nil {
			return false
		}
		c := apimeta.FindStatusCondition(cm.Status.Conditions, operatorv1.ConditionHubRegistrationDegraded)
		return c != nil && c.Status == metav1.ConditionTrue && c.Reason == "SplitDeploymentsRunning"
	}))
	close(stop)
	require.NoError(t, s.kube.AppsV1().Deployments(hub.ComponentNamespace).Delete(ctx, split.Name, metav1.DeleteOptions{}))
	s.awaitHub(t)
}

func (s *scene) testRemoval(t *testing.T) {
	ctx := context.Background()
	s.work(t, "c1", "held", -1)
	require.NoError(t, s.dyn.Resource(managers).Delete(ctx, hub.Name, metav1.DeleteOptions{}))
	require.True(t, eventually(func() bool {
		cm, err := typed.Get[operatorv1.ClusterManager](ctx, s.dyn, managers, "", hub.Name)
		if err != nil {
			return false
		}
		c := apimeta.FindStatusCondition(cm.Status.Conditions, operatorv1.ConditionProgressing)
		return c != nil && c.Reason == "ClusterManagerTerminating" && strings.Contains(c.Message, "c1")
	}), "the wait for an agent is a condition")
	hooks, err := s.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, hooks.Items, "admission goes first")
	s.blockWorks(t)
	s.letGo(t, works, "c1", "held")
	require.True(t, eventually(func() bool {
		_, err := s.dyn.Resource(managers).Get(ctx, hub.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}))
	s.leftovers(t, []string{"clustermanagers.operator.open-cluster-management.io"})
	require.Equal(t, []string{hub.Name}, s.policies(t), "that of the installer")
	// Creating it again needs no installer.
	s.createManager(t)
	s.awaitHub(t)
	s.removeManager(t)
}

func (s *scene) createManager(t *testing.T) {
	t.Helper()
	_, err := s.dyn.Resource(managers).Create(context.Background(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": operatorv1.GroupVersion.String(),
		"kind":       "ClusterManager",
		"metadata":   map[string]any{"name": hub.Name},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// removeManager deletes the ClusterManager and waits until it is gone.
func (s *scene) removeManager(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	require.NoError(t, s.dyn.Resource(managers).Delete(ctx, hub.Name, metav1.DeleteOptions{}))
	soon(t, func() bool {
		_, err := s.dyn.Resource(managers).Get(ctx, hub.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, "the hub does not go")
}

// blockWorks makes admission of works again, which nobody answers, and waits until the removal has
// found it.
func (s *scene) blockWorks(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	const name = "manifestworkvalidators.admission.work.open-cluster-management.io"
	api := s.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err := api.Create(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: name, AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/")},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{workv1.GroupName}, APIVersions: []string{"*"}, Resources: []string{"manifestworks"},
				},
			}},
		}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	soon(t, func() bool {
		_, err := api.Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, "the removal does not look again")
}

// leftovers checks that only the named definitions are left.
func (s *scene) leftovers(t *testing.T, want []string) {
	t.Helper()
	ctx := context.Background()
	definitions, err := s.dyn.Resource(definitionsResource).List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	var got []string
	for _, d := range definitions.Items {
		got = append(got, d.GetName())
	}
	require.Equal(t, want, got)
	roles, err := s.kube.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{LabelSelector: clusterv1.LabelClusterName})
	require.NoError(t, err)
	require.Empty(t, roles.Items)
	bindings, err := s.kube.RbacV1().RoleBindings("").List(ctx, metav1.ListOptions{LabelSelector: clusterv1.LabelClusterName})
	require.NoError(t, err)
	require.Empty(t, bindings.Items)
	for _, name := range []string{operatorv1.SecretSigner, operatorv1.SecretRegistrationWebhookServingCert} {
		_, err := s.kube.CoreV1().Secrets(hub.ComponentNamespace).Get(ctx, name, metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err))
	}
	_, err = s.kube.CoreV1().Namespaces().Get(ctx, hub.ComponentNamespace, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "the namespace of the certificates goes with them: %v", err)
}

// testClean removes what is left while another writer always writes first.
func (s *scene) testClean(t *testing.T) {
	config, process := faults.Count(s.Config)
	var mu sync.Mutex
	contested := map[string]bool{}
	process.Fail(func(_ string, r *http.Request) error {
		mu.Lock()
		defer mu.Unlock()
		if r.Method != http.MethodDelete || contested[r.URL.Path] {
			return nil
		}
		contested[r.URL.Path] = true
		return apierrors.NewConflict(schema.GroupResource{}, r.URL.Path, errors.New("Precondition failed: ResourceVersion"))
	})
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	_, err = teardown.Hub(t.Context(), client, teardown.HubOptions{Patience: time.Minute, Progress: func(line string) { t.Log(line) }})
	require.NoError(t, err)
	require.Greater(t, len(contested), 10)
	s.gone(t)
}

// gone checks that nothing of a hub is left.
func (s *scene) gone(t *testing.T) {
	t.Helper()
	s.leftovers(t, nil)
	ctx := context.Background()
	for _, name := range []string{hub.Namespace, hub.ComponentNamespace} {
		_, err := s.kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), name)
	}
	roles, err := s.kube.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{LabelSelector: operatorv1.LabelCreatedByClusterManager})
	require.NoError(t, err)
	require.Empty(t, roles.Items)
}

// countOfSet is the write of the number of clusters in a set.
const countOfSet = "PATCH managedclustersets/status"

func TestRegisteringAClusterCostsFewWrites(t *testing.T) {
	t.Parallel()
	s := ownHub(t)
	// Each is counted to its end, so that a late write for one does not count for the
	// other.
	s.joined(t, s.register(t, "first", "a"), "first")
	before, began := s.allWrites(t), time.Now()
	s.joined(t, s.register(t, "second", "a"), "second")
	total := 0
	for what, n := range s.allWrites(t) {
		if n -= before[what]; n > 0 {
			t.Logf("%d %s", n, what)
			if what == countOfSet {
				// However many clusters join.
				require.LessOrEqual(t, n, 2*(1+int(time.Since(began)/(10*time.Second))), "two sets are counted, each once in ten seconds")
				continue
			}
			total += n
		}
	}
	t.Logf("%d writes to register a cluster", total)
	require.LessOrEqual(t, total, 15)
}

// allWrites waits until nothing was written for a second, and returns the writes until then.
// Counts only grow, so that two looks tell as much as many, and a look is dear: the API server
// makes megabytes of metrics for it.
func (s *scene) allWrites(t testing.TB) map[string]int {
	t.Helper()
	last := s.writes(t)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		<-time.After(time.Second)
		now := s.writes(t)
		if maps.Equal(last, now) {
			return now
		}
		last = now
	}
	require.Fail(t, "it does not come to rest", last)
	return nil
}

// writes counts the successful changes of what a registration touches, from the metrics
// of the API server. It leaves out the certificate, which kube-controller-manager writes,
// renewals of leases, and Events.
func (s *scene) writes(t testing.TB) map[string]int {
	t.Helper()
	raw, err := s.kube.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(context.Background())
	require.NoError(t, err)
	out := map[string]int{}
	for line := range strings.Lines(string(raw)) {
		if !strings.HasPrefix(line, "apiserver_request_total{") {
			continue
		}
		label := func(name string) string {
			_, rest, _ := strings.Cut(line, name+`="`)
			value, _, _ := strings.Cut(rest, `"`)
			return value
		}
		verb, resource, subresource := label("verb"), label("resource"), label("subresource")
		counted := map[string]bool{
			"managedclusters": true, "managedclustersets": true, "certificatesigningrequests": subresource != "status", "namespaces": true,
			"clusterroles": true, "clusterrolebindings": true, "rolebindings": true, "leases": verb == "POST",
		}
		changes := map[string]bool{"POST": true, "PUT": true, "PATCH": true, "APPLY": true, "DELETE": true}
		if !counted[resource] || !changes[verb] || !strings.HasPrefix(label("code"), "2") {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(line[strings.LastIndex(line, " "):]))
		require.NoError(t, err)
		out[strings.TrimSuffix(verb+" "+resource+"/"+subresource, "/")] += n
	}
	return out
}
