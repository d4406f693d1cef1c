// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	permissionv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/rbac/v1alpha1"
)

// maxName is the longest name of a ClusterPermission: that of its ManifestWork has six
// characters more, and that of the AppliedManifestWork another 65.
const maxName = validation.DNS1123SubdomainMaxLength - 65 - 6

// maxProblems is the most mistakes that are named.
const maxProblems = 5

// Kinds that bindings refer to, and kinds of subjects.
const (
	kindClusterRole = "ClusterRole"
	kindRole        = "Role"
)

// HasBindings reports whether there is a subject that would get the rights.
func HasBindings(spec *permissionv1alpha1.ClusterPermissionSpec) bool {
	return spec.ClusterRoleBinding != nil || len(spec.ClusterRoleBindings) > 0 || len(spec.RoleBindings) > 0
}

// Problems returns the mistakes of a spec that keep it from being sent, each with the path of
// the field and the fix.
func Problems(cp *permissionv1alpha1.ClusterPermission) []string {
	c := &checks{cp: cp, taken: map[object]string{}}
	if len(cp.Name) > maxName {
		c.add("metadata.name", "has %d characters; use at most %d", len(cp.Name), maxName)
	}
	if isReserved(cp.Name) {
		c.own("metadata.name", cp.Name)
	}
	for i := range cp.Spec.Roles {
		role, at := &cp.Spec.Roles[i], fmt.Sprintf("spec.roles[%d]", i)
		c.place(at, role.Namespace, role.NamespaceSelector)
		if role.Namespace != "" {
			c.claim(at, object{kindRole, role.Namespace, cp.Name}, "merge their rules")
		}
	}
	for _, b := range clusterBindings(&cp.Spec) {
		c.clusterBinding(b)
	}
	for i := range cp.Spec.RoleBindings {
		c.roleBinding(fmt.Sprintf("spec.roleBindings[%d]", i), &cp.Spec.RoleBindings[i])
	}
	if more := len(c.out) - maxProblems; more > 0 {
		c.out = append(c.out[:maxProblems], fmt.Sprintf("and %d more", more))
	}
	return c.out
}

// object is one object of a cluster.
type object struct{ kind, namespace, name string }

// checks collects the problems of one ClusterPermission.
type checks struct {
	cp  *permissionv1alpha1.ClusterPermission
	out []string
	// taken holds the field that makes each object.
	taken map[object]string
}

func (c *checks) add(at, format string, args ...any) {
	c.out = append(c.out, at+": "+fmt.Sprintf(format, args...))
}

// claim reports objects that two fields make.
func (c *checks) claim(at string, o object, fix string) {
	if first, taken := c.taken[o]; taken {
		c.add(at, "makes the same %s %s as %s; %s", o.kind, strings.TrimPrefix(o.namespace+"/"+o.name, "/"), first, fix)
		return
	}
	c.taken[o] = at
}

// place checks where a role or a binding is made.
func (c *checks) place(at, namespace string, selector *metav1.LabelSelector) {
	switch {
	case namespace == "" && selector == nil:
		c.add(at, "has neither namespace nor namespaceSelector; set one of them")
	case namespace != "" && selector != nil:
		c.add(at, "has both namespace and namespaceSelector; remove one of them")
	case selector != nil:
		if _, err := metav1.LabelSelectorAsSelector(selector); err != nil {
			c.add(at+".namespaceSelector", "%v", err)
		}
	default:
		if faults := validation.IsDNS1123Label(namespace); len(faults) > 0 {
			c.add(at+".namespace", "%.63q is no name of a namespace: %s", namespace, strings.Join(faults, "; "))
		}
	}
}

// name checks the name of a role. A work takes * for any characters.
func (c *checks) name(at, name string) {
	if faults := content.IsPathSegmentName(strings.ReplaceAll(name, "*", "%")); len(faults) > 0 {
		c.add(at, "%.63q %s", name, strings.Join(faults, "; "))
	}
}

// own checks the name of an object that is made: an existing one would be replaced, and deleted
// with the ClusterPermission.
func (c *checks) own(at, name string) {
	c.name(at, name)
	if isReserved(name) {
		c.add(at, "%.63q is the name of an object that the cluster or its agent needs; use another name", name)
	}
}

// isReserved reports whether a role or binding of that name belongs to Kubernetes or an agent.
func isReserved(name string) bool {
	return slices.Contains([]string{"cluster-admin", "admin", "edit", "view"}, name) ||
		slices.ContainsFunc([]string{"system:", "kubectl-ocm:", "open-cluster-management:"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

func (c *checks) clusterBinding(b clusterBinding) {
	name := b.name(c.cp.Name)
	c.own(b.at+".name", name)
	c.claim(b.at, object{"ClusterRoleBinding", "", name}, "give one of them another name")
	if ref := b.RoleRef; ref != nil {
		if ref.Kind != kindClusterRole {
			c.add(b.at+".roleRef.kind", "is %.63q; a ClusterRoleBinding can only refer to a ClusterRole", ref.Kind)
		}
		c.reference(b.at+".roleRef", ref.APIGroup, ref.Name)
	}
	c.subjects(b.at, subjectsOf(b.Subject, b.Subjects))
}

func (c *checks) roleBinding(at string, b *permissionv1alpha1.RoleBinding) {
	c.place(at, b.Namespace, b.NamespaceSelector)
	if b.Namespace != "" {
		name := cmp.Or(b.Name, c.cp.Name)
		c.own(at+".name", name)
		c.claim(at, object{"RoleBinding", b.Namespace, name}, "set "+at+".name to another one")
	}
	if kind := b.RoleRef.Kind; kind != kindRole && kind != kindClusterRole {
		c.add(at+".roleRef.kind", "is %.63q; use Role or ClusterRole", kind)
	}
	if b.RoleRef.APIGroup != "" || b.RoleRef.Name != "" {
		c.reference(at+".roleRef", b.RoleRef.APIGroup, b.RoleRef.Name)
	}
	c.subjects(at, subjectsOf(b.Subject, b.Subjects))
}

// reference checks what names a role; an empty one does not get here unless it must not be.
func (c *checks) reference(at, group, name string) {
	switch {
	case name == "":
		c.add(at+".name", "is empty beside apiGroup; set both, or neither for the role with the name of this object")
	case group == "":
		c.add(at+".apiGroup", "is empty beside name; set it to %s", rbacv1.GroupName)
	case group != rbacv1.GroupName:
		c.add(at+".apiGroup", "is %.63q; set it to %s", group, rbacv1.GroupName)
	default:
		c.name(at+".name", name)
	}
}

func (c *checks) subjects(at string, all []rbacv1.Subject) {
	if len(all) == 0 {
		c.add(at, "has no subject; set subject or subjects")
	}
	for i := range all {
		s := &all[i]
		// The path of a single subject and that of one of several differ in more than a number.
		at := fmt.Sprintf("%s subject %d", at, i+1)
		switch {
		case s.Name == "":
			c.add(at, "has no name")
		case isAccount(s):
			if faults := validation.IsDNS1123Subdomain(s.Name); len(faults) > 0 {
				c.add(at, "%.63q is no name of a ManagedServiceAccount: %s", s.Name, strings.Join(faults, "; "))
			}
		case s.Kind == rbacv1.ServiceAccountKind:
			c.account(at, s)
		case s.Kind != rbacv1.UserKind && s.Kind != rbacv1.GroupKind:
			c.add(at, "is of kind %.63q; use User, Group, ServiceAccount, or ManagedServiceAccount of apiGroup %s",
				s.Kind, permissionv1alpha1.GroupManagedServiceAccount)
		case s.APIGroup != "" && s.APIGroup != rbacv1.GroupName:
			c.add(at, "has the apiGroup %.63q; a %s is of %s", s.APIGroup, s.Kind, rbacv1.GroupName)
		case s.Namespace != "":
			c.add(at, "has a namespace; a %s has none", s.Kind)
		}
	}
}

func (c *checks) account(at string, s *rbacv1.Subject) {
	switch {
	case s.APIGroup != "":
		c.add(at, "has the apiGroup %.63q; that of a ServiceAccount is empty", s.APIGroup)
	case s.Namespace == "":
		c.add(at, "has no namespace; a ServiceAccount needs one")
	default:
		if faults := validation.IsDNS1123Label(s.Namespace); len(faults) > 0 {
			c.add(at, "%.63q is no name of a namespace: %s", s.Namespace, strings.Join(faults, "; "))
		}
	}
}

// leading are verbs that lead to rights that no rule names.
var leading = []string{"escalate", "bind", "impersonate"}

// Elevated returns what in a spec gives rights beyond those that it names: wildcards in rules,
// verbs that lead to further rights, and references to roles of administrators.
func Elevated(spec *permissionv1alpha1.ClusterPermissionSpec) []string {
	var out []string
	if spec.ClusterRole != nil {
		out = append(out, elevatedRules("spec.clusterRole", spec.ClusterRole.Rules)...)
	}
	for i := range spec.Roles {
		out = append(out, elevatedRules(fmt.Sprintf("spec.roles[%d]", i), spec.Roles[i].Rules)...)
	}
	for _, b := range clusterBindings(spec) {
		if b.RoleRef != nil && isAdministrative(b.RoleRef.Name) {
			out = append(out, fmt.Sprintf("%s.roleRef: %s %s", b.at, kindClusterRole, b.RoleRef.Name))
		}
	}
	for i := range spec.RoleBindings {
		if ref := spec.RoleBindings[i].RoleRef; ref.Kind == kindClusterRole && isAdministrative(ref.Name) {
			out = append(out, fmt.Sprintf("spec.roleBindings[%d].roleRef: %s %s", i, kindClusterRole, ref.Name))
		}
	}
	return out
}

func isAdministrative(role string) bool {
	return role == "cluster-admin" || strings.HasPrefix(role, "system:")
}

func elevatedRules(at string, rules []rbacv1.PolicyRule) (out []string) {
	for i := range rules {
		r := &rules[i]
		at := fmt.Sprintf("%s.rules[%d]", at, i)
		for _, part := range []struct {
			field  string
			values []string
		}{{"apiGroups", r.APIGroups}, {"resources", r.Resources}, {"verbs", r.Verbs}, {"nonResourceURLs", r.NonResourceURLs}} {
			for _, value := range part.values {
				if strings.Contains(value, "*") || part.field == "verbs" && slices.Contains(leading, value) {
					out = append(out, fmt.Sprintf("%s.%s: %s", at, part.field, value))
				}
			}
		}
	}
	return out
}

// Advice returns what has another effect than it seems to have.
func Advice(cp *permissionv1alpha1.ClusterPermission) (out []string) {
	if cp.Spec.ClusterRoleBinding != nil && len(cp.Spec.ClusterRoleBindings) > 0 {
		out = append(out, "spec.clusterRoleBinding: has no effect beside clusterRoleBindings")
	}
	for i := range cp.Spec.RoleBindings {
		b := &cp.Spec.RoleBindings[i]
		if b.NamespaceSelector == nil {
			continue
		}
		if b.Name != "" && b.Name != cp.Name {
			out = append(out, fmt.Sprintf("spec.roleBindings[%d].name: has no effect beside namespaceSelector: the name is %s", i, cp.Name))
		}
		if b.RoleRef.Name != "" && b.RoleRef.Name != cp.Name {
			out = append(out, fmt.Sprintf("spec.roleBindings[%d].roleRef.name: has no effect beside namespaceSelector: the %s is %s",
				i, b.RoleRef.Kind, cp.Name))
		}
	}
	return out
}
