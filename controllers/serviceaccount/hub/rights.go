// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"errors"
	"reflect"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	authenticationv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/authentication/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// errForeign is why the rights of an agent are not written.
var errForeign = errors.New("a Role or RoleBinding " + authenticationv1beta1.AgentRole +
	" exists that this hub did not write; remove the other manager of the add-on, then the object")

// grant is what the agent of one cluster may do on the hub, as found and as wanted.
type grant struct {
	Cluster string
	// AddOn is the UID of the add-on's instance on the cluster, empty if there is none: the
	// rights are then deleted with it.
	AddOn types.UID
	// Names are those of the ManagedServiceAccounts of the cluster, sorted.
	Names []string
	// Role and Binding are nil when there are none.
	Role    *rbacv1.Role
	Binding *rbacv1.RoleBinding
}

// decide is pure. It returns the writes that are needed.
func (r grant) decide() ([]reconcile.Write, error) {
	if r.AddOn == "" {
		return nil, nil
	}
	if r.Role != nil && !written(r.Role) || r.Binding != nil && !written(r.Binding) {
		return nil, errForeign
	}
	var out []reconcile.Write
	role := r.role()
	if r.Role == nil || !reflect.DeepEqual(r.Role.Rules, role.Rules) || !reflect.DeepEqual(r.Role.OwnerReferences, role.OwnerReferences) {
		out = append(out, reconcile.Apply{Object: role})
	}
	binding := r.binding()
	if r.Binding != nil && r.Binding.RoleRef != binding.RoleRef { // which cannot be changed
		out = append(out, reconcile.Remove{Target: reconcile.Target{
			Resource: bindings, Namespace: r.Cluster, Name: binding.Name, UID: r.Binding.UID, Version: r.Binding.ResourceVersion,
		}})
	} else if r.Binding != nil && reflect.DeepEqual(r.Binding.Subjects, binding.Subjects) &&
		reflect.DeepEqual(r.Binding.OwnerReferences, binding.OwnerReferences) {
		return out, nil
	}
	return append(out, reconcile.Apply{Object: binding}), nil
}

// written reports whether the hub wrote an object.
func written(o metav1.Object) bool {
	return o.GetLabels()[authenticationv1beta1.LabelManaged] == "true"
}

// meta returns the metadata of both objects.
func (r grant) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: r.Cluster, Name: authenticationv1beta1.AgentRole, Labels: map[string]string{authenticationv1beta1.LabelManaged: "true"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: addonv1alpha1.GroupVersion.String(), Kind: "ManagedClusterAddOn", Name: authenticationv1beta1.AddOnName, UID: r.AddOn,
		}},
	}
}

// role returns the Role. Admission narrows the creation of Secrets to those that the agent may
// patch. Without names there is no rule about them: one without names would be about all.
func (r grant) role() *rbacv1.Role {
	group := []string{authenticationv1beta1.GroupName}
	rules := []rbacv1.PolicyRule{
		{APIGroups: group, Resources: []string{asked.Resource}, Verbs: []string{"list", "watch"}},
		{APIGroups: group, Resources: []string{asked.Resource + "/status"}, Verbs: []string{"patch"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}},
	}
	if len(r.Names) > 0 {
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: r.Names, Verbs: []string{"get", "list", "watch", "patch"},
		})
	}
	return &rbacv1.Role{TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"}, ObjectMeta: r.meta(), Rules: rules}
}

// binding returns the RoleBinding to the agent of this very cluster.
func (r grant) binding() *rbacv1.RoleBinding {
	who := identity.AddOn{Cluster: r.Cluster, Name: authenticationv1beta1.AddOnName}
	return &rbacv1.RoleBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"}, ObjectMeta: r.meta(),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: authenticationv1beta1.AgentRole},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: who.Group()}},
	}
}
