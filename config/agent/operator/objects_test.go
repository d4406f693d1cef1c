// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

func TestTheOperatorReadsSecretsByNameOnly(t *testing.T) {
	objects, err := Objects("registry/ocm-agent:v1")
	require.NoError(t, err)
	var kinds []string
	for _, u := range objects {
		kinds = append(kinds, u.GetKind())
		if u.GetKind() != "ClusterRole" {
			continue
		}
		role, err := typed.FromUnstructured[rbacv1.ClusterRole](u)
		require.NoError(t, err)
		for _, rule := range role.Rules {
			require.NotContains(t, append(slices.Concat(rule.Verbs, rule.Resources), rule.APIGroups...), "*")
			if slices.Contains(rule.Resources, "secrets") && !slices.Equal(rule.Verbs, []string{"create"}) {
				require.Equal(t, []string{
					"bootstrap-hub-kubeconfig", "external-managed-kubeconfig", "external-managed-kubeconfig-agent",
					"external-managed-kubeconfig-registration", "external-managed-kubeconfig-work", "hub-kubeconfig-secret", "open-cluster-management-image-pull-credentials",
				}, rule.ResourceNames)
			}
			if slices.Contains(rule.Resources, "networkpolicies") && slices.Contains(rule.Verbs, "delete") {
				require.Equal(t, []string{"allow-dns-and-api", "default-deny-all", "klusterlet-agent"}, rule.ResourceNames)
			}
			if slices.Contains(rule.Verbs, "escalate") {
				require.Equal(t, []string{"clusterroles", "roles"}, rule.Resources)
			}
		}
	}
	require.Equal(t, []string{
		"CustomResourceDefinition", "Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Deployment",
	}, kinds)
	require.Empty(t, objects[0].GetLabels(), "the definition goes with no Klusterlet")
}
