// SPDX-License-Identifier: Apache-2.0

package check

import (
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

func TestARightNeedsARuleAndABinding(t *testing.T) {
	role := refTo("", "r")
	rule := rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments", "deployments/status"}, Verbs: []string{"get", "patch"}}
	named := rule
	named.ResourceNames = []string{"web"}
	whole := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}
	right := authorizationv1.ResourceAttributes{Group: "apps", Resource: "deployments", Verb: "patch"}
	status, web, secret := right, right, right
	status.Subresource, web.Name, secret.Resource = "status", "web", "secrets"
	for name, tc := range map[string]struct {
		rule    rbacv1.PolicyRule
		right   authorizationv1.ResourceAttributes
		unbound bool
		want    bool
	}{
		"its rule":                     {rule: rule, right: right, want: true},
		"a subresource":                {rule: rule, right: status, want: true},
		"one object by a rule for all": {rule: rule, right: web, want: true},
		"all by a rule for everything": {rule: whole, right: status, want: true},
		"one object":                   {rule: named, right: web, want: true},
		"all by a rule for one object": {rule: named, right: right},
		"another resource":             {rule: rule, right: secret},
		"no binding":                   {rule: rule, right: right, unbound: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := grants{map[rbacv1.RoleRef][]rbacv1.PolicyRule{role: {tc.rule}}, map[rbacv1.RoleRef]bool{role: !tc.unbound}}
			require.Equal(t, tc.want, g.gives(role, &tc.right))
		})
	}
}

// TestNarrowRightsAreToldFromFullOnes: an agent that lost the role admin still may give it away.
func TestNarrowRightsAreToldFromFullOnes(t *testing.T) {
	for _, narrow := range []bool{true, false} {
		g := grants{map[rbacv1.RoleRef][]rbacv1.PolicyRule{}, map[rbacv1.RoleRef]bool{}}
		roles, err := manifests.Rights(manifests.Agent{Klusterlet: "klusterlet", Namespace: "agent", Narrow: narrow})
		require.NoError(t, err)
		all, err := g.unproven(roles)
		require.NoError(t, err)
		require.NotEmpty(t, all, "nothing is bound")
		for _, u := range roles {
			if u.GetKind() == "ClusterRole" {
				ref := refTo("", u.GetName())
				g.bound[ref] = true
				role, err := typed.FromUnstructured[rbacv1.ClusterRole](u)
				require.NoError(t, err)
				g.rules[ref] = role.Rules
			}
		}
		require.Equal(t, narrow, g.isNarrow())
		g.bound[refTo("", adminRole)] = true
		require.False(t, g.isNarrow())
	}
}
