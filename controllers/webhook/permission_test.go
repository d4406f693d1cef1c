// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/webhook"
	permissionv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/rbac/v1alpha1"
)

func TestClusterPermissionsAreChecked(t *testing.T) {
	giver := authenticationv1.UserInfo{Username: "giver", Groups: []string{"system:authenticated"}}
	agent := authenticationv1.UserInfo{Username: "a", Groups: []string{"system:open-cluster-management:c1"}}
	change := func(change func(*permissionv1alpha1.ClusterPermission)) *permissionv1alpha1.ClusterPermission {
		cp := &permissionv1alpha1.ClusterPermission{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "p"}}
		cp.Spec.ClusterRole = &permissionv1alpha1.ClusterRole{
			Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}},
		}
		cp.Spec.ClusterRoleBinding = &permissionv1alpha1.ClusterRoleBinding{Subject: &rbacv1.Subject{Kind: "User", Name: "u"}}
		change(cp)
		return cp
	}
	plain := change(func(*permissionv1alpha1.ClusterPermission) {})
	wild := change(func(cp *permissionv1alpha1.ClusterPermission) { cp.Spec.ClusterRole.Rules[0].Verbs = []string{"*"} })
	wilder := change(func(cp *permissionv1alpha1.ClusterPermission) {
		cp.Spec.ClusterRole.Rules[0].Verbs, cp.Spec.ClusterRole.Rules[0].Resources = []string{"*"}, []string{"secrets"}
	})
	half := change(func(cp *permissionv1alpha1.ClusterPermission) {
		cp.Spec.ClusterRoleBinding.RoleRef = &permissionv1alpha1.ClusterRoleRef{Kind: "ClusterRole", Name: "view"}
	})
	labelled := func(cp *permissionv1alpha1.ClusterPermission) *permissionv1alpha1.ClusterPermission {
		out := cp.DeepCopy()
		out.Labels = map[string]string{"a": "b"}
		return out
	}
	going := half.DeepCopy()
	going.DeletionTimestamp, going.Finalizers = new(metav1.Now()), []string{"f"}
	for name, tc := range map[string]struct {
		old, now *permissionv1alpha1.ClusterPermission
		user     authenticationv1.UserInfo
		rights   []string
		off      bool
		refused  string
		warns    string
	}{
		"named rights":                     {now: plain, user: giver},
		"wildcards":                        {now: wild, user: giver, refused: `user "giver" needs the verb escalate on clusterpermissions in namespace c1`},
		"wildcards by somebody who may":    {now: wild, user: giver, rights: []string{"escalate clusterpermissions/ p"}},
		"of stored wildcards only a label": {old: wild, now: labelled(wild), user: giver},
		"other rights of stored wildcards": {old: wild, now: wilder, user: giver, refused: "spec.clusterRole.rules[0].verbs: *"},
		"no wildcards any more":            {old: wild, now: plain, user: giver},
		"a mistake":                        {now: half, user: giver, refused: "spec.clusterRoleBinding.roleRef.apiGroup: is empty beside name"},
		"of a stored mistake only a label": {old: half, now: labelled(half), user: giver},
		"a mistake that goes":              {old: plain, now: going, user: giver},
		"an agent":                         {now: plain, user: agent, refused: `agent "a" cannot change ClusterPermissions`},
		"anything while the gate is off":   {now: half, user: agent, off: true},
		"no binding": {
			now:  change(func(cp *permissionv1alpha1.ClusterPermission) { cp.Spec.ClusterRoleBinding = nil }),
			user: giver, warns: "spec: no binding is defined",
		},
	} {
		t.Run(name, func(t *testing.T) {
			features := all
			features.ClusterPermission = !tc.off
			var old any
			if tc.old != nil {
				old = tc.old
			}
			h := &stated{rights: tc.rights}
			answer := send(t, server(h, features), webhook.PathValidatePermission, old, tc.now, tc.user)
			require.Equal(t, tc.refused == "", answer.Allowed, answer.Result)
			if tc.refused != "" {
				require.Contains(t, answer.Result.Message, tc.refused)
			}
			if tc.warns != "" {
				require.Len(t, answer.Warnings, 1)
				require.Contains(t, answer.Warnings[0], tc.warns)
			}
			for _, a := range h.about {
				require.Equal(t, "c1", a.Namespace)
			}
		})
	}
}
