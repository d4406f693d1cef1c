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
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

var templates = addonv1alpha1.GroupVersion.WithResource(addonv1alpha1.ResourceTemplate)

// template writes the template of the fan: a ConfigMap with a value, the name of the
// cluster and the variable V, and the given registration.
func (f *fan) template(t *testing.T, value, registration string) {
	t.Helper()
	f.write(t, templates, fmt.Sprintf(`{"apiVersion":"addon.open-cluster-management.io/v1alpha1","kind":"AddOnTemplate","metadata":{"name":%q},
		"spec":{"addonName":%q,"registration":[%s],"agentSpec":{"workload":{"manifests":[
		{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"a"},"data":{"value":%q,"cluster":"{{CLUSTER_NAME}}","v":"{{V}}"}}]}}}}`,
		f.namespace, f.namespace, registration, value))
	t.Cleanup(func() {
		err := f.dyn.Resource(templates).Delete(context.Background(), f.namespace, metav1.DeleteOptions{})
		require.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
	})
}

// offerTemplate writes an add-on that uses the template of the fan; it is removed with
// the test.
func (f *fan) offerTemplate(t *testing.T, strategy string) {
	t.Helper()
	f.write(t, clusterAddOns, fmt.Sprintf(`{"apiVersion":"addon.open-cluster-management.io/v1alpha1",
		"kind":"ClusterManagementAddOn","metadata":{"name":%q},"spec":{
		"supportedConfigs":[{"group":"addon.open-cluster-management.io","resource":"addontemplates","defaultConfig":{"name":%q}},
		{"group":"addon.open-cluster-management.io","resource":"addondeploymentconfigs"}],"installStrategy":%s}}`, f.namespace, f.namespace, strategy))
	t.Cleanup(func() {
		require.NoError(t, f.dyn.Resource(clusterAddOns).Delete(context.Background(), f.namespace, metav1.DeleteOptions{}))
	})
}

// awaitDeployed waits until the ConfigMap in the work of each cluster has the wanted
// content: "value cluster v", or "" for no work.
func (f *fan) awaitDeployed(t *testing.T, want ...string) {
	t.Helper()
	defer f.logs(t)
	var got []string
	soon(t, func() bool {
		got = nil
		for _, c := range f.clusters {
			got = append(got, f.deployed(t, c))
		}
		return strings.Join(got, ",") == strings.Join(want, ",")
	}, "%q", &got)
}

func (f *fan) deployed(t *testing.T, cluster string) string {
	t.Helper()
	w, err := typed.Get[workv1.ManifestWork](t.Context(), f.dyn, works, cluster, f.work())
	if apierrors.IsNotFound(err) {
		return ""
	}
	require.NoError(t, err)
	var m struct{ Data map[string]string }
	require.NoError(t, json.Unmarshal(w.Spec.Workload.Manifests[0].Raw, &m))
	return strings.Join([]string{m.Data["value"], m.Data["cluster"], m.Data["v"]}, " ")
}

func (f *fan) work() string { return "addon-" + f.namespace + "-deploy-0" }

// applied reports the work as applied, as the agent of a cluster does.
func (f *fan) applied(t *testing.T, cluster string) {
	t.Helper()
	soon(t, func() bool {
		w, err := typed.Get[workv1.ManifestWork](t.Context(), f.dyn, works, cluster, f.work())
		if err != nil {
			return false
		}
		var conditions []metav1.Condition
		for _, kind := range []string{workv1.ConditionApplied, workv1.ConditionAvailable} {
			conditions = append(conditions, metav1.Condition{
				Type:               kind,
				Status:             metav1.ConditionTrue,
				Reason:             "R",
				ObservedGeneration: w.Generation,
				LastTransitionTime: metav1.Now(),
			})
		}
		body, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"resourceVersion": w.ResourceVersion},
			"status":   map[string]any{"conditions": conditions},
		})
		if err != nil {
			return false
		}
		_, err = f.dyn.Resource(works).Namespace(cluster).Patch(t.Context(), w.Name, types.MergePatchType, body, metav1.PatchOptions{}, "status")
		return err == nil
	})
}

// awaitSaid waits until the instance on a cluster has a condition with a reason and a
// text in its message.
func (f *fan) awaitSaid(t *testing.T, cluster, condition, reason, text string) *addonv1alpha1.ManagedClusterAddOn {
	t.Helper()
	defer f.logs(t)
	var last *addonv1alpha1.ManagedClusterAddOn
	soon(t, func() bool {
		last = f.instance(t, cluster)
		if last == nil {
			return false
		}
		c := apimeta.FindStatusCondition(last.Status.Conditions, condition)
		return c != nil && c.Reason == reason && strings.Contains(c.Message, text)
	}, "%+v", &last)
	return last
}

func TestATemplateComesToItsClusters(t *testing.T) {
	f := newAddOnFan(t, "plain", 2)
	c := f.clusters
	f.template(t, "one", "")
	f.place(t, "p", c...)
	f.offerTemplate(t, `{"type":"Placements","placements":[{"namespace":"plain","name":"p"}]}`)
	f.awaitDeployed(t, "one plain-0 ", "one plain-1 ")
	for _, cluster := range c {
		f.applied(t, cluster)
		f.awaitSaid(t, cluster, addonv1alpha1.ConditionRegistrationApplied, addonv1alpha1.ReasonNilRegistration, "")
		f.awaitSaid(t, cluster, addonv1alpha1.ConditionManifestApplied, addonv1alpha1.ReasonManifestApplied, "")
		a := f.awaitSaid(t, cluster, addonv1alpha1.ConditionAvailable, addonv1alpha1.ReasonProbeAvailable, "")
		require.Equal(t, addonv1alpha1.HealthCheckModeCustomized, a.Status.HealthCheck.Mode)
	}
	f.awaitProgress(t, "selected clusters 2. configured addons 2/2 completed with no errors, 0 failed 0 timeout.")

	// The configuration of one cluster is rendered there, and nowhere else.
	other := f.revision(t, c[1])
	f.settings(t, "mine")
	own := `{"spec":{"configs":[{"group":"addon.open-cluster-management.io","resource":"addondeploymentconfigs","namespace":"plain","name":"settings"}]}}`
	_, err := f.dyn.Resource(addons).Namespace(c[0]).Patch(t.Context(), "plain", types.MergePatchType, []byte(own), metav1.PatchOptions{})
	require.NoError(t, err)
	f.awaitDeployed(t, "one plain-0 mine", "one plain-1 ")
	f.applied(t, c[0])
	f.awaitSaid(t, c[0], addonv1alpha1.ConditionProgressing, addonv1alpha1.ReasonCompleted, "")
	require.Equal(t, other, f.revision(t, c[1]))

	// The agent of a cluster cannot choose what its cluster gets.
	config := rest.CopyConfig(f.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: clusterv1.UserPrefix + c[0] + ":a",
		Groups:   []string{clusterv1.UserPrefix + c[0], clusterv1.GroupManagedClusters},
	}
	evil, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	for _, try := range []struct{ body, refused string }{
		{
			`{"status":{"configReferences":[{"group":"addon.open-cluster-management.io","resource":"addondeploymentconfigs",
				"name":"private","namespace":"tenant-b",
				"desiredConfig":{"namespace":"tenant-b","name":"private","specHash":"made-up"}}]}}`,
			"cannot change status.configReferences, which the hub owns",
		},
		{
			`{"status":{"supportedConfigs":[{"group":"","resource":"configmaps"}]}}`,
			"cannot change status.supportedConfigs, which the hub owns",
		},
		{
			`{"status":{"registrations":[{"signerName":"example.com/x","subject":{"user":"system:admin"}}]}}`,
			"cannot add or remove status.registrations, which the hub owns",
		},
	} {
		soon(t, func() bool {
			_, err = evil.Resource(addons).Namespace(c[0]).Patch(t.Context(), "plain", types.MergePatchType, []byte(try.body), metav1.PatchOptions{}, "status")
			return apierrors.IsForbidden(err) && strings.Contains(err.Error(), try.refused)
		}, "%v", &err)
	}

	// A change of the template reaches all clusters; at rest, nothing is written.
	f.template(t, "two", "")
	f.awaitDeployed(t, "two plain-0 mine", "two plain-1 ")
	f.applied(t, c[0])
	f.applied(t, c[1])
	f.awaitProgress(t, "selected clusters 2. configured addons 2/2 completed with no errors, 0 failed 0 timeout.")
	rests(t, func() string { return f.revision(t, c[0]) + f.revision(t, c[1]) + f.instance(t, c[0]).ResourceVersion }, 2*time.Second)
	question := `AddOnTemplate plain: spec.agentSpec.workload.manifests[0] (ConfigMap default/a): "{{V}}" has no value ` +
		`and is replaced by nothing; set it in the customizedVariables of an AddOnDeploymentConfig`
	require.Equal(t, []string{question}, f.events(t, c[0], "ManifestsQuestionable"), "it was answered, and nothing is said twice")
	require.Equal(t, []string{question}, f.events(t, c[1], "ManifestsQuestionable"))
}

// revision returns the resource version of the work on a cluster.
func (f *fan) revision(t *testing.T, cluster string) string {
	t.Helper()
	u, err := f.dyn.Resource(works).Namespace(cluster).Get(t.Context(), f.work(), metav1.GetOptions{})
	require.NoError(t, err)
	return u.GetResourceVersion() + " "
}

// events returns the messages of Events with a reason about the add-on on a cluster.
func (f *fan) events(t *testing.T, cluster, reason string) []string {
	t.Helper()
	list, err := f.kube.EventsV1().Events(cluster).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	var out []string
	for i := range list.Items {
		if e := &list.Items[i]; e.Reason == reason && e.Regarding.Name == f.namespace {
			out = append(out, e.Note)
		}
	}
	return out
}

func TestATemplateIsRolledOutOneClusterAfterTheOther(t *testing.T) {
	f := newAddOnFan(t, "turns", 2)
	f.template(t, "one", "")
	f.place(t, "p", f.clusters...)
	f.offerTemplate(
		t,
		`{"type":"Placements","placements":[{"namespace":"turns","name":"p","rolloutStrategy":{"type":"Progressive","progressive":{"maxConcurrency":1}}}]}`,
	)
	f.awaitDeployed(t, "one turns-0 ", "")
	f.applied(t, f.clusters[0])
	f.awaitDeployed(t, "one turns-0 ", "one turns-1 ")
	f.applied(t, f.clusters[1])
	f.awaitProgress(t, "selected clusters 2. configured addons 2/2 completed with no errors, 0 failed 0 timeout.")
	f.template(t, "two", "")
	f.awaitDeployed(t, "two turns-0 ", "one turns-1 ")
	f.awaitSaid(t, f.clusters[1], addonv1alpha1.ConditionConfigured, addonv1alpha1.ReasonConfigurationsNotConfigured, "")
	require.Equal(t, "one turns-1 ", f.deployed(t, f.clusters[1]), "who waits keeps what it has")
	f.applied(t, f.clusters[0])
	f.awaitDeployed(t, "two turns-0 ", "two turns-1 ")
}

func TestWhatIsWrongWithATemplateIsSaid(t *testing.T) {
	f := newAddOnFan(t, "wrong", 1)
	f.place(t, "p", f.clusters...)
	f.offerTemplate(t, `{"type":"Placements","placements":[{"namespace":"wrong","name":"p"}]}`)
	const failed = addonv1alpha1.ReasonManifestWorkApplyFailed
	f.awaitSaid(t, f.clusters[0], addonv1alpha1.ConditionManifestApplied, failed, "AddOnTemplate wrong: does not exist; create it, or name another one")
	other := newFan(t, "rightful", 0)
	other.clusters = f.clusters
	other.template(t, "one", "")
	other.place(t, "p", other.clusters...)
	other.offerTemplate(t, `{"type":"Placements","placements":[{"namespace":"rightful","name":"p"}]}`)
	other.awaitDeployed(t, "one wrong-0 ")
	f.template(t, "one", `{"type":"CustomSigner","customSigner":{"signerName":"kubernetes.io/kube-apiserver-client","signingCA":{"name":"ca"}}}`)
	f.awaitSaid(
		t, f.clusters[0], addonv1alpha1.ConditionManifestApplied, failed,
		"AddOnTemplate wrong: spec.registration[0].customSigner.signerName: is the signer of the hub's API server; use the type KubeClient",
	)
	f.awaitSaid(t, f.clusters[0], addonv1alpha1.ConditionRegistrationApplied, addonv1alpha1.ReasonSetPermissionFailed, "spec.registration[0]")
	require.Empty(t, f.deployed(t, f.clusters[0]))
	other.template(t, "two", "")
	other.awaitDeployed(t, "two wrong-0 ")
	f.template(t, "one", "")
	f.awaitDeployed(t, "one wrong-0 ")
	require.Equal(t, "two wrong-0 ", other.deployed(t, f.clusters[0]), "an add-on of the same cluster is not disturbed")
}

// roles creates the roles of the agent of the fan: one for the namespace of its cluster,
// one in the namespace of the fan.
func (f *fan) roles(t *testing.T) {
	t.Helper()
	rules := []rbacv1.PolicyRule{{APIGroups: []string{addonv1alpha1.GroupName}, Resources: []string{"managedclusteraddons"}, Verbs: []string{"get", "list"}}}
	_, err := f.kube.RbacV1().ClusterRoles().Create(
		t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}, Rules: rules},
		metav1.CreateOptions{},
	)
	require.NoError(t, err)
	_, err = f.kube.RbacV1().Roles(f.namespace).Create(
		t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}, Rules: rules},
		metav1.CreateOptions{},
	)
	require.NoError(t, err)
}

// bound returns the bindings of the template for a cluster, as "namespace/name role".
func (f *fan) bound(t *testing.T, cluster string) []string {
	t.Helper()
	list, err := f.kube.RbacV1().RoleBindings("").List(t.Context(), metav1.ListOptions{
		LabelSelector: addonv1alpha1.LabelAddOnTemplateName + "," +
			addonv1alpha1.LabelAddOnName + "=" + f.namespace + "," +
			clusterv1.LabelClusterName + "=" + cluster,
	})
	require.NoError(t, err)
	var out []string
	for _, b := range list.Items {
		out = append(out, b.Namespace+"/"+b.Name+" "+b.RoleRef.Kind)
	}
	return out
}

// requestCertificate sends a certificate request, as the agent of a cluster does for the
// first registration of an instance.
func (f *fan) requestCertificate(t *testing.T, a *addonv1alpha1.ManagedClusterAddOn, as string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	wanted := a.Status.Registrations[0]
	der, err := x509.CreateCertificateRequest(
		rand.Reader,
		&x509.CertificateRequest{Subject: pkix.Name{CommonName: wanted.Subject.User, Organization: wanted.Subject.Groups}},
		key,
	)
	require.NoError(t, err)
	config := rest.CopyConfig(f.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: clusterv1.UserPrefix + as + ":agent", Groups: []string{"system:masters"}}
	kube, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	csr, err := kube.CertificatesV1().CertificateSigningRequests().Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "addon-" + a.Namespace + "-" + a.Name + "-", Labels: map[string]string{
			clusterv1.LabelClusterName: a.Namespace, addonv1alpha1.LabelAddOnName: a.Name,
		}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: wanted.SignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return csr.Name
}

func TestATemplateWithRegistration(t *testing.T) {
	f := newAddOnFan(t, "known", 2)
	f.roles(t)
	f.template(t, "one", `{"type":"KubeClient","kubeClient":{"hubPermissions":[{"type":"CurrentCluster","currentCluster":{"clusterRoleName":"known"}},
		{"type":"SingleNamespace","singleNamespace":{"namespace":"known","roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"known"}}}]}}`)
	f.place(t, "p", f.clusters...)
	f.offerTemplate(t, `{"type":"Placements","placements":[{"namespace":"known","name":"p"}]}`)
	f.awaitDeployed(t, "one known-0 ", "one known-1 ")
	a := f.awaitSaid(t, "known-0", addonv1alpha1.ConditionRegistrationApplied, addonv1alpha1.ReasonSetPermissionApplied, "")
	require.Equal(t, "system:open-cluster-management:cluster:known-0:addon:known:agent:known-agent", a.Status.Registrations[0].Subject.User)
	mine := []string{"known-0/open-cluster-management:known:clusterrole:agent ClusterRole", "known/open-cluster-management:known:role:agent:known-0 Role"}
	require.ElementsMatch(t, mine, f.bound(t, "known-0"))
	f.awaitSaid(t, "known-1", addonv1alpha1.ConditionRegistrationApplied, addonv1alpha1.ReasonSetPermissionApplied, "")

	foreign := f.requestCertificate(t, a, "known-1")
	own := f.requestCertificate(t, a, "known-0")
	soon(t, func() bool {
		verdict, reason := f.verdict(t, own)
		return verdict == "Approved" && reason == clusterv1.ReasonAutoApproved
	})
	verdict, _ := f.verdict(t, foreign)
	require.Empty(t, verdict, "the agent of another cluster gets nothing")

	// Deleting an instance removes what belongs to it, and nothing else.
	f.place(t, "p", "known-1")
	soon(t, func() bool { return f.instance(t, "known-0") == nil && len(f.bound(t, "known-0")) == 0 })
	f.awaitDeployed(t, "", "one known-1 ")
	require.Len(t, f.bound(t, "known-1"), 2)
}

// TestRightsOfAddOnsEndWithTheAcceptance checks that rights are removed with the
// acceptance. Certificates stay valid.
func TestRightsOfAddOnsEndWithTheAcceptance(t *testing.T) {
	f := newAddOnFan(t, "disowned", 2)
	f.roles(t)
	f.template(t, "one", `{"type":"KubeClient","kubeClient":{"hubPermissions":[{"type":"CurrentCluster","currentCluster":{"clusterRoleName":"disowned"}},
		{"type":"SingleNamespace","singleNamespace":{"namespace":"disowned","roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"disowned"}}}]}}`)
	f.place(t, "p", f.clusters...)
	f.offerTemplate(t, `{"type":"Placements","placements":[{"namespace":"disowned","name":"p"}]}`)
	for _, c := range f.clusters {
		f.awaitSaid(t, c, addonv1alpha1.ConditionRegistrationApplied, addonv1alpha1.ReasonSetPermissionApplied, "")
		require.Len(t, f.bound(t, c), 2)
	}
	f.accept(t, "disowned-0", false)
	a := f.awaitSaid(
		t, "disowned-0", addonv1alpha1.ConditionRegistrationApplied, addonv1alpha1.ReasonPermissionConfigPending,
		"until an administrator accepts it",
	)
	require.Empty(t, f.bound(t, "disowned-0"), "the rights go before it is said")
	require.Len(t, f.bound(t, "disowned-1"), 2, "others keep theirs")
	late := f.requestCertificate(t, a, "disowned-0")
	verdict := func() string {
		said, _ := f.verdict(t, late)
		return said
	}
	rests(t, verdict, time.Second)
	require.Empty(t, verdict())

	f.accept(t, "disowned-0", true)
	f.awaitSaid(t, "disowned-0", addonv1alpha1.ConditionRegistrationApplied, addonv1alpha1.ReasonSetPermissionApplied, "")
	require.Len(t, f.bound(t, "disowned-0"), 2)
	soon(t, func() bool { return verdict() == "Approved" })
}

func TestARightThatTheHubMayNotGiveIsSaidWithTheCommand(t *testing.T) {
	f := newAddOnFan(t, "strong", 1)
	_, err := f.kube.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "strong"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	f.template(t, "one", `{"type":"KubeClient","kubeClient":{"hubPermissions":[{"type":"CurrentCluster","currentCluster":{"clusterRoleName":"strong"}}]}}`)
	f.offerTemplate(t, `{"type":"Manual"}`)
	f.addon(t, "strong-0", "strong")
	a := f.awaitSaid(t, "strong-0", addonv1alpha1.ConditionRegistrationApplied, addonv1alpha1.ReasonSetPermissionFailed,
		"kubectl -n strong-0 create rolebinding open-cluster-management:strong:clusterrole:agent --clusterrole=strong --user=")
	f.awaitDeployed(t, "one strong-0 ")

	// A chart grants the add-on manager what its agent needs: the hub notices the grant,
	// and keeps it.
	charted := newAddOnFan(t, "charted", 1)
	rules := []rbacv1.PolicyRule{{APIGroups: []string{"example.com"}, Resources: []string{"things"}, Verbs: []string{"get"}}}
	_, err = f.kube.RbacV1().ClusterRoles().Create(
		t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "charted"}, Rules: rules},
		metav1.CreateOptions{},
	)
	require.NoError(t, err)
	charted.template(t, "one", `{"type":"KubeClient","kubeClient":{"hubPermissions":[{"type":"CurrentCluster","currentCluster":{"clusterRoleName":"charted"}}]}}`)
	charted.offerTemplate(t, `{"type":"Manual"}`)
	charted.addon(t, "charted-0", "charted")
	charted.awaitSaid(
		t, "charted-0", addonv1alpha1.ConditionRegistrationApplied, addonv1alpha1.ReasonSetPermissionFailed,
		"create rolebinding open-cluster-management:charted:clusterrole:agent",
	)
	_, err = f.kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "charted"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "charted"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "open-cluster-management-hub", Name: "addon-manager-controller-sa"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	charted.awaitSaid(t, "charted-0", addonv1alpha1.ConditionRegistrationApplied, addonv1alpha1.ReasonSetPermissionApplied, "")
	require.Len(t, charted.bound(t, "charted-0"), 1)

	// A user with the right binds the role by hand.
	var subjects []rbacv1.Subject
	subjects = append(subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: a.Status.Registrations[0].Subject.User},
		rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "Group", Name: a.Status.Registrations[0].Subject.Groups[0]})
	_, err = f.kube.RbacV1().RoleBindings("strong-0").Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "open-cluster-management:strong:clusterrole:agent"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "strong"}, Subjects: subjects,
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	f.awaitSaid(t, "strong-0", addonv1alpha1.ConditionRegistrationApplied, addonv1alpha1.ReasonSetPermissionApplied, "")
}

func TestHooksOfATemplateRunThoughAllOfTheAddOnIsDeleted(t *testing.T) {
	f := newAddOnFan(t, "hooked", 1)
	f.write(t, templates, `{"apiVersion":"addon.open-cluster-management.io/v1alpha1","kind":"AddOnTemplate","metadata":{"name":"hooked"},
		"spec":{"addonName":"hooked","agentSpec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap",
		"metadata":{"namespace":"default","name":"a"},"data":{"value":"one"}},
		{"apiVersion":"batch/v1","kind":"Job","metadata":{"namespace":"default","name":"bye","annotations":{"addon.open-cluster-management.io/addon-pre-delete":""}},
		"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"a","image":"a"}]}}}}]}}}}`)
	offer := `{"apiVersion":"addon.open-cluster-management.io/v1alpha1","kind":"ClusterManagementAddOn","metadata":{"name":"hooked"},"spec":{
		"supportedConfigs":[{"group":"addon.open-cluster-management.io","resource":"addontemplates","defaultConfig":{"name":"hooked"}}]}}`
	f.write(t, clusterAddOns, offer)
	f.addon(t, "hooked-0", "hooked")
	f.awaitDeployed(t, "one  ")
	soon(t, func() bool {
		a := f.instance(t, "hooked-0")
		return len(a.Finalizers) == 1 && len(a.OwnerReferences) == 1
	})
	require.NoError(t, f.dyn.Resource(clusterAddOns).Delete(t.Context(), "hooked", metav1.DeleteOptions{}))
	require.NoError(t, f.dyn.Resource(templates).Delete(t.Context(), "hooked", metav1.DeleteOptions{}))
	f.awaitSaid(t, "hooked-0", addonv1alpha1.ConditionHookManifestCompleted, addonv1alpha1.ReasonHookNotCompleted, "")
	f.hookRan(t, "hooked-0", "default", "bye")
	soon(t, func() bool { return f.instance(t, "hooked-0") == nil })
	var last *unstructured.UnstructuredList
	soon(t, func() bool {
		var err error
		last, err = f.dyn.Resource(works).Namespace("hooked-0").List(t.Context(), metav1.ListOptions{})
		return err == nil && len(last.Items) == 0
	}, "%+v", &last)
}

// hookRan reports the Job of the hook as complete, as the agent of a cluster does.
func (f *fan) hookRan(t *testing.T, cluster, namespace, job string) {
	t.Helper()
	body := fmt.Sprintf(`{"status":{"conditions":[
		{"type":"Applied","status":"True","reason":"R","message":"","lastTransitionTime":"2030-01-01T00:00:00Z"},
		{"type":"Available","status":"True","reason":"R","message":"","lastTransitionTime":"2030-01-01T00:00:00Z"}],"resourceStatus":{"manifests":[
		{"resourceMeta":{"ordinal":0,"group":"batch","version":"v1","kind":"Job","resource":"jobs","namespace":%q,"name":%q},"conditions":[],
		"statusFeedback":{"values":[{"name":"JobComplete","fieldValue":{"type":"String","string":"True"}}]}}]}}}`, namespace, job)
	soon(t, func() bool {
		_, err := f.dyn.Resource(works).Namespace(cluster).Patch(
			t.Context(), "addon-"+f.namespace+"-pre-delete", types.MergePatchType, []byte(body),
			metav1.PatchOptions{}, "status",
		)
		return err == nil
	})
}

// TestWhoWritesATemplateHasTheRightsThatItGives checks that the right to write templates
// is not a way to other rights, although the hub binds roles for templates with its own.
func TestWhoWritesATemplateHasTheRightsThatItGives(t *testing.T) {
	f := newAddOnFan(t, "modest", 0)
	rbac := f.kube.RbacV1()
	grant := func(name string, rule rbacv1.PolicyRule) {
		t.Helper()
		meta := metav1.ObjectMeta{Name: name}
		_, err := rbac.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}}, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = rbac.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "modest"}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	grant("modest-author", rbacv1.PolicyRule{
		APIGroups: []string{addonv1alpha1.GroupName},
		Resources: []string{"addontemplates"},
		Verbs:     []string{"create", "get", "patch"},
	})
	config := rest.CopyConfig(f.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "modest"}
	author, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	written := func(registration string) *unstructured.Unstructured {
		return decoded(t, `{"apiVersion":"addon.open-cluster-management.io/v1alpha1","kind":"AddOnTemplate","metadata":{"name":"modest"},
			"spec":{"addonName":"modest","registration":[`+registration+`],
				"agentSpec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"a"}}]}}}}`)
	}
	const strong = `{"type":"KubeClient","kubeClient":{"hubPermissions":[{"type":"CurrentCluster","currentCluster":{"clusterRoleName":"cluster-manager"}}]}}`
	refused := func(try func() error) {
		t.Helper()
		soon(t, func() bool {
			err = try()
			return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot have the hub bind ClusterRole cluster-manager in the namespace of every cluster")
		}, "%v", &err)
	}
	refused(func() error {
		_, err := author.Resource(templates).Create(t.Context(), written(strong), metav1.CreateOptions{})
		return err
	})
	_, err = author.Resource(templates).Create(t.Context(), written(`{"type":"KubeClient"}`), metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, f.dyn.Resource(templates).Delete(context.Background(), "modest", metav1.DeleteOptions{}))
	})
	change := func() error {
		_, err := author.Resource(templates).Patch(
			t.Context(), "modest", types.MergePatchType, []byte(`{"spec":{"registration":[`+strong+`]}}`),
			metav1.PatchOptions{},
		)
		return err
	}
	refused(change)
	grant("modest-binder", rbacv1.PolicyRule{
		APIGroups:     []string{rbacv1.GroupName},
		Resources:     []string{"clusterroles"},
		ResourceNames: []string{"cluster-manager"},
		Verbs:         []string{"bind"},
	})
	settled(t, change)
}
