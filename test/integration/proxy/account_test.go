// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/proxy/caller"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/serviceaccount/origin"
	"github.com/kubectl-ocm/kubectl-ocm/internal/tunnel"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// addOns is the namespace of the accounts on the managed cluster.
const addOns = operatorv1.NamespaceAgentAddOn

// apart returns an agent on the managed cluster that has the rights of the tunnel and of registration, and
// none of works: what it does as accounts, it does with the rights of the gate.
func (s *scene) apart(t *testing.T, name string) *rest.Config {
	t.Helper()
	config := s.spoke.As(t, operatorv1.NamespaceAgent, manifests.RegistrationAccount(name))
	rights, err := manifests.Rights(manifests.Agent{Klusterlet: name, Namespace: operatorv1.NamespaceAgent, Apart: true, Proxy: true})
	require.NoError(t, err)
	for _, u := range rights {
		apply(t, s.spoke.Dynamic(t), u)
	}
	return config
}

// account makes a ServiceAccount on the managed cluster with the marks of one that was created for a hub.
func (s *scene) account(t *testing.T, namespace, name, hub string) {
	t.Helper()
	u := decode(t, fmt.Sprintf(`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"namespace":"%s","name":"%s"}}`, namespace, name))
	if hub != "" {
		labels, annotations := origin.Marks(origin.Hub(hub))
		u.SetLabels(labels)
		u.SetAnnotations(annotations)
	}
	apply(t, s.spoke.Dynamic(t), u)
}

// admit lets a user of the hub act as accounts of a cluster, or as all of them without names.
func (s *scene) admit(t *testing.T, user, cluster string, accounts ...string) {
	t.Helper()
	apply(t, s.dyn, decode(t, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+cluster+`"}}`))
	ref := map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": connectv1alpha1.RoleAccounts}
	if len(accounts) > 0 {
		ref["kind"], ref["name"] = "Role", "as-"+user
		apply(t, s.dyn, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": map[string]any{"namespace": cluster, "name": "as-" + user},
			"rules": []any{map[string]any{
				"apiGroups": []any{connectv1alpha1.GroupName}, "resources": []any{"managedserviceaccounts/proxy"}, "resourceNames": list(accounts),
				"verbs": []any{"get", "create"},
			}},
		}})
	}
	apply(t, s.dyn, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": map[string]any{"namespace": cluster, "name": "as-" + user},
		"roleRef": ref, "subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}},
	}})
}

// as is the configuration that leads to a cluster as one of its accounts.
func as(config *rest.Config, cluster, account string) *rest.Config {
	out := rest.CopyConfig(config)
	out.Host += connectv1alpha1.AccountPath(cluster, account)
	return out
}

// TestAnAccountIsUsedWithItsRightsAndNoMore: whoever may act as it on the hub is that account on the cluster, in all
// that its API server sees.
func TestAnAccountIsUsedWithItsRightsAndNoMore(t *testing.T) {
	s := start(t)
	s.join(t, "used")
	s.connectTo(t, "used", s.apart(t, "used"))
	s.account(t, addOns, "used-robot", s.hub.Config.Host)
	s.admit(t, "ulla", "used")
	config := as(s.personConfig(t, "ulla", "system:masters-of-nothing"), "used", "used-robot")
	who := awaitSelf(t, config)
	token, err := s.clientset(t, s.spoke.Config).CoreV1().ServiceAccounts(addOns).
		CreateToken(t.Context(), "used-robot", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	direct := rest.AnonymousClientConfig(s.spoke.Config)
	direct.BearerToken = token.Status.Token
	self, err := whoami(t, direct)
	require.NoError(t, err)
	require.Equal(t, "system:serviceaccount:"+addOns+":used-robot", who.Username)
	require.Equal(t, self.Username, who.Username)
	require.Equal(t, self.UID, who.UID)
	require.ElementsMatch(t, self.Groups, who.Groups, "as with a token of the account")
	require.Empty(t, who.Extra, "nothing of the user of the hub")

	client := s.clientset(t, config)
	_, err = client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, `User "system:serviceaccount:`+addOns+`:used-robot" cannot list resource "configmaps"`)
	apply(t, s.spoke.Dynamic(t), decode(t, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding",
		"metadata":{"namespace":"default","name":"used-robot"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"},
		"subjects":[{"kind":"ServiceAccount","namespace":"`+addOns+`","name":"used-robot"}]}`))
	soon(t, func() error {
		_, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
		return err
	})
	_, err = client.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	watched, err := client.CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	defer watched.Stop()
	require.NotEmpty(t, (<-watched.ResultChan()).Type)
}

// TestTheHubDecidesWhoActsAsWhichAccount by rights in the namespace of the cluster; those to the cluster are others.
func TestTheHubDecidesWhoActsAsWhichAccount(t *testing.T) {
	s := start(t)
	spoke := s.apart(t, "chosen")
	for _, cluster := range []string{"chosen", "chosen-not"} {
		s.join(t, cluster)
		s.connectTo(t, cluster, spoke)
	}
	for _, name := range []string{"chosen-a", "chosen-b"} {
		s.account(t, addOns, name, s.hub.Config.Host)
	}
	s.admit(t, "olga", "chosen", "chosen-a")
	s.allow(t, "User", "oscar", "chosen")
	olga := s.personConfig(t, "olga")
	awaitSelf(t, as(olga, "chosen", "chosen-a"))
	awaitSelf(t, through(s.personConfig(t, "oscar"), "chosen"))
	for name, config := range map[string]*rest.Config{
		"another account":          as(olga, "chosen", "chosen-b"),
		"another cluster":          as(olga, "chosen-not", "chosen-a"),
		"the cluster as herself":   through(olga, "chosen"),
		"a user of the cluster":    as(s.personConfig(t, "oscar"), "chosen", "chosen-a"),
		"a user who may do naught": as(s.personConfig(t, "otto"), "chosen", "chosen-a"),
	} {
		_, err := whoami(t, config)
		require.True(t, apierrors.IsForbidden(err), "%s: %v", name, err)
		require.ErrorContains(t, err, `in API group "connect.open-cluster-management.io"`, name)
	}
	_, err := s.clientset(t, as(olga, "chosen", "chosen-a")).CoreV1().ConfigMaps("default").
		Patch(t.Context(), "x", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
	require.ErrorContains(t, err, `cannot patch resource "managedserviceaccounts/proxy"`, "the verbs of the role count")
	for _, path := range []string{
		connectv1alpha1.AccountPath("chosen", "chosen-a") + "/../../chosen-b/proxy/version",
		connectv1alpha1.AccountPath("chosen", "chosen-a") + "/%2e%2e/%2e%2e/chosen-b/proxy/version",
		connectv1alpha1.AccountPath("chosen", "chosen-a%2f..%2fchosen-b") + "/version",
		connectv1alpha1.PathNamespaces + "chosen/../chosen-not/managedserviceaccounts/chosen-a/proxy/version",
	} {
		answer := raw(t, olga, http.MethodGet, path, nil)
		require.NotEqual(t, http.StatusOK, answer.StatusCode, path)
	}
}

// TestTheAgentActsAsNoAccountOfOthers: those of the cluster, of another hub, and of other namespaces, for whoever may
// act as every account of the cluster; and as none once the ServiceAccount is gone.
func TestTheAgentActsAsNoAccountOfOthers(t *testing.T) {
	s := start(t)
	s.join(t, "foreign")
	s.connectTo(t, "foreign", s.apart(t, "foreign"))
	s.account(t, addOns, "foreign-ours", s.hub.Config.Host)
	s.account(t, addOns, "foreign-theirs", "https://another.example.org:6443")
	s.account(t, addOns, "foreign-plain", "")
	s.account(t, "default", "foreign-elsewhere", s.hub.Config.Host)
	s.admit(t, "fred", "foreign")
	fred := s.personConfig(t, "fred")
	awaitSelf(t, as(fred, "foreign", "foreign-ours"))
	for _, name := range []string{"foreign-theirs", "foreign-plain"} {
		_, err := whoami(t, as(fred, "foreign", name))
		requireCause(t, err, http.StatusForbidden, connectv1alpha1.CauseAccountRefused)
	}
	for _, name := range []string{"foreign-elsewhere", "foreign-nobody"} {
		_, err := whoami(t, as(fred, "foreign", name))
		requireCause(t, err, http.StatusNotFound, connectv1alpha1.CauseUnknownAccount)
		require.ErrorContains(t, err, "no ServiceAccount "+addOns+"/"+name)
	}
	accounts := s.clientset(t, s.spoke.Config).CoreV1().ServiceAccounts(addOns)
	require.NoError(t, accounts.Delete(t.Context(), "foreign-ours", metav1.DeleteOptions{}))
	_, err := whoami(t, as(fred, "foreign", "foreign-ours"))
	requireCause(t, err, http.StatusNotFound, connectv1alpha1.CauseUnknownAccount)
}

// TestNoHeaderChangesTheAccount: neither those by which users act for others, which need their own right on the hub, nor
// those in which identities travel.
func TestNoHeaderChangesTheAccount(t *testing.T) {
	s := start(t)
	s.join(t, "headers")
	s.connectTo(t, "headers", s.apart(t, "headers"))
	s.account(t, addOns, "headers-robot", s.hub.Config.Host)
	s.admit(t, "hedy", "headers")
	config := as(s.personConfig(t, "hedy"), "headers", "headers-robot")
	awaitSelf(t, config)
	other := rest.CopyConfig(config)
	other.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:kube-system:clusterrole-aggregation-controller"}
	_, err := whoami(t, other)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, `User "hedy" cannot impersonate`)
	who := func(head http.Header) (*http.Response, string) {
		answer := raw(t, s.personConfig(t, "hedy"), http.MethodGet, connectv1alpha1.AccountPath("headers", "headers-robot")+"/api/v1/nodes", head)
		return answer, answer.Header.Get(connectv1alpha1.HeaderError)
	}
	smuggled := http.Header{}
	require.NoError(t, caller.Caller{User: "ada"}.Set(smuggled))
	smuggled.Set("X-Remote-User", "system:admin")
	smuggled.Set("X-Remote-Group", "system:masters")
	answer, cause := who(smuggled)
	require.Equal(t, http.StatusForbidden, answer.StatusCode)
	require.Empty(t, cause, "the cluster itself refuses the account, which may not list nodes")
	answer, cause = who(http.Header{"Impersonate-Something": {"system:admin"}})
	require.Equal(t, http.StatusForbidden, answer.StatusCode)
	require.Equal(t, connectv1alpha1.CauseIdentityRefused, cause)
}

// TestAnAgentThatKnowsNoAccountsIsNotAsked: the hub tells by the version that the agent offers, and sends nothing.
func TestAnAgentThatKnowsNoAccountsIsNotAsked(t *testing.T) {
	s := start(t)
	s.join(t, "elder")
	s.admit(t, "edda", "elder")
	link := s.link(t, "elder", "one")
	defer link.Close()
	conn := s.upgraded(t, link, "elder")
	defer func() { _ = conn.Close() }()
	require.NoError(t, tunnel.WriteHello(conn, tunnel.Hello{Versions: []int{1}, Program: "v0.0.1"}))
	hello, err := tunnel.ReadHello(conn)
	require.NoError(t, err)
	require.Equal(t, 1, hello.Version)
	s.awaitTunnel(t, "elder", true)
	soon(t, func() error {
		_, err = whoami(t, as(s.personConfig(t, "edda"), "elder", "robot"))
		if apierrors.IsForbidden(err) { // the right does not count yet
			return err
		}
		return nil
	})
	requireCause(t, err, http.StatusNotImplemented, connectv1alpha1.CauseAgentTooOld)
	require.ErrorContains(t, err, "the agent of cluster elder is too old to serve accounts")
}

func (s *scene) clientset(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client
}
