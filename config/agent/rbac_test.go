// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

const (
	crud  = "get list watch create update patch delete"
	names = " appliedmanifestworks.work.open-cluster-management.io,clusterclaims.cluster.open-cluster-management.io," +
		"klusterlets.operator.open-cluster-management.io"
	roles = " kubectl-ocm:klusterlet,kubectl-ocm:klusterlet-registration:agent,kubectl-ocm:klusterlet-registration:addon-management," +
		"kubectl-ocm:klusterlet-registration:proxy,kubectl-ocm:klusterlet-work:agent,kubectl-ocm:klusterlet-work:execution," +
		"kubectl-ocm:klusterlet-work:aggregate,kubectl-ocm:klusterlet-work:execution-admin," +
		"klusterlet,open-cluster-management:klusterlet-registration:agent,open-cluster-management:klusterlet-registration:addon-management," +
		"open-cluster-management:klusterlet-work:agent,open-cluster-management:klusterlet-work:execution," +
		"open-cluster-management:klusterlet-work:aggregate,open-cluster-management:klusterlet-work:execution-admin"
)

// wantRules is every right that the agent has on its own cluster: group/resources
// [names]: verbs.
var wantRules = map[string][]string{
	"kubectl-ocm:klusterlet": {
		"operator.open-cluster-management.io/klusterlets: get list watch update patch",
		"operator.open-cluster-management.io/klusterlets/status: update patch",
		"operator.open-cluster-management.io/klusterlets/finalizers: update",
		"apiextensions.k8s.io/customresourcedefinitions: create",
		"apiextensions.k8s.io/customresourcedefinitions" + names + ": get list watch update patch delete",
		"/namespaces open-cluster-management-agent,open-cluster-management-agent-addon: get patch delete",
		"rbac.authorization.k8s.io/clusterroles,clusterrolebindings: list",
		"rbac.authorization.k8s.io/clusterroles,clusterrolebindings" + roles + ": get patch delete",
		"discovery.k8s.io/endpointslices kubernetes: list watch",
		"authentication.k8s.io/tokenreviews: create",
		"authorization.k8s.io/subjectaccessreviews: create",
		"events.k8s.io/events: create update patch",
	},
	"kubectl-ocm:klusterlet-registration:agent": {
		"/nodes: get list watch",
		"/namespaces: create get list update watch patch",
		"cluster.open-cluster-management.io/clusterclaims: get list watch",
		"about.k8s.io/clusterproperties: get list watch",
		"apiextensions.k8s.io/customresourcedefinitions clusterproperties.about.k8s.io: get list watch",
	},
	"kubectl-ocm:klusterlet-registration:addon-management": {
		"/secrets: create get list update watch patch delete",
		"/configmaps ocm-tls-profile: create get list watch patch delete",
		"coordination.k8s.io/leases: get list watch",
	},
	"kubectl-ocm:klusterlet-work:agent": {
		"work.open-cluster-management.io/appliedmanifestworks: create get list update watch patch delete",
		"work.open-cluster-management.io/appliedmanifestworks/status: update patch",
		"work.open-cluster-management.io/appliedmanifestworks/finalizers: update",
		"authorization.k8s.io/subjectaccessreviews: create",
		"/serviceaccounts: impersonate",
	},
	"kubectl-ocm:klusterlet-work:execution": {
		"apiextensions.k8s.io/customresourcedefinitions: " + crud,
		"/namespaces: create update patch delete",
		"rbac.authorization.k8s.io/clusterrolebindings,rolebindings: " + crud,
		"rbac.authorization.k8s.io/clusterroles,roles: " + crud + " escalate bind",
		"monitoring.coreos.com/servicemonitors: " + crud,
		"oauth.openshift.io/oauthclients: " + crud,
		"scheduling.k8s.io/priorityclasses: " + crud,
		"admissionregistration.k8s.io/validatingwebhookconfigurations,mutatingwebhookconfigurations: get list watch create update patch",
	},
	"kubectl-ocm:klusterlet-work:aggregate": nil,
	"kubectl-ocm:management:klusterlet-registration:agent": {
		"/configmaps,secrets: " + crud,
		"coordination.k8s.io/leases: " + crud,
		",events.k8s.io/events: create update patch",
		"/pods: get",
		"apps/replicasets: get",
		"apps/deployments klusterlet-agent: get list watch",
		"networking.k8s.io/networkpolicies: create list watch",
		"networking.k8s.io/networkpolicies allow-dns-and-api,default-deny-all,klusterlet-agent: get patch delete",
	},
	"kubectl-ocm:management:klusterlet-work:agent": {
		"/configmaps: " + crud,
		"coordination.k8s.io/leases: " + crud,
		",events.k8s.io/events: create update patch",
		"/pods: get",
		"apps/replicasets: get",
	},
}

func rulesOf(t *testing.T, objects []*unstructured.Unstructured) map[string][]string {
	t.Helper()
	got := map[string][]string{}
	for _, u := range objects {
		if u.GetKind() != "ClusterRole" && u.GetKind() != "Role" {
			continue
		}
		role, err := typed.FromUnstructured[rbacv1.ClusterRole](u)
		require.NoError(t, err)
		got[role.Name] = nil
		for _, r := range role.Rules {
			line := strings.Join(r.APIGroups, ",") + "/" + strings.Join(r.Resources, ",")
			if len(r.ResourceNames) > 0 {
				line += " " + strings.Join(r.ResourceNames, ",")
			}
			require.Empty(t, r.NonResourceURLs)
			got[role.Name] = append(got[role.Name], line+": "+strings.Join(r.Verbs, " "))
		}
	}
	return got
}

func TestEveryRuleOfTheAgent(t *testing.T) {
	objects, err := Objects(Options{Image: "i", ClusterName: "c1"})
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(wantRules, rulesOf(t, objects)))
}

func TestNoRoleOrBindingHasANameThatOthersUse(t *testing.T) {
	objects, err := Objects(Options{Image: "i", ClusterName: "c1"})
	require.NoError(t, err)
	var names []string
	for _, u := range objects {
		if u.GroupVersionKind().Group == rbacv1.GroupName {
			require.True(t, strings.HasPrefix(u.GetName(), "kubectl-ocm:"), u.GetName())
			names = append(names, u.GetName())
		}
	}
	for _, former := range FormerRights() {
		require.NotContains(t, names, former)
		require.Contains(t, names, "kubectl-ocm:"+strings.TrimPrefix(former, "open-cluster-management:"))
	}
}

func TestEveryBindingNamesTheOneServiceAccount(t *testing.T) {
	objects, err := Objects(Options{Image: "i", ClusterName: "c1", Namespace: "open-cluster-management-second"})
	require.NoError(t, err)
	got := map[string]string{}
	for _, u := range objects {
		if u.GetKind() != "ClusterRoleBinding" && u.GetKind() != "RoleBinding" {
			continue
		}
		b, err := typed.FromUnstructured[rbacv1.RoleBinding](u)
		require.NoError(t, err)
		require.Equal(t, []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "open-cluster-management-second", Name: "klusterlet-work-sa"}}, b.Subjects)
		got[b.Name] = fmt.Sprintf("%s %s %s", b.RoleRef.Kind, b.RoleRef.Name, b.Namespace)
	}
	want := map[string]string{"kubectl-ocm:klusterlet-work:execution-admin": "ClusterRole admin "}
	for name := range wantRules {
		want[name] = "ClusterRole " + name + " "
		if strings.HasPrefix(name, "kubectl-ocm:management:") {
			want[name] = "Role " + name + " open-cluster-management-second"
		}
	}
	require.Empty(t, cmp.Diff(want, got))
}

func TestUsersExtendTheAgentByALabel(t *testing.T) {
	objects, err := Objects(Options{Image: "i", ClusterName: "c1"})
	require.NoError(t, err)
	for _, u := range objects {
		if u.GetName() != "kubectl-ocm:klusterlet-work:aggregate" || u.GetKind() != "ClusterRole" {
			continue
		}
		role, err := typed.FromUnstructured[rbacv1.ClusterRole](u)
		require.NoError(t, err)
		require.Len(t, role.AggregationRule.ClusterRoleSelectors, 1)
		selector, err := metav1.LabelSelectorAsSelector(&role.AggregationRule.ClusterRoleSelectors[0])
		require.NoError(t, err)
		require.True(t, selector.Matches(labels.Set{operatorv1.LabelAggregateToWork: "true"}))
		require.False(t, selector.Matches(labels.Set{}))
		for _, other := range find(t, objects, "ClusterRole", "kubectl-ocm:klusterlet-work:execution").GetLabels() {
			require.False(t, selector.Matches(labels.Set{
				operatorv1.LabelAggregateToWork: "true", operatorv1.LabelCreatedByKlusterlet: other,
			}), "the rights of another agent are added")
		}
		return
	}
	t.Fatal("the aggregated role is missing")
}

// TestAnotherKlusterletIsApart checks that two agents on one cluster share only what each cluster
// has once, and that each may touch only its own objects.
func TestAnotherKlusterletIsApart(t *testing.T) {
	first, err := Objects(Options{Image: "i", ClusterName: "c1", BootstrapKubeconfig: []byte("k")})
	require.NoError(t, err)
	second, err := Objects(Options{
		Image: "i", Klusterlet: "second", ClusterName: "c1", Namespace: "open-cluster-management-second", BootstrapKubeconfig: []byte("k"),
	})
	require.NoError(t, err)
	id := func(u *unstructured.Unstructured) string {
		return u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
	}
	taken := map[string]bool{}
	for _, u := range first {
		taken[id(u)] = true
	}
	var shared []string
	for _, u := range second {
		require.Equal(t, "second", u.GetLabels()[operatorv1.LabelCreatedByKlusterlet], id(u))
		if taken[id(u)] {
			shared = append(shared, id(u))
		}
		if role, ok, _ := unstructured.NestedString(u.Object, "roleRef", "name"); ok && role != "admin" {
			require.Equal(t, u.GetName(), role)
		}
	}
	require.Equal(t, []string{
		"Namespace /open-cluster-management-agent-addon", "CustomResourceDefinition /klusterlets.operator.open-cluster-management.io",
	}, shared)
	for role, rules := range rulesOf(t, second) {
		// The policies of all agents have the same names, each in its namespace.
		rules = slices.DeleteFunc(rules, func(rule string) bool { return strings.HasPrefix(rule, "networking.k8s.io/") })
		require.NotRegexp(t, `klusterlet-(agent|work|registration)|[ ,]klusterlet[,:]|open-cluster-management-agent[,:]`, strings.Join(rules, "\n"), role)
	}
	d, err := typed.FromUnstructured[appsv1.Deployment](find(t, second, "Deployment", "second-agent"))
	require.NoError(t, err)
	require.Equal(t, "second-work-sa", d.Spec.Template.Spec.ServiceAccountName)
	require.Equal(t, []string{"run", "--klusterlet=second"}, d.Spec.Template.Spec.Containers[0].Args)
	namespace := find(t, second, "Namespace", "open-cluster-management-second")
	require.Equal(t, "second", namespace.GetLabels()[operatorv1.LabelKlusterlet])
}

func TestNarrowRightsLeaveOutAdminEscalateBindAndImpersonate(t *testing.T) {
	objects, err := Objects(Options{Image: "i", ClusterName: "c1", NarrowRights: true})
	require.NoError(t, err)
	for _, u := range objects {
		require.NotEqual(t, "kubectl-ocm:klusterlet-work:execution-admin", u.GetName())
	}
	got := rulesOf(t, objects)
	for role, rules := range wantRules {
		var want []string
		for _, rule := range rules {
			if rule != "/serviceaccounts: impersonate" {
				want = append(want, strings.TrimSuffix(rule, " escalate bind"))
			}
		}
		require.Equal(t, want, got[role], role)
	}
}

func TestAnotherNamespaceIsNamedInTheRules(t *testing.T) {
	objects, err := Objects(Options{Image: "i", ClusterName: "c1", Namespace: "open-cluster-management-second"})
	require.NoError(t, err)
	require.Contains(t, rulesOf(t, objects)["kubectl-ocm:klusterlet"],
		"/namespaces open-cluster-management-second,open-cluster-management-agent-addon: get patch delete")
}
