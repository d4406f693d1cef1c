// SPDX-License-Identifier: Apache-2.0

package addonkit_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/registration"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/runner"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/identity"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

var (
	addOns   = addonv1alpha1.GroupVersion.WithResource("managedclusteraddons")
	works    = workv1.GroupVersion.WithResource("manifestworks")
	requests = certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests")
	bindings = rbacv1.SchemeGroupVersion.WithResource("rolebindings")
)

// rights are what the controller of an add-on needs on the hub, and what it gives on.
const rights = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"hello"},"rules":[
	{"apiGroups":["cluster.open-cluster-management.io"],"resources":["managedclusters"],"verbs":["list","watch"]},
	{"apiGroups":["addon.open-cluster-management.io"],"resources":["managedclusteraddons"],"verbs":["list","watch","patch"]},
	{"apiGroups":["addon.open-cluster-management.io"],"resources":["managedclusteraddons/status"],"verbs":["patch"]},
	{"apiGroups":["addon.open-cluster-management.io"],"resources":["managedclusteraddons/finalizers"],"verbs":["update"]},
	{"apiGroups":["work.open-cluster-management.io"],"resources":["manifestworks"],"verbs":["list","watch","create","patch","delete"]},
	{"apiGroups":["certificates.k8s.io"],"resources":["certificatesigningrequests"],"verbs":["list","watch"]},
	{"apiGroups":["certificates.k8s.io"],"resources":["certificatesigningrequests/approval","certificatesigningrequests/status"],"verbs":["update"]},
	{"apiGroups":["certificates.k8s.io"],"resources":["signers"],"resourceNames":["kubernetes.io/kube-apiserver-client","example.com/guest"],"verbs":["approve"]},
	{"apiGroups":["certificates.k8s.io"],"resources":["signers"],"resourceNames":["example.com/guest"],"verbs":["sign"]},
	{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles","rolebindings"],"verbs":["get","list","watch","create","patch","delete"]},
	{"apiGroups":["events.k8s.io"],"resources":["events"],"verbs":["create"]},
	{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list","watch"]}]}`

// scene is a hub on which the add-on hello runs.
type scene struct {
	admin  dynamic.Interface
	config *rest.Config
	runner *runner.Runner
}

// write makes an object of a text.
func (s *scene) write(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, json.Unmarshal([]byte(text), &u.Object))
	var out *unstructured.Unstructured
	soon(t, "writing "+u.GetKind(), func() (err error) {
		out, err = s.admin.Resource(reconcile.ResourceOf(u.GroupVersionKind())).Namespace(u.GetNamespace()).Create(t.Context(), u, metav1.CreateOptions{})
		return err
	})
	return out
}

// soon waits until nothing is wrong any more.
func soon(t *testing.T, what string, wrong func() error) {
	t.Helper()
	var err error
	if !eventually(func() bool { err = wrong(); return err == nil }) {
		require.NoError(t, err, what)
	}
}

// eventually asks again and again, for a minute at most.
func eventually(holds func() bool) bool {
	tick, end := time.NewTicker(20*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for {
		if holds() {
			return true
		}
		select {
		case <-tick.C:
		case <-end:
			return false
		}
	}
}

// newScene starts a hub with its definitions and the add-on under its own account.
func newScene(t *testing.T, addOn addonkit.AddOn) *scene {
	t.Helper()
	cluster := harness.ControlPlane(t, "hub")
	s := &scene{admin: cluster.Dynamic(t), config: cluster.Config}
	definitions, err := crd.Hub()
	require.NoError(t, err)
	for _, d := range definitions {
		_, err := s.admin.Resource(reconcile.ResourceOf(d.GroupVersionKind())).Create(t.Context(), d, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	s.write(t, rights)
	s.write(t, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"hello"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"hello"},"subjects":[{"kind":"ServiceAccount","namespace":"hello","name":"hello"}]}`)
	client, err := dynamic.NewForConfig(cluster.As(t, "hello", "hello"))
	require.NoError(t, err)
	s.runner, err = runner.New(runner.Config{Client: client, Clock: clock.RealClock{}}, addOn)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.runner.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return s
}

// join makes a cluster.
func (s *scene) join(t *testing.T, cluster string) {
	t.Helper()
	s.write(t, fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, cluster))
	s.write(t, fmt.Sprintf(`{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster","metadata":{"name":%q},"spec":{"hubAcceptsClient":true}}`, cluster))
}

// install makes a cluster and the instance of the add-on on it.
func (s *scene) install(t *testing.T, cluster, name, host string) {
	t.Helper()
	s.join(t, cluster)
	owner := s.write(t, fmt.Sprintf(`{"apiVersion":"addon.open-cluster-management.io/v1alpha1","kind":"ClusterManagementAddOn","metadata":{"name":%q},"spec":{}}`, name))
	annotations := "{}"
	if host != "" {
		annotations = fmt.Sprintf(`{%q:%q}`, addonv1alpha1.AnnotationHostingClusterName, host)
	}
	s.write(t, fmt.Sprintf(`{"apiVersion":"addon.open-cluster-management.io/v1alpha1","kind":"ManagedClusterAddOn","metadata":{"namespace":%q,"name":%q,"annotations":%s,
		"ownerReferences":[{"apiVersion":"addon.open-cluster-management.io/v1alpha1","kind":"ClusterManagementAddOn","name":%q,"uid":%q}]},"spec":{}}`,
		cluster, name, annotations, name, owner.GetUID()))
}

// await waits until the instance says something.
func (s *scene) await(t *testing.T, key reconcile.Key, condition, reason string) *addonv1alpha1.ManagedClusterAddOn {
	t.Helper()
	var out *addonv1alpha1.ManagedClusterAddOn
	soon(t, condition, func() (err error) {
		if out, err = typed.Get[addonv1alpha1.ManagedClusterAddOn](t.Context(), s.admin, addOns, key.Namespace, key.Name); err != nil {
			return err
		}
		if c := apimeta.FindStatusCondition(out.Status.Conditions, condition); c == nil || c.Reason != reason {
			return fmt.Errorf("no %s %s: %+v", condition, reason, out.Status.Conditions)
		}
		return nil
	})
	return out
}

// report is what the work agent of the cluster says of a work.
func (s *scene) report(t *testing.T, cluster, work, manifests string) {
	t.Helper()
	soon(t, "reporting "+work, func() error {
		_, err := s.admin.Resource(works).Namespace(cluster).Patch(t.Context(), work, types.MergePatchType, []byte(`{"status":{"conditions":[
			{"type":"Applied","status":"True","reason":"R","message":"m","lastTransitionTime":"2030-01-01T00:00:00Z"},
			{"type":"Available","status":"True","reason":"R","message":"m","lastTransitionTime":"2030-01-01T00:00:00Z"}],
			"resourceStatus":{"manifests":[`+manifests+`]}}}`), metav1.PatchOptions{}, "status")
		return err
	})
}

func TestAnAddOnFromItsInstallationToItsEnd(t *testing.T) {
	s := newScene(t, hello{})
	s.install(t, "c1", "hello", "")
	here := reconcile.Key{Namespace: "c1", Name: "hello"}
	a := s.await(t, here, addonv1alpha1.ConditionRegistrationApplied, addonv1alpha1.ReasonSetPermissionApplied)
	require.Equal(t, identity.AddOn{Cluster: "c1", Name: "hello"}.User("hello"), a.Status.Registrations[0].Subject.User)
	require.Equal(t, addonv1alpha1.DefaultInstallNamespace, a.Status.Namespace)
	binding, err := typed.Get[rbacv1.RoleBinding](t.Context(), s.admin, bindings, "c1", "open-cluster-management:hello:role:agent")
	require.NoError(t, err)
	require.Equal(t, a.Status.Registrations[0].Subject.User, binding.Subjects[0].Name)

	s.report(t, "c1", "addon-hello-deploy-0", "")
	work, err := typed.Get[workv1.ManifestWork](t.Context(), s.admin, works, "c1", "addon-hello-deploy-0")
	require.NoError(t, err)
	require.True(t, metav1.IsControlledBy(work, a), "garbage collection takes it with the instance")
	a = s.await(t, here, addonv1alpha1.ConditionManifestApplied, addonv1alpha1.ReasonManifestApplied)
	require.Equal(t, addonv1alpha1.HealthCheckModeCustomized, a.Status.HealthCheck.Mode)
	s.await(t, here, addonv1alpha1.ConditionAvailable, addonv1alpha1.ReasonWorkApplied)
	require.Equal(t, []string{addonv1alpha1.FinalizerPreDelete}, a.Finalizers)
	s.certificate(t, a)

	require.NoError(t, s.admin.Resource(addOns).Namespace("c1").Delete(t.Context(), "hello", metav1.DeleteOptions{}))
	s.await(t, here, addonv1alpha1.ConditionHookManifestCompleted, addonv1alpha1.ReasonHookNotCompleted)
	s.report(t, "c1", "addon-hello-pre-delete", `{"resourceMeta":{"ordinal":0,"group":"batch","version":"v1","kind":"Job","resource":"jobs",
		"namespace":"open-cluster-management-agent-addon","name":"goodbye"},"conditions":[],
		"statusFeedback":{"values":[{"name":"JobComplete","fieldValue":{"type":"String","string":"True"}}]}}`)
	for resource, name := range map[schema.GroupVersionResource]string{
		addOns: "hello", bindings: binding.Name, rbacv1.SchemeGroupVersion.WithResource("roles"): "open-cluster-management:hello:agent",
	} {
		s.gone(t, resource, reconcile.Key{Namespace: "c1", Name: name})
	}
}

// gone waits until there is no such object.
func (s *scene) gone(t *testing.T, resource schema.GroupVersionResource, key reconcile.Key) {
	t.Helper()
	soon(t, key.String(), func() error {
		_, err := s.admin.Resource(resource).Namespace(key.Namespace).Get(t.Context(), key.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%s %s is there: %w", resource.Resource, key, err)
	})
}

// certificate asks for a certificate as the agent of a cluster does, and waits for it.
func (s *scene) certificate(t *testing.T, a *addonv1alpha1.ManagedClusterAddOn) {
	t.Helper()
	s.ask(t, "c10", a)
	s.issued(t, s.ask(t, a.Namespace, a))
	other, err := typed.Get[certificatesv1.CertificateSigningRequest](t.Context(), s.admin, requests, "", "addon-c10-"+a.Name)
	require.NoError(t, err)
	require.True(t, registration.Open(other), "the agent of another cluster gets nothing: %+v", other.Status)
}

// ask sends the request for the first registration as the agent of a cluster, and
// returns its name.
func (s *scene) ask(t *testing.T, cluster string, a *addonv1alpha1.ManagedClusterAddOn) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	wanted := a.Status.Registrations[0]
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: wanted.Subject.User, Organization: wanted.Subject.Groups}}, key)
	require.NoError(t, err)
	encoded := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	config := rest.CopyConfig(s.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: clusterv1.UserPrefix + cluster + ":agent", Groups: []string{"system:masters"}}
	agent, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	u := &unstructured.Unstructured{}
	require.NoError(t, json.Unmarshal([]byte(fmt.Sprintf(`{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest",
		"metadata":{"name":"addon-%s-%s","labels":{"open-cluster-management.io/cluster-name":%q,"open-cluster-management.io/addon-name":%q}},
		"spec":{"request":%q,"signerName":%q,"usages":["digital signature","key encipherment","client auth"]}}`,
		cluster, a.Name, a.Namespace, a.Name, encoded, wanted.SignerName)), &u.Object))
	_, err = agent.Resource(requests).Create(t.Context(), u, metav1.CreateOptions{})
	require.NoError(t, err)
	return u.GetName()
}

// issued waits for the certificate of a request.
func (s *scene) issued(t *testing.T, name string) []byte {
	t.Helper()
	var out []byte
	soon(t, "certificate", func() error {
		csr, err := typed.Get[certificatesv1.CertificateSigningRequest](t.Context(), s.admin, requests, "", name)
		if err != nil {
			return err
		}
		if out = csr.Status.Certificate; len(out) == 0 {
			return fmt.Errorf("no certificate: %+v", csr.Status)
		}
		return nil
	})
	return out
}
