// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	permissionv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/rbac/v1alpha1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// Facts are what rendering depends on besides the ClusterPermission.
type Facts struct {
	// Selected holds the names of the hub's namespaces that a selector selects, by the path of
	// its role or binding.
	Selected map[string][]string
	// Accounts are the ManagedServiceAccounts of the cluster by name.
	Accounts map[string]bool
	// AddOn is true when the cluster has the add-on that makes their ServiceAccounts, in
	// AddOnNamespace.
	AddOn          bool
	AddOnNamespace string
}

// Manifest is one object of the ManifestWork.
type Manifest struct {
	// Kind, Namespace and Name of the object.
	Kind, Namespace, Name string
	// Reference is true for a role that a binding refers to, of which only the existence is
	// reported.
	Reference bool
	// Raw is the object.
	Raw []byte
}

// Selecting returns the selectors of a spec by the path of their role or binding.
func Selecting(spec *permissionv1alpha1.ClusterPermissionSpec) map[string]*metav1.LabelSelector {
	out := map[string]*metav1.LabelSelector{}
	for i := range spec.Roles {
		if s := spec.Roles[i].NamespaceSelector; s != nil {
			out[fmt.Sprintf("spec.roles[%d]", i)] = s
		}
	}
	for i := range spec.RoleBindings {
		if s := spec.RoleBindings[i].NamespaceSelector; s != nil {
			out[fmt.Sprintf("spec.roleBindings[%d]", i)] = s
		}
	}
	return out
}

// UsesAccounts reports whether a subject of a spec is a ManagedServiceAccount.
func UsesAccounts(spec *permissionv1alpha1.ClusterPermissionSpec) bool {
	is := func(one *rbacv1.Subject, several []rbacv1.Subject) bool {
		return slices.ContainsFunc(subjectsOf(one, several), func(s rbacv1.Subject) bool { return isAccount(&s) })
	}
	return slices.ContainsFunc(clusterBindings(spec), func(b clusterBinding) bool { return is(b.Subject, b.Subjects) }) ||
		slices.ContainsFunc(spec.RoleBindings, func(b permissionv1alpha1.RoleBinding) bool { return is(b.Subject, b.Subjects) })
}

// isAccount reports whether a subject is a ManagedServiceAccount.
func isAccount(s *rbacv1.Subject) bool {
	return s.APIGroup == permissionv1alpha1.GroupManagedServiceAccount && s.Kind == permissionv1alpha1.KindManagedServiceAccount
}

// Render returns the objects of a ClusterPermission without Problems, in the order in which
// they are sent, or an error that names the field for which something is missing.
func Render(cp *permissionv1alpha1.ClusterPermission, f Facts) ([]Manifest, error) {
	r := &renderer{cp: cp, facts: f, made: map[object]string{}}
	if role := cp.Spec.ClusterRole; role != nil {
		r.add("spec.clusterRole", &rbacv1.ClusterRole{TypeMeta: typeOf(kindClusterRole), ObjectMeta: metav1.ObjectMeta{Name: cp.Name}, Rules: role.Rules})
	}
	for _, b := range clusterBindings(&cp.Spec) {
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kindClusterRole, Name: cp.Name}
		if b.RoleRef != nil {
			ref.Name = b.RoleRef.Name
		}
		r.refer(object{kindClusterRole, "", ref.Name})
		r.add(b.at, &rbacv1.ClusterRoleBinding{
			TypeMeta: typeOf("ClusterRoleBinding"), ObjectMeta: metav1.ObjectMeta{Name: b.name(cp.Name)}, RoleRef: ref,
			Subjects: r.subjects(b.at, subjectsOf(b.Subject, b.Subjects)),
		})
	}
	for i := range cp.Spec.Roles {
		role, at := &cp.Spec.Roles[i], fmt.Sprintf("spec.roles[%d]", i)
		for _, namespace := range r.namespaces(at, role.Namespace) {
			r.add(at, &rbacv1.Role{TypeMeta: typeOf(kindRole), ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cp.Name}, Rules: role.Rules})
		}
	}
	for i := range cp.Spec.RoleBindings {
		r.roleBinding(fmt.Sprintf("spec.roleBindings[%d]", i), &cp.Spec.RoleBindings[i])
	}
	if cp.Spec.Validate != nil && *cp.Spec.Validate {
		r.references()
	}
	return r.out, r.err
}

// renderer renders one ClusterPermission.
type renderer struct {
	cp    *permissionv1alpha1.ClusterPermission
	facts Facts
	out   []Manifest
	// made holds the field that makes each object, and referred the roles of bindings.
	made     map[object]string
	referred []object
	// err is the first of what is missing.
	err error
}

func (r *renderer) fail(at, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(at+": "+format, args...)
	}
}

func typeOf(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

// manifest is an object of the API.
type manifest interface {
	metav1.Object
	runtime.Object
}

// add appends an object that a field makes.
func (r *renderer) add(at string, o manifest) {
	id := object{o.GetObjectKind().GroupVersionKind().Kind, o.GetNamespace(), o.GetName()}
	if first, taken := r.made[id]; taken {
		r.fail(at, "its selector makes the same %s %s/%s as %s; let only one of them select that namespace", id.kind, id.namespace, id.name, first)
		return
	}
	r.made[id] = at
	raw, err := json.Marshal(o)
	if err != nil {
		r.fail(at, "encoding it: %w", err)
	}
	r.out = append(r.out, Manifest{Kind: id.kind, Namespace: id.namespace, Name: id.name, Raw: raw})
}

// namespaces returns where the role or binding at a path is made.
func (r *renderer) namespaces(at, namespace string) []string {
	if namespace != "" {
		return []string{namespace}
	}
	selected := r.facts.Selected[at]
	if len(selected) == 0 {
		r.fail(at+".namespaceSelector", "selects no namespace of the hub; label one that has the name of a namespace of the cluster")
	}
	return selected
}

func (r *renderer) roleBinding(at string, b *permissionv1alpha1.RoleBinding) {
	name, role := cmp.Or(b.Name, r.cp.Name), cmp.Or(b.RoleRef.Name, r.cp.Name)
	if b.NamespaceSelector != nil {
		name, role = r.cp.Name, r.cp.Name
	}
	subjects := r.subjects(at, subjectsOf(b.Subject, b.Subjects))
	for _, namespace := range r.namespaces(at, b.Namespace) {
		ref := object{b.RoleRef.Kind, namespace, role}
		if ref.kind == kindClusterRole {
			ref.namespace = ""
		}
		r.refer(ref)
		r.add(at, &rbacv1.RoleBinding{
			TypeMeta: typeOf("RoleBinding"), ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: b.RoleRef.Kind, Name: role},
		})
	}
}

// subjects returns the subjects of a binding as they are called on the cluster.
func (r *renderer) subjects(at string, all []rbacv1.Subject) []rbacv1.Subject {
	out := make([]rbacv1.Subject, 0, len(all))
	for _, s := range all {
		switch {
		case isAccount(&s):
			if !r.facts.Accounts[s.Name] {
				r.fail(at, "there is no ManagedServiceAccount %s in namespace %s; create it", s.Name, r.cp.Namespace)
			}
			if r.facts.AddOnNamespace == "" {
				what := "has not said where it runs yet"
				if !r.facts.AddOn {
					what = "is not enabled for the cluster"
				}
				r.fail(at, "the ServiceAccount of ManagedServiceAccount %s is unknown: add-on %s %s",
					s.Name, permissionv1alpha1.AddOnManagedServiceAccount, what)
			}
			s = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: s.Name, Namespace: r.facts.AddOnNamespace}
		case s.Kind != rbacv1.ServiceAccountKind:
			s.APIGroup = rbacv1.GroupName
		}
		out = append(out, s)
	}
	return out
}

func (r *renderer) refer(o object) {
	if !slices.Contains(r.referred, o) {
		r.referred = append(r.referred, o)
	}
}

// references appends the roles that bindings refer to and the ClusterPermission does not make.
func (r *renderer) references() {
	for _, o := range r.referred {
		if _, own := r.made[o]; own {
			continue
		}
		raw, err := json.Marshal(&metav1.PartialObjectMetadata{
			TypeMeta: typeOf(o.kind), ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: o.name},
		})
		if err != nil {
			r.fail("spec.validate", "encoding a role: %w", err)
		}
		r.out = append(r.out, Manifest{Kind: o.kind, Namespace: o.namespace, Name: o.name, Reference: true, Raw: raw})
	}
}

// Spec returns the spec of the ManifestWork with these objects. It names what the API server
// would add, so that the live one can be compared with it.
func Spec(manifests []Manifest) workv1.ManifestWorkSpec {
	var out workv1.ManifestWorkSpec
	for _, m := range manifests {
		out.Workload.Manifests = append(out.Workload.Manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: m.Raw}})
		if !m.Reference {
			continue
		}
		resource := "roles"
		if m.Kind == kindClusterRole {
			resource = "clusterroles"
		}
		out.ManifestConfigs = append(out.ManifestConfigs, workv1.ManifestConfigOption{
			ResourceIdentifier: workv1.ResourceIdentifier{Group: rbacv1.GroupName, Resource: resource, Namespace: m.Namespace, Name: m.Name},
			FeedbackScrapeType: workv1.FeedbackScrapeTypePoll,
			UpdateStrategy:     &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeReadOnly},
		})
	}
	return out
}

// clusterBinding is a ClusterRoleBinding with its path in the spec.
type clusterBinding struct {
	*permissionv1alpha1.ClusterRoleBinding
	at string
}

func (b clusterBinding) name(fallback string) string { return cmp.Or(b.Name, fallback) }

// clusterBindings returns the ClusterRoleBindings that count.
func clusterBindings(spec *permissionv1alpha1.ClusterPermissionSpec) (out []clusterBinding) {
	for i := range spec.ClusterRoleBindings {
		out = append(out, clusterBinding{&spec.ClusterRoleBindings[i], fmt.Sprintf("spec.clusterRoleBindings[%d]", i)})
	}
	if len(out) == 0 && spec.ClusterRoleBinding != nil {
		out = append(out, clusterBinding{spec.ClusterRoleBinding, "spec.clusterRoleBinding"})
	}
	return out
}

// subjectsOf returns the subjects that count.
func subjectsOf(one *rbacv1.Subject, several []rbacv1.Subject) []rbacv1.Subject {
	if len(several) == 0 && one != nil {
		return []rbacv1.Subject{*one}
	}
	return several
}
