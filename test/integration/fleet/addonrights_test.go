// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	library "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/teardown"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// TestAnAgentTakesItsRightsOutOfTheNamespaceOfAddOns, which stays for another agent, with that agent's.
func TestAnAgentTakesItsRightsOutOfTheNamespaceOfAddOns(t *testing.T) {
	t.Parallel()
	const addOns, rbac = "open-cluster-management-agent-addon", "rbac.authorization.k8s.io"
	client := harness.Fresh(t, "spoke").Dynamic(t)
	of := func(klusterlet string) map[string]string {
		return map[string]string{"open-cluster-management.io/created-by-klusterlet": klusterlet}
	}
	namespace := object("v1", "Namespace", "", addOns, nil)
	namespace.SetLabels(of("stays"))
	_, err := client.Resource(library.Namespaces).Create(t.Context(), namespace, metav1.CreateOptions{})
	require.NoError(t, err)
	roles, bindings := client.Resource(library.Roles).Namespace(addOns), client.Resource(library.RoleBindings).Namespace(addOns)
	for _, klusterlet := range []string{"stays", "leaves"} {
		role := object(rbac+"/v1", "Role", addOns, klusterlet, nil)
		binding := object(rbac+"/v1", "RoleBinding", addOns, klusterlet,
			map[string]any{"roleRef": map[string]any{"apiGroup": rbac, "kind": "Role", "name": klusterlet}})
		role.SetLabels(of(klusterlet))
		binding.SetLabels(of(klusterlet))
		_, err := roles.Create(t.Context(), role, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = bindings.Create(t.Context(), binding, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	require.NoError(t, teardown.Agent(t.Context(), client, teardown.AgentOptions{Klusterlet: "leaves", Namespace: "open-cluster-management-leaves"}))
	for klusterlet, stays := range map[string]bool{"stays": true, "leaves": false} {
		_, err := roles.Get(t.Context(), klusterlet, metav1.GetOptions{})
		require.Equal(t, stays, !apierrors.IsNotFound(err), "role of %s: %v", klusterlet, err)
		_, err = bindings.Get(t.Context(), klusterlet, metav1.GetOptions{})
		require.Equal(t, stays, !apierrors.IsNotFound(err), "binding of %s: %v", klusterlet, err)
	}
}
