// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	permissionv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/rbac/v1alpha1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

type spec = permissionv1alpha1.ClusterPermissionSpec

func permission(s spec) *permissionv1alpha1.ClusterPermission {
	return &permissionv1alpha1.ClusterPermission{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "p"}, Spec: s}
}

func user(name string) *rbacv1.Subject {
	return &rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}
}

func account(name string) *rbacv1.Subject {
	return &rbacv1.Subject{APIGroup: "authentication.open-cluster-management.io", Kind: "ManagedServiceAccount", Name: name}
}

var (
	read   = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}}
	team   = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	viewer = permissionv1alpha1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}
	own    = permissionv1alpha1.RoleRef{Kind: "Role"}
)

func binding(change func(*permissionv1alpha1.RoleBinding)) spec {
	b := permissionv1alpha1.RoleBinding{Namespace: "a", RoleRef: own, Subject: user("u")}
	change(&b)
	return spec{RoleBindings: []permissionv1alpha1.RoleBinding{b}}
}

func clusterWide(change func(*permissionv1alpha1.ClusterRoleBinding)) spec {
	b := permissionv1alpha1.ClusterRoleBinding{Subject: user("u")}
	change(&b)
	return spec{ClusterRoleBinding: &b}
}

func TestMistakesNameTheFieldAndTheFix(t *testing.T) {
	reference := func(group, kind, name string) func(*permissionv1alpha1.ClusterRoleBinding) {
		return func(b *permissionv1alpha1.ClusterRoleBinding) {
			b.RoleRef = &permissionv1alpha1.ClusterRoleRef{APIGroup: group, Kind: kind, Name: name}
		}
	}
	subject := func(s rbacv1.Subject) spec {
		return binding(func(b *permissionv1alpha1.RoleBinding) { b.Subject = &s })
	}
	for name, tc := range map[string]struct {
		spec spec
		want []string
	}{
		"nothing": {binding(func(*permissionv1alpha1.RoleBinding) {}), nil},
		"neither namespace nor selector": {
			binding(func(b *permissionv1alpha1.RoleBinding) { b.Namespace = "" }),
			[]string{"spec.roleBindings[0]: has neither namespace nor namespaceSelector; set one of them"},
		},
		"both of them": {
			spec{Roles: []permissionv1alpha1.Role{{Namespace: "a", NamespaceSelector: team, Rules: read}}},
			[]string{"spec.roles[0]: has both namespace and namespaceSelector; remove one of them"},
		},
		"an invalid selector": {
			spec{Roles: []permissionv1alpha1.Role{{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}}}},
			[]string{"spec.roles[0].namespaceSelector: "},
		},
		"no name of a namespace": {
			binding(func(b *permissionv1alpha1.RoleBinding) { b.Namespace = "A_b" }),
			[]string{`spec.roleBindings[0].namespace: "A_b" is no name of a namespace`},
		},
		"a reference without a group": {
			binding(func(b *permissionv1alpha1.RoleBinding) { b.RoleRef.Name = "view" }),
			[]string{"spec.roleBindings[0].roleRef.apiGroup: is empty beside name; set it to rbac.authorization.k8s.io"},
		},
		"a reference without a name": {
			binding(func(b *permissionv1alpha1.RoleBinding) { b.RoleRef.APIGroup = rbacv1.GroupName }),
			[]string{"spec.roleBindings[0].roleRef.name: is empty beside apiGroup; set both"},
		},
		"a reference of another group": {
			clusterWide(reference("x", "ClusterRole", "view")),
			[]string{`spec.clusterRoleBinding.roleRef.apiGroup: is "x"; set it to rbac.authorization.k8s.io`},
		},
		"a Role for the whole cluster": {
			clusterWide(reference(rbacv1.GroupName, "Role", "r")),
			[]string{`spec.clusterRoleBinding.roleRef.kind: is "Role"; a ClusterRoleBinding can only refer to a ClusterRole`},
		},
		"an unknown kind of role": {
			binding(func(b *permissionv1alpha1.RoleBinding) { b.RoleRef.Kind = "Rule" }),
			[]string{`spec.roleBindings[0].roleRef.kind: is "Rule"; use Role or ClusterRole`},
		},
		"a name that a work would read as a pattern": {
			clusterWide(reference(rbacv1.GroupName, "ClusterRole", "a*")),
			[]string{"spec.clusterRoleBinding.roleRef.name: \"a*\" may not contain '%'"},
		},
		"two bindings of one name": {
			spec{RoleBindings: []permissionv1alpha1.RoleBinding{
				{Namespace: "a", RoleRef: viewer, Subject: user("u")}, {Namespace: "b", RoleRef: viewer, Subject: user("u")},
				{Namespace: "a", RoleRef: own, Subject: user("v")},
			}},
			[]string{"spec.roleBindings[2]: makes the same RoleBinding a/p as spec.roleBindings[0]; set spec.roleBindings[2].name to another one"},
		},
		"two bindings for the cluster of one name": {
			spec{ClusterRoleBindings: []permissionv1alpha1.ClusterRoleBinding{{Subject: user("u")}, {Subject: user("v")}}},
			[]string{"spec.clusterRoleBindings[1]: makes the same ClusterRoleBinding p as spec.clusterRoleBindings[0]; give one of them another name"},
		},
		"two roles in one namespace": {
			spec{Roles: []permissionv1alpha1.Role{{Namespace: "a", Rules: read}, {Namespace: "a", Rules: read}}},
			[]string{"spec.roles[1]: makes the same Role a/p as spec.roles[0]; merge their rules"},
		},
		"no subject": {
			binding(func(b *permissionv1alpha1.RoleBinding) { b.Subject, b.Subjects = nil, []rbacv1.Subject{} }),
			[]string{"spec.roleBindings[0]: has no subject; set subject or subjects"},
		},
		"a subject without a name": {subject(rbacv1.Subject{Kind: "User"}), []string{"spec.roleBindings[0] subject 1: has no name"}},
		"a subject of another kind": {
			subject(rbacv1.Subject{Kind: "Robot", Name: "r"}),
			[]string{`spec.roleBindings[0] subject 1: is of kind "Robot"; use User,`},
		},
		"a user of another group": {subject(rbacv1.Subject{Kind: "User", APIGroup: "x", Name: "u"}), []string{`subject 1: has the apiGroup "x"`}},
		"a user in a namespace": {
			subject(rbacv1.Subject{Kind: "User", Name: "u", Namespace: "n"}),
			[]string{"subject 1: has a namespace; a User has none"},
		},
		"an account without one": {
			subject(rbacv1.Subject{Kind: "ServiceAccount", Name: "u"}),
			[]string{"subject 1: has no namespace; a ServiceAccount needs one"},
		},
		"an account of a wrong one": {
			subject(rbacv1.Subject{Kind: "ServiceAccount", Name: "u", Namespace: "N"}),
			[]string{`subject 1: "N" is no name of a namespace`},
		},
		"an account of a group": {
			subject(rbacv1.Subject{Kind: "ServiceAccount", APIGroup: "x", Name: "u"}),
			[]string{`subject 1: has the apiGroup "x"; that of a ServiceAccount is empty`},
		},
		"an impossible MSA": {subject(*account("A_b")), []string{`subject 1: "A_b" is no name of a ManagedServiceAccount`}},
		"a binding of Kubernetes": {
			clusterWide(func(b *permissionv1alpha1.ClusterRoleBinding) { b.Name = "cluster-admin" }),
			[]string{`spec.clusterRoleBinding.name: "cluster-admin" is the name of an object that the cluster or its agent needs`},
		},
		"a binding of a component": {
			binding(func(b *permissionv1alpha1.RoleBinding) { b.Name = "system::leader-locking" }),
			[]string{"spec.roleBindings[0].name: "},
		},
		"a binding of the agent": {
			clusterWide(func(b *permissionv1alpha1.ClusterRoleBinding) { b.Name = "kubectl-ocm:klusterlet" }),
			[]string{"spec.clusterRoleBinding.name: "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Problems(permission(tc.spec))
			require.Len(t, got, len(tc.want), got)
			for i := range got {
				require.Contains(t, got[i], tc.want[i])
			}
		})
	}
	many := spec{}
	for range 9 {
		many.RoleBindings = append(many.RoleBindings, permissionv1alpha1.RoleBinding{Namespace: "a", RoleRef: own})
	}
	got := Problems(permission(many))
	require.Len(t, got, 6)
	require.Equal(t, "and 12 more", got[5], "nine without a subject, eight of the same name, five of them told")

	for name, want := range map[string]string{
		"admin":                  `metadata.name: "admin" is the name of an object`,
		strings.Repeat("x", 183): "metadata.name: has 183 characters; use at most 182",
	} {
		cp := permission(binding(func(*permissionv1alpha1.RoleBinding) {}))
		cp.Name = name
		require.Contains(t, strings.Join(Problems(cp), "\n"), want)
	}
}

func TestRightsBeyondThoseThatAreNamed(t *testing.T) {
	rule := func(change func(*rbacv1.PolicyRule)) spec {
		r := *read[0].DeepCopy()
		change(&r)
		return spec{ClusterRole: &permissionv1alpha1.ClusterRole{Rules: []rbacv1.PolicyRule{r}}}
	}
	for name, tc := range map[string]struct {
		spec spec
		want []string
	}{
		"named ones":     {rule(func(*rbacv1.PolicyRule) {}), nil},
		"every verb":     {rule(func(r *rbacv1.PolicyRule) { r.Verbs = []string{"*"} }), []string{"spec.clusterRole.rules[0].verbs: *"}},
		"every resource": {rule(func(r *rbacv1.PolicyRule) { r.Resources = []string{"*"} }), []string{"spec.clusterRole.rules[0].resources: *"}},
		"every subresource": {
			rule(func(r *rbacv1.PolicyRule) { r.Resources = []string{"*/scale"} }), []string{"spec.clusterRole.rules[0].resources: */scale"},
		},
		"every group": {rule(func(r *rbacv1.PolicyRule) { r.APIGroups = []string{"*"} }), []string{"spec.clusterRole.rules[0].apiGroups: *"}},
		"every path": {
			rule(func(r *rbacv1.PolicyRule) { r.NonResourceURLs = []string{"/debug/*"} }), []string{"spec.clusterRole.rules[0].nonResourceURLs: /debug/*"},
		},
		"impersonation": {
			rule(func(r *rbacv1.PolicyRule) { r.Verbs = []string{"get", "impersonate"} }), []string{"spec.clusterRole.rules[0].verbs: impersonate"},
		},
		"roles": {
			spec{Roles: []permissionv1alpha1.Role{{}, {Rules: []rbacv1.PolicyRule{{Verbs: []string{"bind", "escalate"}}}}}},
			[]string{"spec.roles[1].rules[0].verbs: bind", "spec.roles[1].rules[0].verbs: escalate"},
		},
		"an administrator of the cluster": {
			clusterWide(func(b *permissionv1alpha1.ClusterRoleBinding) {
				b.RoleRef = &permissionv1alpha1.ClusterRoleRef{Kind: "ClusterRole", Name: "cluster-admin"}
			}),
			[]string{"spec.clusterRoleBinding.roleRef: ClusterRole cluster-admin"},
		},
		"an administrator of a namespace": {
			binding(func(b *permissionv1alpha1.RoleBinding) {
				b.RoleRef = permissionv1alpha1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node"}
			}),
			[]string{"spec.roleBindings[0].roleRef: ClusterRole system:node"},
		},
		"a viewer":                 {binding(func(b *permissionv1alpha1.RoleBinding) { b.RoleRef = viewer }), nil},
		"a Role of that very name": {binding(func(b *permissionv1alpha1.RoleBinding) { b.RoleRef.Name = "cluster-admin" }), nil},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, Elevated(&tc.spec)) })
	}
}

func TestAdvice(t *testing.T) {
	cp := permission(spec{
		ClusterRoleBinding: &permissionv1alpha1.ClusterRoleBinding{}, ClusterRoleBindings: []permissionv1alpha1.ClusterRoleBinding{{}},
		RoleBindings: []permissionv1alpha1.RoleBinding{{Name: "x", NamespaceSelector: team, RoleRef: viewer}, {Name: "y", Namespace: "a", RoleRef: viewer}},
	})
	require.Equal(t, []string{
		"spec.clusterRoleBinding: has no effect beside clusterRoleBindings",
		"spec.roleBindings[0].name: has no effect beside namespaceSelector: the name is p",
		"spec.roleBindings[0].roleRef.name: has no effect beside namespaceSelector: the ClusterRole is p",
	}, Advice(cp))
}

// texts writes manifests one a line.
func texts(t *testing.T, manifests []Manifest) (out []string) {
	t.Helper()
	for _, m := range manifests {
		var o struct {
			Kind     string
			Metadata metav1.ObjectMeta
			RoleRef  rbacv1.RoleRef
			Subjects []rbacv1.Subject
			Rules    []rbacv1.PolicyRule
		}
		require.NoError(t, json.Unmarshal(m.Raw, &o))
		require.Equal(t, []string{m.Kind, m.Namespace, m.Name}, []string{o.Kind, o.Metadata.Namespace, o.Metadata.Name})
		line := o.Kind + " " + strings.TrimPrefix(o.Metadata.Namespace+"/"+o.Metadata.Name, "/")
		if m.Reference {
			line = "look at " + line
		}
		if o.RoleRef.Name != "" {
			require.Equal(t, rbacv1.GroupName, o.RoleRef.APIGroup)
			line += " = " + o.RoleRef.Kind + " " + o.RoleRef.Name
		}
		for _, s := range o.Subjects {
			line += " + " + strings.TrimSpace(s.APIGroup+" "+s.Kind+" "+s.Namespace+" "+s.Name)
		}
		out = append(out, line)
	}
	return out
}

func TestObjectsInTheirOrder(t *testing.T) {
	facts := Facts{
		Selected: map[string][]string{"spec.roles[1]": {"b", "d"}, "spec.roleBindings[1]": {"b", "d"}},
		Accounts: map[string]bool{"argo": true}, AddOn: true, AddOnNamespace: "agents",
	}
	all := spec{
		Validate: ptr.To(true), ClusterRole: &permissionv1alpha1.ClusterRole{Rules: read},
		ClusterRoleBinding: &permissionv1alpha1.ClusterRoleBinding{Name: "ignored", Subject: user("u")},
		ClusterRoleBindings: []permissionv1alpha1.ClusterRoleBinding{
			{Subject: account("argo")},
			{
				Name: "more", RoleRef: &permissionv1alpha1.ClusterRoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
				Subject: user("ignored"), Subjects: []rbacv1.Subject{{Kind: "Group", Name: "g"}, {Kind: "ServiceAccount", Namespace: "n", Name: "s"}},
			},
		},
		Roles: []permissionv1alpha1.Role{{Namespace: "a", Rules: read}, {NamespaceSelector: team, Rules: read}},
		RoleBindings: []permissionv1alpha1.RoleBinding{
			{Namespace: "a", RoleRef: own, Subject: user("u")},
			{Name: "forced", NamespaceSelector: team, RoleRef: permissionv1alpha1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "x"}, Subject: user("u")},
			{Name: "named", Namespace: "a", RoleRef: permissionv1alpha1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "theirs"}, Subject: user("u")},
		},
	}
	manifests, err := Render(permission(all), facts)
	require.NoError(t, err)
	const u = "rbac.authorization.k8s.io User  u"
	require.Empty(t, cmp.Diff([]string{
		"ClusterRole p",
		"ClusterRoleBinding p = ClusterRole p + ServiceAccount agents argo",
		"ClusterRoleBinding more = ClusterRole view + rbac.authorization.k8s.io Group  g + ServiceAccount n s",
		"Role a/p", "Role b/p", "Role d/p",
		"RoleBinding a/p = Role p + " + u,
		"RoleBinding b/p = Role p + " + u, "RoleBinding d/p = Role p + " + u,
		"RoleBinding a/named = Role theirs + " + u,
		"look at ClusterRole view", "look at Role a/theirs",
	}, texts(t, manifests)))

	work := Spec(manifests)
	require.Len(t, work.Workload.Manifests, len(manifests))
	require.JSONEq(t, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"theirs","namespace":"a"}}`,
		string(work.Workload.Manifests[len(manifests)-1].Raw))
	look := &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeReadOnly}
	require.Equal(t, []workv1.ManifestConfigOption{
		{
			ResourceIdentifier: workv1.ResourceIdentifier{Group: rbacv1.GroupName, Resource: "clusterroles", Name: "view"},
			FeedbackScrapeType: "Poll", UpdateStrategy: look,
		},
		{
			ResourceIdentifier: workv1.ResourceIdentifier{Group: rbacv1.GroupName, Resource: "roles", Namespace: "a", Name: "theirs"},
			FeedbackScrapeType: "Poll", UpdateStrategy: look,
		},
	}, work.ManifestConfigs)

	all.Validate = nil
	manifests, err = Render(permission(all), facts)
	require.NoError(t, err)
	require.Empty(t, Spec(manifests).ManifestConfigs)
}

func TestWhatIsMissing(t *testing.T) {
	withAccount := binding(func(b *permissionv1alpha1.RoleBinding) { b.Subject = account("argo") })
	require.True(t, UsesAccounts(&withAccount))
	known := map[string]bool{"argo": true}
	selecting := binding(func(b *permissionv1alpha1.RoleBinding) { b.Namespace, b.NamespaceSelector = "", team })
	require.False(t, UsesAccounts(&selecting))
	require.Equal(t, map[string]*metav1.LabelSelector{"spec.roleBindings[0]": team}, Selecting(&selecting))
	twice := spec{Roles: []permissionv1alpha1.Role{{Namespace: "a"}, {NamespaceSelector: team}}}
	for name, tc := range map[string]struct {
		spec  spec
		facts Facts
		want  string
	}{
		"nothing": {withAccount, Facts{Accounts: known, AddOn: true, AddOnNamespace: "n"}, ""},
		"the account": {
			withAccount, Facts{AddOn: true, AddOnNamespace: "n"},
			"spec.roleBindings[0]: there is no ManagedServiceAccount argo in namespace c1; create it",
		},
		"the add-on": {
			withAccount, Facts{Accounts: known},
			"the ServiceAccount of ManagedServiceAccount argo is unknown: add-on managed-serviceaccount is not enabled for the cluster",
		},
		"where it runs": {withAccount, Facts{Accounts: known, AddOn: true}, "add-on managed-serviceaccount has not said where it runs yet"},
		"a namespace":   {selecting, Facts{}, "spec.roleBindings[0].namespaceSelector: selects no namespace of the hub"},
		"a difference of places": {
			twice, Facts{Selected: map[string][]string{"spec.roles[1]": {"a"}}},
			"spec.roles[1]: its selector makes the same Role a/p as spec.roles[0]; let only one of them select that namespace",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Render(permission(tc.spec), tc.facts)
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
		})
	}
}
