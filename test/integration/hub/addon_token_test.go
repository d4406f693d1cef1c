// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// wantAccess requests access to the hub for the agent of an add-on, as its controller
// does.
func (s *scene) wantAccess(t *testing.T, cluster, addOn string) {
	t.Helper()
	const body = `{"status":{"registrations":[{"signerName":"kubernetes.io/kube-apiserver-client","subject":{"user":"u"}}]}}`
	_, err := s.dyn.Resource(addons).Namespace(cluster).Patch(t.Context(), addOn, types.MergePatchType, []byte(body), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
}

// drive reports the driver with which the agent of a cluster registers an add-on that
// wants access to the hub.
func (a *agent) drive(t *testing.T, cluster, addOn, driver string) {
	t.Helper()
	user := ""
	if driver == "token" {
		user = "system:serviceaccount:" + cluster + ":" + addOn + "-agent"
	}
	body := fmt.Sprintf(
		`{"status":{"kubeClientDriver":%q,"registrations":[{"signerName":"kubernetes.io/kube-apiserver-client","subject":{"user":%q}}]}}`,
		driver, user,
	)
	settled(t, func() error {
		_, err := a.dyn.Resource(addons).Namespace(cluster).Patch(t.Context(), addOn, types.MergePatchType, []byte(body), metav1.PatchOptions{}, "status")
		return err
	})
}

// infrastructure returns the condition for the token driver of an add-on; nil when there
// is none.
func (s *scene) infrastructure(t *testing.T, cluster, addOn string) *metav1.Condition {
	t.Helper()
	a, err := typed.Get[addonv1alpha1.ManagedClusterAddOn](t.Context(), s.dyn, addons, cluster, addOn)
	require.NoError(t, err)
	return apimeta.FindStatusCondition(a.Status.Conditions, addonv1alpha1.ConditionTokenInfrastructureReady)
}

// awaitAccount waits until the hub reports the account of an add-on as ready, and returns
// its UID. An account with the UID before does not count.
func (s *scene) awaitAccount(t *testing.T, cluster, addOn string, before types.UID) types.UID {
	t.Helper()
	var last *metav1.Condition
	var uid types.UID
	soon(t, func() bool {
		account, err := s.kube.CoreV1().ServiceAccounts(cluster).Get(t.Context(), addOn+"-agent", metav1.GetOptions{})
		if err != nil || account.UID == before {
			return false
		}
		last, uid = s.infrastructure(t, cluster, addOn), account.UID
		return last != nil && last.Status == metav1.ConditionTrue && last.Message == fmt.Sprintf("ServiceAccount %s/%s-agent (UID: %s) is ready", cluster, addOn, uid)
	}, "add-on %s of %s has no account: %+v", addOn, cluster, &last)
	return uid
}

// allowTokens gives the hub's own account the rights of the token driver, for loops that
// run without the account of the add-on manager.
func (s *scene) allowTokens(t *testing.T) {
	t.Helper()
	_, err := s.kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: hub.TokenDriverRole},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: hub.TokenDriverRole},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: hub.Namespace, Name: hub.Name}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// narrow limits the add-on manager to narrow rights, and returns a function that undoes
// that.
func (s *scene) narrow(t *testing.T) (widen func()) {
	t.Helper()
	bindings := s.dyn.Resource(rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings"))
	apply := func(narrow bool) {
		objects, err := hub.Objects(hub.Options{Image: image + ":" + tag, Version: tag, NarrowAddOnRights: narrow})
		require.NoError(t, err)
		for _, u := range objects {
			if u.GetName() == hub.AddOnAgentsBinding && u.GetKind() == "ClusterRoleBinding" {
				_, err = bindings.Apply(t.Context(), u.GetName(), u, metav1.ApplyOptions{FieldManager: "test", Force: true})
				require.NoError(t, err)
			}
		}
	}
	apply(true)
	return func() { apply(false) }
}

// refusesTokens checks that only the add-on manager issues tokens: the right to create
// tokens allows acting as any account, so that the hub's own account does not have it. On
// a hub with narrow rights, the add-on manager does not have it either, and the condition
// tells an administrator how to grant it. The hub notices the grant.
func (s *scene) refusesTokens(t *testing.T) {
	t.Helper()
	a := s.register(t, "token-refused", "a")
	widen := s.narrow(t)
	s.addon(t, "token-refused", "web")
	s.wantAccess(t, "token-refused", "web")
	a.drive(t, "token-refused", "web", "token")
	soon(t, func() bool {
		c := s.infrastructure(t, "token-refused", "web")
		return c != nil && c.Status == metav1.ConditionFalse && c.Reason == "TokenInfrastructureApplyFailed"
	}, "the missing right is not reported")
	require.Contains(t, s.infrastructure(t, "token-refused", "web").Message,
		`grant them with "kubectl create clusterrolebinding cluster-manager-token-driver `+
			`--clusterrole=cluster-manager-token-driver --serviceaccount=open-cluster-management-hub:addon-manager-controller-sa"`)
	s.bare(t, "token-refused", "web")
	widen()
	s.awaitAccount(t, "token-refused", "web", "")
	_, process := clients(t, s.As(t, hub.Namespace, hub.Name))
	_, err := askToken(t, process, "token-refused", "default")
	require.True(t, apierrors.IsForbidden(err), err)
}

// askToken requests a token of an account with a client.
func askToken(t *testing.T, kube kubernetes.Interface, namespace, account string) (string, error) {
	t.Helper()
	answer, err := kube.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return answer.Status.Token, nil
}

// awaitToken requests a token until the rights of the client take effect.
func awaitToken(t *testing.T, kube kubernetes.Interface, namespace, account string) (text string) {
	t.Helper()
	settled(t, func() (err error) {
		text, err = askToken(t, kube, namespace, account)
		return err
	})
	return text
}

// bearer returns a client with a token.
func (s *scene) bearer(t *testing.T, text string) kubernetes.Interface {
	t.Helper()
	config := rest.AnonymousClientConfig(s.Config)
	config.BearerToken = text
	_, kube := clients(t, config)
	return kube
}

// whoIs returns the user of a client; empty when it is not authenticated.
func whoIs(t *testing.T, kube kubernetes.Interface) string {
	t.Helper()
	answer, err := kube.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if apierrors.IsUnauthorized(err) {
		return ""
	}
	require.NoError(t, err)
	return answer.Status.UserInfo.Username
}

// bare waits until nothing of the token driver is left for an add-on.
func (s *scene) bare(t *testing.T, cluster, addOn string) {
	t.Helper()
	soon(t, func() bool {
		_, account := s.kube.CoreV1().ServiceAccounts(cluster).Get(t.Context(), addOn+"-agent", metav1.GetOptions{})
		_, role := s.kube.RbacV1().Roles(cluster).Get(t.Context(), addOn+"-token-role", metav1.GetOptions{})
		_, binding := s.kube.RbacV1().RoleBindings(cluster).Get(t.Context(), addOn+"-token-role", metav1.GetOptions{})
		return apierrors.IsNotFound(account) && apierrors.IsNotFound(role) && apierrors.IsNotFound(binding)
	}, "of %s on %s something is left", addOn, cluster)
}

// TestAnAgentGetsTokensOfItsOwnAddOnsOnly uses real agents with their certificates; the
// name of one cluster is a prefix of the other's.
func TestAnAgentGetsTokensOfItsOwnAddOnsOnly(t *testing.T) {
	s := ownHub(t)
	s.refusesTokens(t)
	one, ten := s.register(t, "token1", "a"), s.register(t, "token10", "a")
	for cluster, a := range map[string]*agent{"token1": one, "token10": ten} {
		for addOn, driver := range map[string]string{"web": "token", "db": "csr"} {
			s.addon(t, cluster, addOn)
			s.wantAccess(t, cluster, addOn)
			a.drive(t, cluster, addOn, driver)
		}
	}
	first := s.awaitAccount(t, "token1", "web", "")
	other := s.awaitAccount(t, "token10", "web", "")
	require.Nil(t, s.infrastructure(t, "token1", "db"))
	s.bare(t, "token1", "db")
	mine := s.bearer(t, awaitToken(t, one.kube, "token1", "web-agent"))
	theirs := s.bearer(t, awaitToken(t, ten.kube, "token10", "web-agent"))
	require.Equal(t, "system:serviceaccount:token1:web-agent", whoIs(t, mine))
	require.Equal(t, "system:serviceaccount:token10:web-agent", whoIs(t, theirs))

	for who, kube := range map[string]kubernetes.Interface{
		"the agent of token1":                          one.kube,
		"the agent of token10":                         ten.kube,
		"the add-on web of token1":                     mine,
		"the add-on web of token10":                    theirs,
		"an agent that came in by an EKS access entry": s.as(t, "e", "open-cluster-management:token1"),
		"all agents":                                   s.as(t, "e", "system:open-cluster-management:managed-clusters"),
	} {
		for _, account := range [][2]string{
			{
				"token1",
				"web-agent",
			}, {
				"token10",
				"web-agent",
			}, {
				"token1",
				"db-agent",
			}, {
				"token10",
				"db-agent",
			}, {
				"token1",
				"default",
			}, {
				"token10",
				"default",
			},
			{"token1", "web"}, {"open-cluster-management", "cluster-manager"}, {"kube-system", "default"},
		} {
			own := account == [2]string{"token1", "web-agent"} && (who == "the agent of token1" || who == "an agent that came in by an EKS access entry") ||
				account == [2]string{"token10", "web-agent"} && who == "the agent of token10"
			if _, err := askToken(t, kube, account[0], account[1]); own {
				require.NoError(t, err, "%s asks for %v", who, account)
			} else {
				require.True(t, apierrors.IsForbidden(err), "%s asks for %v: %v", who, account, err)
			}
		}
	}
	// At rest, nothing is written.
	rests(t, func() string {
		a, err := s.dyn.Resource(addons).Namespace("token1").Get(t.Context(), "web", metav1.GetOptions{})
		require.NoError(t, err)
		return a.GetResourceVersion()
	}, 2*time.Second)

	// The account is deleted: the hub creates another one, and the token of the first is
	// no longer valid.
	require.NoError(t, s.kube.CoreV1().ServiceAccounts("token1").Delete(t.Context(), "web-agent", metav1.DeleteOptions{}))
	second := s.awaitAccount(t, "token1", "web", first)
	soon(t, func() bool { return whoIs(t, mine) == "" }, "the old token is still good")
	require.NoError(t, s.kube.RbacV1().Roles("token1").Delete(t.Context(), "web-token-role", metav1.DeleteOptions{}))
	mine = s.bearer(t, awaitToken(t, one.kube, "token1", "web-agent"))

	// The driver changes, and changes back.
	one.drive(t, "token1", "web", "csr")
	s.bare(t, "token1", "web")
	soon(t, func() bool { return s.infrastructure(t, "token1", "web") == nil && whoIs(t, mine) == "" })
	one.drive(t, "token1", "web", "token")
	third := s.awaitAccount(t, "token1", "web", second)
	mine = s.bearer(t, awaitToken(t, one.kube, "token1", "web-agent"))

	// What the cluster was given ends with its acceptance.
	s.accept(t, "token1", false)
	s.bare(t, "token1", "web")
	soon(t, func() bool {
		c := s.infrastructure(t, "token1", "web")
		return c.Status == metav1.ConditionFalse && c.Reason == "TokenInfrastructureApplyFailed" && whoIs(t, mine) == ""
	})
	require.Contains(t, s.infrastructure(t, "token1", "web").Message, "cluster token1 is not accepted")
	s.accept(t, "token1", true)
	s.awaitAccount(t, "token1", "web", third)

	// The add-on goes.
	require.NoError(t, s.dyn.Resource(addons).Namespace("token1").Delete(t.Context(), "web", metav1.DeleteOptions{}))
	s.bare(t, "token1", "web")
	require.Equal(t, other, s.awaitAccount(t, "token10", "web", ""), "the other cluster was not concerned")
	require.Equal(t, "system:serviceaccount:token10:web-agent", whoIs(t, theirs))
}

// TestAnAccountOfSomebodyElseIsNotHandedOut checks that the agent gets no token of an
// account that the hub did not create, which may have more rights than the add-on should.
func TestAnAccountOfSomebodyElseIsNotHandedOut(t *testing.T) {
	s := sharedHub(t) // a refusal needs no rights
	a := s.register(t, "token-foreign", "a")
	_, err := s.kube.CoreV1().ServiceAccounts("token-foreign").Create(
		t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "web-agent"}},
		metav1.CreateOptions{},
	)
	require.NoError(t, err)
	s.addon(t, "token-foreign", "web")
	s.wantAccess(t, "token-foreign", "web")
	a.drive(t, "token-foreign", "web", "token")
	soon(t, func() bool {
		c := s.infrastructure(t, "token-foreign", "web")
		return c != nil && c.Status == metav1.ConditionFalse
	})
	require.Contains(t, s.infrastructure(t, "token-foreign", "web").Message, "serviceaccounts token-foreign/web-agent exists and was created by others")
	_, err = askToken(t, a.kube, "token-foreign", "web-agent")
	require.True(t, apierrors.IsForbidden(err), err)
	account, err := s.kube.CoreV1().ServiceAccounts("token-foreign").Get(t.Context(), "web-agent", metav1.GetOptions{})
	require.NoError(t, err)
	require.Empty(t, account.Labels)
}
