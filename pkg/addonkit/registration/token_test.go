// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// tokenState is an instance under the token driver.
func tokenState() TokenState {
	s := state()
	s.AddOn.Status.KubeClientDriver = addonv1alpha1.DriverTypeToken
	s.AddOn.Status.Registrations = []addonv1alpha1.RegistrationConfig{{SignerName: kube}, {SignerName: "example.com/s"}}
	return TokenState{AddOn: s.AddOn, Now: start}
}

// settle carries a plan out.
func settle(t *testing.T, s *TokenState, p reconcile.Plan) {
	t.Helper()
	for _, a := range p.Apply {
		switch o := a.Object.(type) {
		case *corev1.ServiceAccount:
			o.UID = "uid-1"
			s.Account = o
		case *rbacv1.Role:
			s.Role = o
		case *rbacv1.RoleBinding:
			s.Binding = o
		}
	}
	s.AddOn = object(t, p)
}

func message(s TokenState) string {
	if c := apimeta.FindStatusCondition(s.AddOn.Status.Conditions, addonv1alpha1.ConditionTokenInfrastructureReady); c != nil {
		return string(c.Status) + " " + c.Reason + ": " + c.Message
	}
	return ""
}

func TestTokenInfrastructure(t *testing.T) {
	s := tokenState()
	p := DecideToken(s)
	require.Len(t, p.Apply, 3, "once, whatever other registrations there are")
	require.Equal(t, "TokenInfrastructureApplyFailed", p.OnFailure.Reason)
	settle(t, &s, p)
	require.Empty(t, message(s), "nothing is told before it is there")
	settle(t, &s, DecideToken(s))
	require.Equal(t, "True TokenInfrastructureReady: ServiceAccount cluster1/web-agent (UID: uid-1) is ready", message(s))
	p = DecideToken(s)
	require.Empty(t, p.Apply)
	require.Equal(t, s.AddOn, p.Object, "at rest nothing is written")

	labels := map[string]string{"addon.open-cluster-management.io/name": "web", "addon.open-cluster-management.io/token-infrastructure": "true"}
	require.Equal(t, "web-agent", s.Account.Name)
	require.Equal(t, labels, s.Account.Labels)
	require.Equal(t, "web-token-role", s.Role.Name)
	require.Equal(t, labels, s.Role.Labels)
	require.Equal(t, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{"web-agent"}, Verbs: []string{"create", "subscribe"}}}, s.Role.Rules)
	require.Equal(t, labels, s.Binding.Labels)
	require.Len(t, s.Binding.OwnerReferences, 1)
	require.Equal(t, rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "web-token-role"}, s.Binding.RoleRef)
	require.Equal(t, "system:open-cluster-management:cluster1", s.Binding.Subjects[0].Name)
	require.Equal(t, "open-cluster-management:cluster1", s.Binding.Subjects[1].Name)
}

// ready is the infrastructure as it stands.
func ready(t *testing.T) TokenState {
	t.Helper()
	s := tokenState()
	settle(t, &s, DecideToken(s))
	settle(t, &s, DecideToken(s))
	return s
}

func TestTokenInfrastructureIsRepaired(t *testing.T) {
	s := ready(t)
	s.Account = nil
	p := DecideToken(s)
	require.Len(t, p.Apply, 1)
	s.Account = p.Apply[0].Object.(*corev1.ServiceAccount)
	s.Account.UID = "uid-2"
	settle(t, &s, DecideToken(s))
	require.Contains(t, message(s), "UID: uid-2", "the agent takes a new token")

	s = ready(t)
	s.Role.Rules, s.Binding.Subjects, s.Account.Labels = nil, nil, nil
	require.Len(t, DecideToken(s).Apply, 3)
	s = ready(t)
	s.Binding.RoleRef.Name = "other"
	p = DecideToken(s)
	require.Len(t, p.Steps, 1)
	require.Len(t, p.Apply, 1)
}

func TestTokenInfrastructureGoes(t *testing.T) {
	for name, change := range map[string]func(*TokenState){
		"back to certificates": func(s *TokenState) { s.AddOn.Status.KubeClientDriver = addonv1alpha1.DriverTypeCSR },
		"no registration":      func(s *TokenState) { s.AddOn.Status.Registrations = s.AddOn.Status.Registrations[1:] },
	} {
		t.Run(name, func(t *testing.T) {
			s := ready(t)
			change(&s)
			p := DecideToken(s)
			require.Equal(t, []string{
				"delete rolebindings cluster1/web-token-role", "delete roles cluster1/web-token-role", "delete serviceaccounts cluster1/web-agent",
			}, outline(t, p))
			s.AddOn = object(t, p)
			require.Empty(t, message(s))
			s.Account.Labels, s.Role.Labels, s.Binding.Labels = nil, nil, nil
			require.Empty(t, DecideToken(s).Delete, "what others made under the names is theirs")
		})
	}
	s := ready(t)
	s.AddOn.DeletionTimestamp = &metav1.Time{Time: start}
	p := DecideToken(s)
	require.Empty(t, p.Delete, "it is good until the instance is gone")
	require.Equal(t, s.AddOn, p.Object)
}
