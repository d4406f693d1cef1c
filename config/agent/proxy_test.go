// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent"
	"github.com/kubectl-ocm/kubectl-ocm/config/agent/manifests"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// TestTheRightsOfTheTunnelComeWithItsGate: they are to act for users and groups, to get Services, and to
// act as ServiceAccounts in the namespace of add-ons only; narrow rights leave out the last.
func TestTheRightsOfTheTunnelComeWithItsGate(t *testing.T) {
	tunnel := func(mode operatorv1.FeatureGateModeType, narrow bool) (out []*unstructured.Unstructured) {
		o := agent.Options{Image: "i", ClusterName: "c1", NarrowRights: narrow}
		o.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{
			FeatureGates: []operatorv1.FeatureGate{{Feature: "ClusterProxy", Mode: mode}},
		}
		all, err := agent.Objects(o)
		require.NoError(t, err)
		for _, u := range all {
			if strings.HasSuffix(u.GetName(), ":proxy") {
				out = append(out, u)
			}
		}
		return out
	}
	require.Empty(t, tunnel(operatorv1.FeatureGateModeTypeDisable, false))
	list := tunnel(operatorv1.FeatureGateModeTypeEnable, false)
	require.Len(t, list, 4)
	role, err := typed.FromUnstructured[rbacv1.ClusterRole](list[0])
	require.NoError(t, err)
	require.Equal(t, []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"users", "groups"}, Verbs: []string{"impersonate"}},
		{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"*"}, Verbs: []string{"impersonate"}},
		{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"get"}},
	}, role.Rules)
	binding, err := typed.FromUnstructured[rbacv1.ClusterRoleBinding](list[1])
	require.NoError(t, err)
	require.Equal(t, manifests.ProxyBinding(operatorv1.DefaultKlusterletName), binding.Name)
	require.Equal(t, []rbacv1.Subject{{Kind: "ServiceAccount", Name: "klusterlet-work-sa", Namespace: operatorv1.NamespaceAgent}}, binding.Subjects)
	in, err := typed.FromUnstructured[rbacv1.Role](list[2])
	require.NoError(t, err)
	require.Equal(t, operatorv1.NamespaceAgentAddOn, in.Namespace)
	require.Equal(t, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"get", "impersonate"}}}, in.Rules)
	of, err := typed.FromUnstructured[rbacv1.RoleBinding](list[3])
	require.NoError(t, err)
	require.Equal(t, operatorv1.NamespaceAgentAddOn, of.Namespace)
	require.Equal(t, in.Name, of.RoleRef.Name)
	require.Equal(t, binding.Subjects, of.Subjects)

	narrow := tunnel(operatorv1.FeatureGateModeTypeEnable, true)
	require.Equal(t, list[0], narrow[0])
	in, err = typed.FromUnstructured[rbacv1.Role](narrow[2])
	require.NoError(t, err)
	require.Equal(t, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"get"}}}, in.Rules)
}

// TestAnAgentThatRunsElsewhereReadsNoServices, because it does not reach them.
func TestAnAgentThatRunsElsewhereReadsNoServices(t *testing.T) {
	for _, hosted := range []bool{false, true} {
		all, err := manifests.Rights(manifests.Agent{
			Klusterlet: operatorv1.DefaultKlusterletName, Namespace: operatorv1.NamespaceAgent, Proxy: true, Hosted: hosted,
		})
		require.NoError(t, err)
		reads := slices.ContainsFunc(all, func(u *unstructured.Unstructured) bool {
			role, err := typed.FromUnstructured[rbacv1.ClusterRole](u)
			return err == nil && slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "services") })
		})
		require.Equal(t, !hosted, reads)
	}
}
