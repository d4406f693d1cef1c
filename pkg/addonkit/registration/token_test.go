// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// tokens is the hub as far as the token driver is concerned.
type tokens struct {
	TokenState
	account *corev1.ServiceAccount
	role    *rbacv1.Role
	binding *rbacv1.RoleBinding
	// uid is that of the next account to be created.
	uid types.UID
}

// tokenState is an instance under the token driver.
func tokenState() *tokens {
	s := state()
	s.AddOn.Status.KubeClientDriver = addonv1alpha1.DriverTypeToken
	s.AddOn.Status.Registrations = []addonv1alpha1.RegistrationConfig{{SignerName: kube}, {SignerName: "example.com/s"}}
	s.Cluster.Spec.HubAcceptsClient = true
	return &tokens{TokenState: TokenState{AddOn: s.AddOn, Cluster: s.Cluster, Allow: "allow it", Now: start}, uid: "uid-1"}
}

// decide plans for the current state.
func (s *tokens) decide() reconcile.Plan {
	s.Account, s.Role, s.Binding = nil, nil, nil
	if s.account != nil {
		p, _ := ReadTokenAccount(s.account)
		s.Account = &p
	}
	if s.role != nil {
		p, _ := ReadTokenRole(s.role)
		s.Role = &p
	}
	if s.binding != nil {
		p, _ := ReadTokenBinding(s.binding)
		s.Binding = &p
	}
	return DecideToken(s.TokenState)
}

// settle decides, and carries out the plan.
func (s *tokens) settle(t *testing.T) reconcile.Plan {
	t.Helper()
	p := s.decide()
	drop := func(at reconcile.Target) {
		switch at.Resource {
		case accountsResource:
			s.account = nil
		case rolesResource:
			s.role = nil
		case bindingsResource:
			s.binding = nil
		}
	}
	for _, w := range p.Writes {
		switch w := w.(type) {
		case reconcile.Remove:
			drop(w.Target)
			continue
		case reconcile.Patch:
			s.account.Labels = map[string]string{}
			for key, value := range w.Body["metadata"].(map[string]any)["labels"].(map[string]any) {
				s.account.Labels[key] = value.(string)
			}
			continue
		}
		switch o := w.(reconcile.Create).Object.(type) {
		case *corev1.ServiceAccount:
			require.Nil(t, s.account)
			s.account, o.UID = o, s.uid
		case *rbacv1.Role:
			require.Nil(t, s.role)
			s.role = o
		case *rbacv1.RoleBinding:
			require.Nil(t, s.binding)
			s.binding = o
		}
	}
	if p.Object != nil {
		s.AddOn = object(t, p)
	}
	return p
}

// steps are the writes of a plan in words.
func steps(p reconcile.Plan) (out []string) {
	for _, w := range p.Writes {
		verb := "delete "
		switch w.(type) {
		case reconcile.Create:
			verb = "create "
		case reconcile.Patch:
			verb = "patch "
		}
		out = append(out, verb+reconcile.TargetOf(w).String())
	}
	return out
}

func (s *tokens) message() string {
	if c := apimeta.FindStatusCondition(s.AddOn.Status.Conditions, addonv1alpha1.ConditionTokenInfrastructureReady); c != nil {
		return string(c.Status) + " " + c.Reason + ": " + c.Message
	}
	return ""
}

func TestTokenInfrastructure(t *testing.T) {
	s := tokenState()
	p := s.settle(t)
	require.Equal(t, []string{
		"create serviceaccounts cluster1/web-agent", "create roles cluster1/web-token-role", "create rolebindings cluster1/web-token-role",
	}, steps(p), "once, whatever other registrations there are")
	require.Equal(t, "TokenInfrastructureApplyFailed", p.OnFailure.Reason)
	require.Contains(t, p.OnFailure.Message, `If the hub lacks the permissions, grant them with "allow it"`)
	require.Empty(t, s.message(), "nothing is told before it is there")
	s.settle(t)
	require.Equal(t, "True TokenInfrastructureReady: ServiceAccount cluster1/web-agent (UID: uid-1) is ready", s.message())
	p = s.decide()
	require.Empty(t, steps(p))
	require.Equal(t, s.AddOn, p.Object, "at rest nothing is written")

	labels := map[string]string{"addon.open-cluster-management.io/name": "web", "addon.open-cluster-management.io/token-infrastructure": "true"}
	require.Equal(t, "web-agent", s.account.Name)
	require.Equal(t, labels, s.account.Labels)
	require.Equal(t, types.UID("u"), s.account.OwnerReferences[0].UID)
	require.Equal(t, "web-token-role", s.role.Name)
	require.Equal(t, labels, s.role.Labels)
	require.Equal(
		t,
		[]rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{"web-agent"}, Verbs: []string{"create", "subscribe"}},
		},
		s.role.Rules,
	)
	require.Equal(t, labels, s.binding.Labels)
	require.Len(t, s.binding.OwnerReferences, 1)
	require.Equal(t, rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "web-token-role"}, s.binding.RoleRef)
	require.Equal(t, "system:open-cluster-management:cluster1", s.binding.Subjects[0].Name)
	require.Equal(t, "open-cluster-management:cluster1", s.binding.Subjects[1].Name)
}

// ready returns the complete infrastructure.
func ready(t *testing.T) *tokens {
	t.Helper()
	s := tokenState()
	s.settle(t)
	s.settle(t)
	require.Contains(t, s.message(), "UID: uid-1")
	return s
}

func TestTokenInfrastructureIsRepaired(t *testing.T) {
	s := ready(t)
	s.account, s.uid = nil, "uid-2"
	require.Equal(t, []string{"create serviceaccounts cluster1/web-agent"}, steps(s.settle(t)))
	s.settle(t)
	require.Contains(t, s.message(), "UID: uid-2", "the agent takes a new token")

	for name, tc := range map[string]struct {
		change func(*tokens)
		want   []string
	}{
		"labels": {func(s *tokens) { s.account.Labels = nil }, []string{"patch serviceaccounts cluster1/web-agent"}},
		"rules": {
			func(s *tokens) { s.role.Rules = nil },
			[]string{"delete roles cluster1/web-token-role", "create roles cluster1/web-token-role"},
		},
		"one name more": {
			func(s *tokens) { s.role.Rules[0].ResourceNames = append(s.role.Rules[0].ResourceNames, "default") },
			[]string{"delete roles cluster1/web-token-role", "create roles cluster1/web-token-role"},
		},
		"subjects": {
			func(s *tokens) { s.binding.Subjects = s.binding.Subjects[:1] },
			[]string{"delete rolebindings cluster1/web-token-role", "create rolebindings cluster1/web-token-role"},
		},
		"role": {
			func(s *tokens) { s.binding.RoleRef.Name = "other" },
			[]string{"delete rolebindings cluster1/web-token-role", "create rolebindings cluster1/web-token-role"},
		},
		"made by another hub process, without an owner": {func(s *tokens) {
			s.account.OwnerReferences, s.role.OwnerReferences, s.binding.OwnerReferences = nil, nil, nil
		}, nil},
		"of an instance before": {
			func(s *tokens) {
				s.account.OwnerReferences[0].UID, s.role.OwnerReferences[0].UID, s.binding.OwnerReferences[0].UID = "old", "old", "old"
			},
			[]string{
				"delete serviceaccounts cluster1/web-agent", "create serviceaccounts cluster1/web-agent", "delete roles cluster1/web-token-role",
				"create roles cluster1/web-token-role", "delete rolebindings cluster1/web-token-role", "create rolebindings cluster1/web-token-role",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := ready(t)
			tc.change(s)
			require.Equal(t, tc.want, steps(s.settle(t)))
			require.Empty(t, steps(s.settle(t)), "once")
		})
	}
}

func TestTokenInfrastructureOfSomebodyElse(t *testing.T) {
	foreign := metav1.ObjectMeta{Namespace: "cluster1", Name: "web-agent"}
	t.Run("an account is not handed out", func(t *testing.T) {
		s := tokenState()
		s.account = &corev1.ServiceAccount{ObjectMeta: foreign}
		p := s.settle(t)
		require.Empty(t, steps(p))
		require.NotZero(t, p.RequeueAfter)
		require.Contains(t, s.message(), "False TokenInfrastructureApplyFailed: serviceaccounts cluster1/web-agent exists and was created by others")
		s.account = nil
		require.Len(t, steps(s.settle(t)), 3)
	})
	t.Run("a role is not overwritten, one that is right serves", func(t *testing.T) {
		s := tokenState()
		foreign.Name = "web-token-role"
		s.role = &rbacv1.Role{ObjectMeta: foreign}
		require.Empty(t, steps(s.settle(t)))
		require.Contains(t, s.message(), "roles cluster1/web-token-role exists")
		s.role.Rules = tokenRules("web")
		require.Equal(t, []string{"create serviceaccounts cluster1/web-agent", "create rolebindings cluster1/web-token-role"}, steps(s.settle(t)))
		s.settle(t)
		require.Contains(t, s.message(), "True")
		s.AddOn.Status.KubeClientDriver = addonv1alpha1.DriverTypeCSR
		require.Equal(
			t, []string{"delete rolebindings cluster1/web-token-role", "delete serviceaccounts cluster1/web-agent"},
			steps(s.settle(t)), "what others made under the names is theirs",
		)
	})
	_, ok := ReadTokenAccount(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "-agent"}})
	require.False(t, ok, "of no add-on")
}

func TestTokenInfrastructureGoes(t *testing.T) {
	all := []string{"delete rolebindings cluster1/web-token-role", "delete roles cluster1/web-token-role", "delete serviceaccounts cluster1/web-agent"}
	for name, tc := range map[string]struct {
		change  func(*tokens)
		message string
	}{
		"back to certificates": {func(s *tokens) { s.AddOn.Status.KubeClientDriver = addonv1alpha1.DriverTypeCSR }, ""},
		"no registration":      {func(s *tokens) { s.AddOn.Status.Registrations = s.AddOn.Status.Registrations[1:] }, ""},
		"the cluster is no longer accepted": {
			func(s *tokens) { s.Cluster.Spec.HubAcceptsClient = false },
			"False TokenInfrastructureApplyFailed: cluster cluster1 is not accepted, so its agents get no tokens until an administrator accepts it",
		},
		"there is no cluster": {
			func(s *tokens) { s.Cluster = (*clusterv1.ManagedCluster)(nil) },
			"False TokenInfrastructureApplyFailed: cluster cluster1 is not accepted, so its agents get no tokens until an administrator accepts it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := ready(t)
			tc.change(s)
			require.Equal(t, all, steps(s.settle(t)))
			require.Equal(t, tc.message, s.message())
			require.Empty(t, steps(s.settle(t)))
		})
	}
	t.Run("with the instance", func(t *testing.T) {
		s := ready(t)
		s.AddOn.DeletionTimestamp = &metav1.Time{Time: start}
		p := s.decide()
		require.Empty(t, steps(p), "it is good until the instance is gone")
		require.Equal(t, s.AddOn, p.Object)
		s.AddOn.Status.KubeClientDriver = addonv1alpha1.DriverTypeCSR
		require.Empty(t, steps(s.decide()))
		s.AddOn = nil
		require.Equal(t, all, steps(s.settle(t)))
		require.Empty(t, steps(s.settle(t)))
	})
}
