// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

const (
	image = "ghcr.io/kubectl-ocm/ocm-hub"
	tag   = "v0.0.0-test"
)

var (
	managers = operatorv1.GroupVersion.WithResource("clustermanagers")
	clusters = clusterv1.GroupVersion.WithResource("managedclusters")
)

// scene is a cluster with a hub on it, seen by its administrator.
type scene struct {
	*harness.Cluster
	kube kubernetes.Interface
	dyn  dynamic.Interface
}

// newScene returns the scene of a cluster.
func newScene(t testing.TB, c *harness.Cluster) *scene {
	t.Helper()
	kube, err := kubernetes.NewForConfig(c.Config)
	require.NoError(t, err)
	return &scene{Cluster: c, kube: kube, dyn: c.Dynamic(t)}
}

var install sync.Once

// sharedHub returns the hub for tests that do not break it.
func sharedHub(t testing.TB) *scene {
	t.Helper()
	s := newScene(t, harness.Shared(t, "hub", harness.Node(images(t))))
	install.Do(func() { s.install(t) })
	start := time.Now()
	s.awaitHub(t)
	t.Logf("the hub was complete after %s", time.Since(start))
	return s
}

// ownHub returns a hub for this test alone.
func ownHub(t testing.TB) *scene {
	t.Helper()
	s := emptyHub(t)
	s.install(t)
	s.awaitHub(t)
	return s
}

// emptyHub returns a cluster for this test alone, without a hub on it yet.
func emptyHub(t testing.TB) *scene {
	t.Helper()
	return newScene(t, harness.FreshWithNode(t, "hub", images(t)))
}

func images(t testing.TB) map[string]string {
	return map[string]string{"ocm-hub": harness.Program(t, "controllers/ocm-hub")}
}

// install applies what an installer applies.
func (s *scene) install(t testing.TB) {
	t.Helper()
	s.installAs(t, hub.LayoutCompact)
}

// installAs applies what an installer applies for a layout, except for kinds.
func (s *scene) installAs(t testing.TB, layout string, except ...string) {
	t.Helper()
	objects, err := hub.Objects(hub.Options{Image: image + ":" + tag, Version: tag, Layout: layout})
	require.NoError(t, err)
	s.apply(t, slices.DeleteFunc(objects, func(u *unstructured.Unstructured) bool { return slices.Contains(except, u.GetKind()) }))
}

// apply writes objects as an installer does.
func (s *scene) apply(t testing.TB, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, u := range objects {
		var err error
		resource := s.dyn.Resource(reconcile.ResourceOf(u.GroupVersionKind())).Namespace(u.GetNamespace())
		soon(t, func() bool {
			_, err = resource.Apply(context.Background(), u.GetName(), u, metav1.ApplyOptions{FieldManager: "test", Force: true})
			return err == nil
		}, "%s %s: %v", u.GetKind(), u.GetName(), &err)
	}
}

// awaitHub waits until the hub reports that it is complete.
func (s *scene) awaitHub(t testing.TB) {
	t.Helper()
	defer s.logs(t)
	var last *operatorv1.ClusterManager
	soon(t, func() bool {
		cm, err := typed.Get[operatorv1.ClusterManager](context.Background(), s.dyn, managers, "", hub.Name)
		if err != nil {
			return false
		}
		last = cm
		c := cm.Status.Conditions
		return apimeta.IsStatusConditionTrue(c, operatorv1.ConditionApplied) && apimeta.IsStatusConditionFalse(c, operatorv1.ConditionProgressing) &&
			apimeta.IsStatusConditionFalse(c, operatorv1.ConditionHubRegistrationDegraded)
	}, "the hub is not complete: %+v", &last)
	s.awaitAdmission(t)
}

// awaitAdmission waits until admission works for each kind: the status of the
// ClusterManager may be from an earlier process, and the API server learns of a webhook
// and its address some time after the hub has created it.
func (s *scene) awaitAdmission(t testing.TB) {
	t.Helper()
	for resource, refused := range map[schema.GroupVersionResource]string{
		clusters: `{"kind":"ManagedCluster","metadata":{"name":"kube-asked"}}`,
		sets:     `{"kind":"ManagedClusterSet","metadata":{"name":"` + strings.Repeat("s", 64) + `"},"spec":{}}`,
		bindings: `{"kind":"ManagedClusterSetBinding","metadata":{"name":"asked","namespace":"default"},"spec":{"clusterSet":"other"}}`,
		works:    `{"kind":"ManifestWork","metadata":{"name":"asked","namespace":"default"},"spec":{"workload":{"manifests":[]}}}`,
		replicaSets: `{"kind":"ManifestWorkReplicaSet","metadata":{"name":"asked","namespace":"default"},
			"spec":{"placementRefs":[{"name":"p"}],"manifestWorkTemplate":{"workload":{"manifests":[]}}}}`,
	} {
		u := &unstructured.Unstructured{}
		require.NoError(t, u.UnmarshalJSON([]byte(refused)))
		u.SetAPIVersion(resource.GroupVersion().String())
		var err error
		soon(t, func() bool {
			_, err = s.dyn.Resource(resource).Namespace(u.GetNamespace()).Create(context.Background(), u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return apierrors.IsBadRequest(err)
		}, "admission of %s does not answer: %v", resource.Resource, &err)
	}
}

// logs prints the pod's log when the test has failed.
func (s *scene) logs(t testing.TB) {
	if !t.Failed() {
		return
	}
	raw, err := s.kube.CoreV1().Pods(hub.Namespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return
	}
	for _, pod := range raw.Items {
		text, err := s.kube.CoreV1().Pods(hub.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(context.Background())
		t.Logf("pod %s %s: %s %v", pod.Name, pod.Status.Phase, text, err)
	}
}

// bootstrap returns clients with a bootstrap token.
func (s *scene) bootstrap(t testing.TB) (dynamic.Interface, kubernetes.Interface) {
	t.Helper()
	dyn, kube := clients(t, s.As(t, hub.Namespace, hub.BootstrapServiceAccount))
	soon(t, func() bool {
		return may(t, kube, authorizationv1.ResourceAttributes{Verb: "create", Group: clusterv1.GroupName, Resource: "managedclusters"})
	}, "the rights of the bootstrap account do not count")
	return dyn, kube
}

func clients(t testing.TB, c *rest.Config) (dynamic.Interface, kubernetes.Interface) {
	t.Helper()
	dyn, err := dynamic.NewForConfig(c)
	require.NoError(t, err)
	kube, err := kubernetes.NewForConfig(c)
	require.NoError(t, err)
	return dyn, kube
}

// cluster returns a ManagedCluster object.
func cluster(name string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "ManagedCluster"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}
}

// create creates a ManagedCluster with a client.
func create(dyn dynamic.Interface, mc *clusterv1.ManagedCluster) error {
	u, err := typed.ToUnstructured(mc)
	if err != nil {
		return err
	}
	_, err = dyn.Resource(clusters).Create(context.Background(), u, metav1.CreateOptions{})
	return err
}

// get reads a ManagedCluster; nil when there is none.
func (s *scene) get(t testing.TB, name string) *clusterv1.ManagedCluster {
	t.Helper()
	mc, err := typed.Get[clusterv1.ManagedCluster](context.Background(), s.dyn, clusters, "", name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	return mc
}

// patch merges a change into a ManagedCluster with a client.
func patch(dyn dynamic.Interface, name, body string, subresource ...string) error {
	_, err := dyn.Resource(clusters).Patch(context.Background(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, subresource...)
	return err
}

func (s *scene) accept(t testing.TB, name string, accept bool) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"hubAcceptsClient": accept}})
	require.NoError(t, err)
	reached(t, func() error { return patch(s.dyn, name, string(body)) })
}

// await waits until the ManagedCluster is as wanted; it is nil when it is gone.
func (s *scene) await(t testing.TB, name, what string, ok func(*clusterv1.ManagedCluster) bool) *clusterv1.ManagedCluster {
	t.Helper()
	s.Claim(t, name)
	var last *clusterv1.ManagedCluster
	if !eventually(func() bool {
		last = s.get(t, name)
		return ok(last)
	}) {
		raw, _ := json.MarshalIndent(last, "", " ")
		t.Errorf("cluster %s: %s: %s", name, what, raw)
		s.logs(t)
		t.FailNow()
	}
	return last
}

func conditionIs(kind string, status metav1.ConditionStatus, reason string) func(*clusterv1.ManagedCluster) bool {
	return func(mc *clusterv1.ManagedCluster) bool {
		if mc == nil {
			return false
		}
		c := apimeta.FindStatusCondition(mc.Status.Conditions, kind)
		return c != nil && c.Status == status && (reason == "" || c.Reason == reason)
	}
}

// request creates a certificate request as an agent does.
func request(
	t testing.TB, kube kubernetes.Interface, label, cn string, organizations ...string,
) (*certificatesv1.CertificateSigningRequest, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: cn, Organization: organizations}}, key)
	require.NoError(t, err)
	csr, err := kube.CertificatesV1().CertificateSigningRequests().Create(context.Background(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: label + "-", Labels: map[string]string{clusterv1.LabelClusterName: label}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: clusterv1.SignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return csr, key
}

func agentRequest(t testing.TB, kube kubernetes.Interface, name, agent string) (*certificatesv1.CertificateSigningRequest, *ecdsa.PrivateKey) {
	t.Helper()
	return request(t, kube, name, clusterv1.UserPrefix+name+":"+agent, clusterv1.UserPrefix+name, clusterv1.GroupManagedClusters)
}

// approve approves a request as the administrator.
func (s *scene) approve(t testing.TB, name string) {
	t.Helper()
	s.answer(t, name, certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.CertificateApproved, Reason: "Test"})
}

// answer adds a condition to a request as the administrator.
func (s *scene) answer(t testing.TB, name string, c certificatesv1.CertificateSigningRequestCondition) {
	t.Helper()
	c.Status = corev1.ConditionTrue
	api := s.kube.CertificatesV1().CertificateSigningRequests()
	require.NoError(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		csr, err := api.Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		csr.Status.Conditions = append(csr.Status.Conditions, c)
		_, err = api.UpdateApproval(context.Background(), name, csr, metav1.UpdateOptions{})
		return err
	}))
}

// issued waits for the certificate of a request and returns a client with it.
func (s *scene) issued(t testing.TB, name string, key *ecdsa.PrivateKey) (dynamic.Interface, kubernetes.Interface) {
	t.Helper()
	var csr *certificatesv1.CertificateSigningRequest
	soon(t, func() bool {
		var err error
		csr, err = s.kube.CertificatesV1().CertificateSigningRequests().Get(context.Background(), name, metav1.GetOptions{})
		return err == nil && len(csr.Status.Certificate) > 0
	})
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	config := rest.AnonymousClientConfig(s.Config)
	config.CertData, config.KeyData = csr.Status.Certificate, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	config.QPS = -1
	return clients(t, config)
}

// verdict returns the answer to a request: Approved, Denied or empty, with its reason.
func (s *scene) verdict(t testing.TB, name string) (string, string) {
	t.Helper()
	csr, err := s.kube.CertificatesV1().CertificateSigningRequests().Get(context.Background(), name, metav1.GetOptions{})
	require.NoError(t, err)
	for _, c := range csr.Status.Conditions {
		return string(c.Type), c.Reason
	}
	return "", ""
}

// agent is a registered agent.
type agent struct {
	dyn  dynamic.Interface
	kube kubernetes.Interface
	// sent and renewed are when it has last sent a renewal by renewing that was made, and had its answer; pause is the
	// longest time between two answers. All are in nanoseconds.
	sent, renewed, pause atomic.Int64
}

// register creates a cluster, approves its request and accepts it.
func (s *scene) register(t testing.TB, name, agentName string) *agent {
	t.Helper()
	s.Claim(t, name)
	dyn, _ := s.bootstrap(t)
	settled(t, func() error { return create(dyn, cluster(name)) })
	return s.admit(t, name, agentName)
}

// admit approves and accepts an existing cluster.
func (s *scene) admit(t testing.TB, name, agentName string) *agent {
	t.Helper()
	_, kube := s.bootstrap(t)
	csr, key := agentRequest(t, kube, name, agentName)
	s.approve(t, csr.Name)
	s.accept(t, name, true)
	a := &agent{}
	a.dyn, a.kube = s.issued(t, csr.Name, key)
	s.await(t, name, "is accepted", conditionIs(clusterv1.ConditionHubAccepted, metav1.ConditionTrue, clusterv1.ReasonHubClusterAdminAccepted))
	a.entitled(t, name)
	return a
}

// entitled waits until the rights of an accepted agent have taken effect, tested with one
// object each, and the agent has its lease.
func (a *agent) entitled(t testing.TB, name string) {
	t.Helper()
	ctx := context.Background()
	settled(t, func() error {
		_, cluster := a.dyn.Resource(clusters).Get(ctx, name, metav1.GetOptions{})
		_, lease := a.kube.CoordinationV1().Leases(name).Get(ctx, clusterv1.LeaseName, metav1.GetOptions{})
		_, work := a.dyn.Resource(works).Namespace(name).List(ctx, metav1.ListOptions{Limit: 1})
		return errors.Join(cluster, lease, work)
	})
}

// joined renews and reports as an agent, and waits until the hub has processed all of it
// and no longer writes to the cluster.
func (s *scene) joined(t testing.TB, a *agent, name string) *clusterv1.ManagedCluster {
	t.Helper()
	a.renew(t, name, 0)
	a.report(t, name, metav1.ConditionTrue)
	return s.await(t, name, "is at rest", func(mc *clusterv1.ManagedCluster) bool {
		return tainted()(mc) && mc.Annotations[clusterv1.AnnotationAgentName] != "" && findCondition(mc, clusterv1.ConditionClockSynced) != nil
	})
}

// report sets Joined and Available as an agent does.
func (a *agent) report(t testing.TB, name string, available metav1.ConditionStatus) {
	t.Helper()
	soon(t, func() bool {
		mc, err := typed.Get[clusterv1.ManagedCluster](context.Background(), a.dyn, clusters, "", name)
		if err != nil {
			return false
		}
		now := time.Now()
		reconcile.SetCondition(
			&mc.Status.Conditions,
			metav1.Condition{Type: clusterv1.ConditionJoined, Status: metav1.ConditionTrue, Reason: clusterv1.ReasonManagedClusterJoined, Message: "m"},
			now,
		)
		reconcile.SetCondition(
			&mc.Status.Conditions,
			metav1.Condition{Type: clusterv1.ConditionAvailable, Status: available, Reason: clusterv1.ReasonManagedClusterAvailable, Message: "m"},
			now,
		)
		body, err := json.Marshal(map[string]any{
			"metadata": map[string]any{
				"resourceVersion": mc.ResourceVersion,
			}, "status": map[string]any{
				"conditions": mc.Status.Conditions,
			},
		})
		return err == nil && patch(a.dyn, name, string(body), "status") == nil
	})
}

// renew renews the lease as an agent does, with a clock that is off by skew.
func (a *agent) renew(t testing.TB, name string, skew time.Duration) {
	t.Helper()
	soon(t, func() bool {
		lease, err := a.kube.CoordinationV1().Leases(name).Get(context.Background(), clusterv1.LeaseName, metav1.GetOptions{})
		if err != nil {
			return false
		}
		now := metav1.NewMicroTime(time.Now().Add(skew))
		lease.Spec.RenewTime = &now
		_, err = a.kube.CoordinationV1().Leases(name).Update(context.Background(), lease, metav1.UpdateOptions{})
		return err == nil
	})
}

func TestMain(m *testing.M) { os.Exit(m.Run()) }

func toUnstructured(mc *clusterv1.ManagedCluster) (*unstructured.Unstructured, error) {
	mc.TypeMeta = metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "ManagedCluster"}
	return typed.ToUnstructured(mc)
}

func findCondition(mc *clusterv1.ManagedCluster, kind string) *metav1.Condition {
	return apimeta.FindStatusCondition(mc.Status.Conditions, kind)
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// deny denies a request as the administrator. kubectl sets reason and message, other
// tools neither.
func (s *scene) deny(t testing.TB, name, reason, message string) {
	t.Helper()
	s.answer(t, name, certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.CertificateDenied, Reason: reason, Message: message})
}

// allowRequests allows a user to send certificate requests.
func (s *scene) allowRequests(t testing.TB, user string) {
	t.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"certificates.k8s.io"},
			Resources: []string{"certificatesigningrequests"},
			Verbs:     []string{"create", "get", "list", "watch"},
		}},
	}
	made, err := s.kube.RbacV1().ClusterRoles().Create(context.Background(), role, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = s.kube.RbacV1().ClusterRoleBindings().Create(context.Background(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: made.Name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: made.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}}, metav1.CreateOptions{})
	require.NoError(t, err)
}
