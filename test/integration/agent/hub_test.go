// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

var (
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	secrets     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	clusters    = schema.GroupVersionResource{Group: "cluster.open-cluster-management.io", Version: "v1", Resource: "managedclusters"}
	requests    = schema.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests"}
	leases      = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
)

// hub is a hub whose administrator is the test.
type hub struct {
	*harness.Cluster
	client dynamic.Interface
}

// newHub returns the hub that all tests share, with clusters of different names. Its
// certificates outlive every test, however slow the machine is.
func newHub(t *testing.T) *hub {
	t.Helper()
	return prepareHub(t, harness.Shared(t, "hub"))
}

// signing is the lifetime of client certificates of a brief hub: the shortest that leaves
// time for a renewal (kube-controller-manager backdates them).
const signing = 150 * time.Second

// newBriefHub returns the hub that all tests of renewals share. An agent requests another
// certificate from it after 38 to 60 s, which must not happen in other tests.
func newBriefHub(t *testing.T) *hub {
	t.Helper()
	return prepareHub(t, harness.Shared(t, "brief-hub", harness.SigningDuration(signing)))
}

var prepared sync.Map

// prepareHub turns a cluster into a hub: definitions and the bootstrap role.
func prepareHub(t *testing.T, c *harness.Cluster) *hub {
	t.Helper()
	h := &hub{Cluster: c, client: c.Dynamic(t)}
	once, _ := prepared.LoadOrStore(c.Kubeconfig, new(sync.Once))
	once.(*sync.Once).Do(func() {
		for _, name := range []string{"managedclusters.cluster.open-cluster-management.io", "manifestworks.work.open-cluster-management.io"} {
			u, err := crd.Get(name)
			require.NoError(t, err)
			apply(t, h.client, u)
		}
		for _, gvr := range []schema.GroupVersionResource{clusters, works} {
			await(t, func() bool {
				_, err := h.client.Resource(gvr).List(t.Context(), metav1.ListOptions{})
				return err == nil
			})
		}
		h.role(t, clusterv1.RoleBootstrap,
			rule("", "configmaps", "", "get"),
			rule("certificates.k8s.io", "certificatesigningrequests", "", "create", "get", "list", "watch"),
			rule(clusters.Group, "managedclusters", "", "get", "create", "list", "watch"),
			rule(clusters.Group, "managedclustersets/join", "default", "create"))
		h.bind(t, clusterv1.RoleBootstrap, clusterv1.RoleBootstrap, "", rbacv1.Subject{
			Kind: "ServiceAccount", Namespace: "open-cluster-management", Name: clusterv1.BootstrapServiceAccount})
		h.sharedRoles(t)
	})
	return h
}

func (h *hub) sharedRoles(t *testing.T) {
	h.role(t, clusterv1.RoleRegistration,
		rule("coordination.k8s.io", "leases", clusterv1.LeaseName, "get", "list", "watch", "update"),
		rule("addon.open-cluster-management.io", "managedclusteraddons", "", "get", "list", "watch"),
		rule("addon.open-cluster-management.io", "managedclusteraddons/status", "", "patch", "update"),
		rule("events.k8s.io", "events", "", "create"))
	h.role(t, clusterv1.RoleWork,
		rule("", "events", "", "create", "patch", "update"),
		rule("events.k8s.io", "events", "", "create", "patch", "update"),
		rule(works.Group, "manifestworks", "", "get", "list", "watch", "update", "patch"),
		rule(works.Group, "manifestworks/status", "", "patch", "update"))
}

func rule(group, resource, name string, verbs ...string) rbacv1.PolicyRule {
	r := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	if name != "" {
		r.ResourceNames = []string{name}
	}
	return r
}

func (h *hub) role(t *testing.T, name string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	apply(t, h.client, object(t, &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules,
	}))
}

func (h *hub) bind(t *testing.T, name, role, namespace string, subject rbacv1.Subject) {
	t.Helper()
	kind := "ClusterRoleBinding"
	if namespace != "" {
		kind = "RoleBinding"
	}
	if subject.Kind != "ServiceAccount" {
		subject.APIGroup = rbacv1.GroupName
	}
	apply(t, h.client, object(t, &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{subject},
	}))
}

// bootstrap returns a bootstrap kubeconfig of this hub with a real token.
func (h *hub) bootstrap(t *testing.T) []byte {
	t.Helper()
	cfg := h.As(t, "open-cluster-management", clusterv1.BootstrapServiceAccount)
	raw, err := h.endpoint("hub").WithToken(cfg.BearerToken)
	require.NoError(t, err)
	return raw
}

func (h *hub) endpoint(entry string) *kubeconfig.Config {
	return &kubeconfig.Config{ClusterEntry: entry, Server: h.Config.Host, CAData: h.Config.CAData}
}

// accept does what a hub does on acceptance.
func (h *hub) accept(t *testing.T, name string) {
	t.Helper()
	h.acceptWithout(t, name, "")
}

// acceptWithout accepts a cluster and leaves out the RoleBinding with this suffix.
func (h *hub) acceptWithout(t *testing.T, name, leaveOut string) {
	t.Helper()
	h.empower(t, name, leaveOut)
	h.admit(t, name)
}

// admit marks the cluster as accepted.
func (h *hub) admit(t *testing.T, name string) {
	t.Helper()
	h.change(t, name, func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = true })
	h.condition(t, name, clusterv1.ConditionHubAccepted, metav1.ConditionTrue, clusterv1.ReasonHubClusterAdminAccepted)
}

// empower creates the namespace of a cluster and grants its agent its rights, except for
// the RoleBinding with this suffix.
func (h *hub) empower(t *testing.T, name, leaveOut string) {
	t.Helper()
	h.Claim(t, name)
	group := rbacv1.Subject{Kind: "Group", Name: clusterv1.UserPrefix + name}
	role := clusterv1.RolePrefixManagedCluster + name
	apply(t, h.client, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}})
	h.role(t, role,
		rule("certificates.k8s.io", "certificatesigningrequests", "", "create", "get", "list", "watch"),
		rule(clusterv1.RegisterGroup, "managedclusters/clientcertificates", "", "renew"),
		rule(clusters.Group, "managedclusters", name, "get", "list", "update", "watch"),
		rule(clusters.Group, "managedclusters/status", name, "patch", "update"))
	h.bind(t, role, role, "", group)
	for suffix, shared := range map[string]string{
		clusterv1.RoleBindingSuffixRegistration: clusterv1.RoleRegistration, clusterv1.RoleBindingSuffixWork: clusterv1.RoleWork,
	} {
		if suffix != leaveOut {
			h.bind(t, role+suffix, shared, name, group)
		}
	}
	apply(t, h.client, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
		"metadata": map[string]any{"namespace": name, "name": clusterv1.LeaseName},
		"spec":     map[string]any{"holderIdentity": clusterv1.LeaseName}}})
}

// change updates the spec of a cluster.
func (h *hub) change(t *testing.T, name string, f func(*clusterv1.ManagedCluster)) {
	t.Helper()
	h.write(t, name, f)
}

func (h *hub) condition(t *testing.T, name, kind string, status metav1.ConditionStatus, reason string) {
	t.Helper()
	h.write(t, name, func(c *clusterv1.ManagedCluster) {
		apimeta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "by the test"})
	}, "status")
}

func (h *hub) write(t *testing.T, name string, f func(*clusterv1.ManagedCluster), subresource ...string) {
	t.Helper()
	await(t, func() bool {
		c, err := typed.Get[clusterv1.ManagedCluster](t.Context(), h.client, clusters, "", name)
		require.NoError(t, err)
		f(c)
		_, err = h.client.Resource(clusters).Update(t.Context(), object(t, c), metav1.UpdateOptions{}, subresource...)
		return settled(t, err)
	})
}

// cluster reads a ManagedCluster; nil when it does not exist.
func (h *hub) cluster(ctx context.Context, name string) *clusterv1.ManagedCluster {
	c, err := read(ctx, func() (*clusterv1.ManagedCluster, error) {
		return typed.Get[clusterv1.ManagedCluster](ctx, h.client, clusters, "", name)
	})
	if err != nil {
		return nil
	}
	return c
}

// requestsOf lists the certificate requests of a cluster, oldest first.
func (h *hub) requestsOf(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	found, err := read(t.Context(), func() (*unstructured.UnstructuredList, error) {
		return h.client.Resource(requests).List(t.Context(), metav1.ListOptions{LabelSelector: clusterv1.LabelClusterName + "=" + name})
	})
	require.NoError(t, err)
	out := make([]*unstructured.Unstructured, 0, len(found.Items))
	for i := range found.Items {
		out = append(out, &found.Items[i])
	}
	return out
}

// awaitRequest waits for a request of the cluster that is not among known.
func (h *hub) awaitRequest(t *testing.T, name string, known ...string) *unstructured.Unstructured {
	t.Helper()
	h.Claim(t, name)
	var found *unstructured.Unstructured
	await(t, func() bool {
		for _, u := range h.requestsOf(t, name) {
			isKnown := false
			for _, k := range known {
				isKnown = isKnown || k == u.GetName()
			}
			if !isKnown {
				found = u
				return true
			}
		}
		return false
	}, "no certificate request of %s", name)
	return found
}

// decide approves or denies a request.
func (h *hub) decide(t *testing.T, name, verdict, message string) {
	t.Helper()
	await(t, func() bool {
		live, err := h.client.Resource(requests).Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		require.NoError(t, unstructured.SetNestedSlice(live.Object, []any{map[string]any{
			"type": verdict, "status": "True", "reason": "ByTheTest", "message": message,
		}}, "status", "conditions"))
		_, err = h.client.Resource(requests).Update(t.Context(), live, metav1.UpdateOptions{}, "approval")
		return settled(t, err)
	})
}

// settled reports whether a write succeeded; one with a conflict is to be repeated.
func settled(t *testing.T, err error) bool {
	t.Helper()
	if apierrors.IsConflict(err) {
		return false
	}
	require.NoError(t, err)
	return true
}

func (h *hub) approve(t *testing.T, name string) {
	t.Helper()
	h.decide(t, name, "Approved", "welcome")
}

// parsed returns the request inside a CertificateSigningRequest.
func parsed(t *testing.T, u *unstructured.Unstructured) *x509.CertificateRequest {
	t.Helper()
	block, _ := pem.Decode(data(t, u, "spec", "request"))
	require.NotNil(t, block)
	require.Equal(t, "CERTIFICATE REQUEST", block.Type)
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	require.NoError(t, err)
	return csr
}

// awaitCondition waits until the cluster has a condition with this status.
func (h *hub) awaitCondition(t *testing.T, name, kind string, status metav1.ConditionStatus) *clusterv1.ManagedCluster {
	t.Helper()
	var c *clusterv1.ManagedCluster
	await(t, func() bool {
		c = h.cluster(t.Context(), name)
		return c != nil && apimeta.IsStatusConditionPresentAndEqual(c.Status.Conditions, kind, status)
	}, "%s of %s is not %s", kind, name, status)
	return c
}

// join approves and accepts, and waits until the cluster is available.
func (h *hub) join(t *testing.T, name string) {
	t.Helper()
	request := h.awaitRequest(t, name)
	h.accept(t, name)
	h.approve(t, request.GetName())
	h.awaitCondition(t, name, clusterv1.ConditionAvailable, metav1.ConditionTrue)
}

func object(t *testing.T, o runtime.Object) *unstructured.Unstructured {
	t.Helper()
	u, err := typed.ToUnstructured(o)
	require.NoError(t, err)
	return u
}

// deliver creates a ManifestWork of two objects.
func (h *hub) deliver(t *testing.T, cluster, name string) {
	t.Helper()
	manifest := func(suffix string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
			"namespace": "default",
			"name":      name + suffix,
		},
			"data": map[string]any{"a": "b"}}
	}
	apply(t, h.client, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
		"metadata": map[string]any{"namespace": cluster, "name": name},
		"spec":     map[string]any{"workload": map[string]any{"manifests": []any{manifest("-1"), manifest("-2")}}}}})
}

// applied counts the works of a cluster that are applied.
func (h *hub) applied(t *testing.T, cluster string) int {
	t.Helper()
	list, err := typed.List[workv1.ManifestWork](t.Context(), h.client, works, cluster, metav1.ListOptions{})
	require.NoError(t, err)
	n := 0
	for _, w := range list {
		if apimeta.IsStatusConditionTrue(w.Status.Conditions, workv1.ConditionApplied) {
			n++
		}
	}
	return n
}
