// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

var (
	rolesResource    = rbacv1.SchemeGroupVersion.WithResource("roles")
	bindingsResource = rbacv1.SchemeGroupVersion.WithResource("rolebindings")
)

// permit plans the roles and bindings of an instance, and removes those that are no longer
// wanted.
func (s State) permit(plan *reconcile.Plan, registrations []addonv1alpha1.RegistrationConfig) error {
	if len(s.Permissions) == 0 {
		s.removeUnwanted(plan, nil, nil)
		return nil
	}
	client := kubeClient(registrations)
	if client == nil {
		return errors.New(
			"the add-on has permissions but no registration for the API server of the hub; add one with signer " + addonv1alpha1.KubeAPIServerSigner,
		)
	}
	roles, bindings, err := s.wanted(subjects(s.AddOn, *client))
	if err != nil {
		return err
	}
	for _, want := range roles {
		live := findByName(s.Roles, want)
		if live == nil || !reflect.DeepEqual(live.Rules, want.Rules) {
			plan.Writes = append(plan.Writes, reconcile.Apply{Object: want})
		}
	}
	for _, want := range bindings {
		live := findByName(s.Bindings, want)
		if live != nil && live.RoleRef == want.RoleRef && sameSubjects(live.Subjects, want.Subjects) {
			continue // including one that an administrator created
		}
		if live != nil && live.RoleRef != want.RoleRef {
			// The role of a binding is immutable.
			plan.Writes = append(plan.Writes, reconcile.Remove{Target: targetOf(bindingsResource, live)})
		}
		plan.Writes = append(plan.Writes, reconcile.Apply{Object: want})
	}
	if len(reconcile.Of[reconcile.Apply](plan.Writes)) > 0 {
		plan.OnFailure = &metav1.Condition{
			Type: addonv1alpha1.ConditionRegistrationApplied, Status: metav1.ConditionFalse, Reason: addonv1alpha1.ReasonSetPermissionFailed,
			Message:            addonv1alpha1.MessageSetPermissionFailed + " an administrator can grant it with: " + grants(roles, bindings) + ";",
			ObservedGeneration: s.AddOn.Generation,
		}
	}
	s.removeUnwanted(plan, roles, bindings)
	return nil
}

// subjects returns who permissions are bound to: the user and groups of the registration,
// without groups that agents of other clusters are in.
func subjects(addOn *addonv1alpha1.ManagedClusterAddOn, r addonv1alpha1.RegistrationConfig) []rbacv1.Subject {
	out := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: r.Subject.User}}
	for _, g := range r.Subject.Groups {
		if g != authenticated && g != whoIs(addOn).SharedGroup() {
			out = append(out, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: g})
		}
	}
	return out
}

func sameSubjects(a, b []rbacv1.Subject) bool {
	all := func(list []rbacv1.Subject) (out []string) {
		for _, s := range list {
			out = append(out, s.Kind+"/"+s.Namespace+"/"+s.Name)
		}
		return out
	}
	return sameSet(all(a), all(b))
}

// wanted returns the desired roles and bindings of an instance.
func (s State) wanted(to []rbacv1.Subject) (roles []*rbacv1.Role, bindings []*rbacv1.RoleBinding, err error) {
	used := map[string]int{}
	name := func(namespace, base string) metav1.ObjectMeta {
		m := s.meta(namespace, base)
		key := namespace + "/" + m.Name
		if used[key]++; used[key] > 1 {
			m.Name += ":" + strconv.Itoa(used[key])
		}
		return m
	}
	for i, p := range s.Permissions {
		namespace, ref := cmp.Or(p.Namespace, s.AddOn.Namespace), p.Role
		if ref.Name == "" {
			if len(p.Rules) == 0 {
				return nil, nil, fmt.Errorf("permissions[%d]: names no role and has no rules; give it one of them", i)
			}
			role := &rbacv1.Role{ObjectMeta: name(namespace, prefix(s.AddOn.Name)+"agent"), Rules: p.Rules}
			role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("Role"))
			roles = append(roles, role)
			ref = rbacv1.RoleRef{Kind: "Role", Name: role.Name}
		}
		if ref.Kind != "Role" && ref.Kind != "ClusterRole" {
			return nil, nil, fmt.Errorf("permissions[%d].role.kind: %q is not a kind of role; use Role or ClusterRole", i, ref.Kind)
		}
		ref.APIGroup = rbacv1.GroupName
		b := &rbacv1.RoleBinding{ObjectMeta: name(namespace, prefix(s.AddOn.Name)+strings.ToLower(ref.Kind)+":agent"), RoleRef: ref, Subjects: to}
		b.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"))
		bindings = append(bindings, b)
	}
	return roles, bindings, nil
}

func prefix(addOn string) string { return "open-cluster-management:" + addOn + ":" }

// meta returns the metadata of an object. In the cluster's namespace the instance owns it;
// in any other its name ends with the cluster's.
func (s State) meta(namespace, name string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{
		addonv1alpha1.LabelAddOnName: s.AddOn.Name, clusterv1.LabelClusterName: s.AddOn.Namespace,
	}}
	maps.Copy(m.Labels, s.Labels)
	if namespace == s.AddOn.Namespace {
		m.OwnerReferences = []metav1.OwnerReference{addonkit.Owner(s.AddOn)}
	} else {
		m.Name += ":" + s.AddOn.Namespace
	}
	return m
}

// grants returns the commands with which an administrator creates what the hub may not.
func grants(roles []*rbacv1.Role, bindings []*rbacv1.RoleBinding) string {
	var out []string
	for _, r := range roles {
		for _, rule := range r.Rules {
			out = append(out, fmt.Sprintf("kubectl -n %s create role %s --verb=%s --resource=%s", r.Namespace, r.Name, strings.Join(rule.Verbs, ","), resources(rule)))
		}
	}
	for _, b := range bindings {
		line := fmt.Sprintf("kubectl -n %s create rolebinding %s --%s=%s", b.Namespace, b.Name, strings.ToLower(b.RoleRef.Kind), b.RoleRef.Name)
		for _, s := range b.Subjects {
			line += fmt.Sprintf(" --%s=%s", strings.ToLower(s.Kind), s.Name)
		}
		out = append(out, line)
	}
	return strings.Join(out, " && ")
}

// resources formats those of a rule as kubectl takes them.
func resources(rule rbacv1.PolicyRule) string {
	var out []string
	for _, r := range rule.Resources {
		for _, g := range rule.APIGroups {
			out = append(out, schema.GroupResource{Group: g, Resource: r}.String())
		}
	}
	return strings.Join(out, ",")
}

// removeUnwanted deletes what carries the labels of the instance and is no longer wanted.
func (s State) removeUnwanted(plan *reconcile.Plan, roles []*rbacv1.Role, bindings []*rbacv1.RoleBinding) {
	for _, b := range s.Bindings {
		if marked(b) && findByName(bindings, b) == nil {
			plan.Writes = append(plan.Writes, reconcile.Remove{Target: targetOf(bindingsResource, b)})
		}
	}
	for _, r := range s.Roles {
		if marked(r) && findByName(roles, r) == nil {
			plan.Writes = append(plan.Writes, reconcile.Remove{Target: targetOf(rolesResource, r)})
		}
	}
}

// marked reports whether an object was created here, rather than merely having the same
// name.
func marked(o metav1.Object) bool {
	l := o.GetLabels()
	return l[addonv1alpha1.LabelAddOnName] != "" && l[clusterv1.LabelClusterName] != ""
}

// findByName returns the object with the namespace and name of like, or nil.
func findByName[T metav1.Object](list []T, like metav1.Object) (none T) {
	i := slices.IndexFunc(list, func(o T) bool { return o.GetNamespace() == like.GetNamespace() && o.GetName() == like.GetName() })
	if i < 0 {
		return none
	}
	return list[i]
}

func targetOf(resource schema.GroupVersionResource, o metav1.Object) reconcile.Target {
	return reconcile.Target{Resource: resource, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), Version: o.GetResourceVersion()}
}

// Names returns the roles and bindings that a decision would create, so that the caller can
// read them for its State.
func Names(s State) (roles, bindings []reconcile.Key) {
	if s.AddOn == nil {
		return nil, nil
	}
	r, b, err := s.wanted(nil)
	if err != nil {
		return nil, nil
	}
	return keysOf(r), keysOf(b)
}

func keysOf[T metav1.Object](list []T) (out []reconcile.Key) {
	for _, o := range list {
		out = append(out, reconcile.KeyOf(o))
	}
	return out
}
