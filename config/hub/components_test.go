// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// right is one permission; an empty name means all names.
type right struct{ verb, group, resource, name string }

func rights(rules []rbacv1.PolicyRule) []right {
	var out []right
	for _, r := range rules {
		names := r.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					for _, name := range names {
						out = append(out, right{verb, group, resource, name})
					}
				}
			}
		}
	}
	return out
}

func TestTheLayoutIsAnArgument(t *testing.T) {
	for layout, args := range map[string][]string{"": {"run"}, hub.LayoutCompact: {"run"}, hub.LayoutSplit: {"operator"}} {
		list := objects(t, hub.Options{Version: "v1", Layout: layout})
		d := find[appsv1.Deployment](t, list, "Deployment", hub.Namespace, hub.Name)
		require.Equal(t, args, d.Spec.Template.Spec.Containers[0].Args)
		require.Equal(t, layout == hub.LayoutSplit, slices.ContainsFunc(list, func(u *unstructured.Unstructured) bool {
			return u.GetName() == "cluster-manager-operator"
		}))
	}
	_, err := hub.Objects(hub.Options{Version: "v1", Layout: "other"})
	require.ErrorContains(t, err, `there is no layout "other"`)
}

// TestComponentsMayNoMoreThanTheCompactHub: the operator has neither escalate nor bind, so it
// needs every permission that it gives to a component.
func TestComponentsMayNoMoreThanTheCompactHub(t *testing.T) {
	list := objects(t, hub.Options{Version: "v1", Layout: hub.LayoutSplit})
	everywhere := rights(find[rbacv1.ClusterRole](t, list, "ClusterRole", "", hub.Name).Rules)
	beside := rights(find[rbacv1.ClusterRole](t, list, "ClusterRole", "", "cluster-manager-operator").Rules)
	for _, name := range hub.ComponentNames {
		component, err := hub.Component(name)
		require.NoError(t, err)
		bound := 0
		for _, u := range component {
			require.Equal(t, hub.Name, u.GetLabels()[operatorv1.LabelCreatedByClusterManager])
			held := everywhere
			switch u.GetKind() {
			case "ClusterRoleBinding", "RoleBinding":
				b, err := typed.FromUnstructured[rbacv1.RoleBinding](u)
				require.NoError(t, err)
				require.Equal(t, []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: hub.ComponentNamespace, Name: hub.AccountOf(name)}}, b.Subjects)
				require.Equal(t, u.GetName(), b.RoleRef.Name)
				bound++
				continue
			case "Role":
				held = slices.Concat(everywhere, beside)
			case "ClusterRole":
			default:
				continue
			}
			role, err := typed.FromUnstructured[rbacv1.ClusterRole](u)
			require.NoError(t, err)
			require.NotEmpty(t, role.Rules)
			for _, r := range rights(role.Rules) {
				all := r
				all.name = ""
				require.True(t, slices.Contains(held, r) || slices.Contains(held, all), "%s: %+v", name, r)
			}
		}
		require.Positive(t, bound, name)
	}
}
