// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/identity"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// tokenRoleSuffix ends the name of the role by which an agent asks for tokens.
// Contract: addon.md 6.5.
const tokenRoleSuffix = "-token-role"

var accountsResource = corev1.SchemeGroupVersion.WithResource("serviceaccounts")

// TokenState is everything that a decision about the token driver needs.
type TokenState struct {
	// AddOn is the instance. What belongs to one that is gone goes with it, by owner.
	AddOn *addonv1alpha1.ManagedClusterAddOn
	// Account, Role and Binding are those of the names that TokenNames tells; nil when
	// there are none.
	Account *corev1.ServiceAccount
	Role    *rbacv1.Role
	Binding *rbacv1.RoleBinding
	// Now is the time of the decision.
	Now time.Time
}

// TokenNames are the names of the account, and of role and binding, of an add-on.
func TokenNames(addOn string) (account, role string) {
	return addOn + addonv1alpha1.ServiceAccountSuffix, addOn + tokenRoleSuffix
}

// DecideToken keeps what the token driver needs in the namespace of the cluster: the
// account, and the right of the cluster's agent to ask for its tokens. It is pure.
// Contract: addon.md 6.5.
func DecideToken(s TokenState) reconcile.Plan {
	object := s.AddOn.DeepCopy()
	plan := reconcile.Plan{Object: object}
	if !HasToken(s.AddOn) {
		s.remove(&plan)
		removeCondition(object, addonv1alpha1.ConditionTokenInfrastructureReady)
		return plan
	}
	if s.AddOn.DeletionTimestamp != nil {
		return plan // it is good until the instance is gone
	}
	account, role, binding := s.objects()
	if s.Account == nil || !marks(s.Account.Labels, account.Labels) {
		plan.Apply = append(plan.Apply, reconcile.Apply{Object: account})
	}
	if s.Role == nil || !reflect.DeepEqual(s.Role.Rules, role.Rules) {
		plan.Apply = append(plan.Apply, reconcile.Apply{Object: role})
	}
	if s.Binding != nil && s.Binding.RoleRef != binding.RoleRef {
		plan.Steps = append(plan.Steps, reconcile.Step{Target: targetOf(bindingsResource.Resource, s.Binding)})
		s.Binding = nil
	}
	if s.Binding == nil || !sameSubjects(s.Binding.Subjects, binding.Subjects) {
		plan.Apply = append(plan.Apply, reconcile.Apply{Object: binding})
	}
	plan.OnFailure = &metav1.Condition{
		Type: addonv1alpha1.ConditionTokenInfrastructureReady, Status: metav1.ConditionFalse,
		Reason: addonv1alpha1.ReasonTokenInfrastructureApplyFailed, ObservedGeneration: object.Generation,
	}
	if s.Account != nil && s.Account.UID != "" && len(plan.Apply) == 0 {
		reconcile.SetCondition(&object.Status.Conditions, metav1.Condition{
			Type: addonv1alpha1.ConditionTokenInfrastructureReady, Status: metav1.ConditionTrue, Reason: addonv1alpha1.ReasonTokenInfrastructureReady,
			Message:            fmt.Sprintf(addonv1alpha1.MessageTokenInfrastructure, object.Namespace, object.Name, s.Account.UID),
			ObservedGeneration: object.Generation,
		}, s.Now)
	}
	return plan
}

// remove deletes what carries the mark of the token driver.
func (s TokenState) remove(plan *reconcile.Plan) {
	mark := func(o metav1.Object) bool { return o.GetLabels()[addonv1alpha1.LabelTokenInfrastructure] == "true" }
	if s.Binding != nil && mark(s.Binding) {
		plan.Delete = append(plan.Delete, targetOf(bindingsResource.Resource, s.Binding))
	}
	if s.Role != nil && mark(s.Role) {
		plan.Delete = append(plan.Delete, targetOf(rolesResource.Resource, s.Role))
	}
	if s.Account != nil && mark(s.Account) {
		at := targetOf("", s.Account)
		at.Resource = accountsResource
		plan.Delete = append(plan.Delete, at)
	}
}

// objects are what is wanted.
func (s TokenState) objects() (*corev1.ServiceAccount, *rbacv1.Role, *rbacv1.RoleBinding) {
	accountName, roleName := TokenNames(s.AddOn.Name)
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: s.AddOn.Namespace, Name: name, OwnerReferences: []metav1.OwnerReference{addonkit.Owner(s.AddOn)},
			Labels: map[string]string{addonv1alpha1.LabelTokenAddOn: s.AddOn.Name, addonv1alpha1.LabelTokenInfrastructure: "true"},
		}
	}
	account := &corev1.ServiceAccount{ObjectMeta: meta(accountName)}
	account.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	role := &rbacv1.Role{ObjectMeta: meta(roleName), Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{accountName}, Verbs: []string{"create", "subscribe"},
	}}}
	role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("Role"))
	binding := &rbacv1.RoleBinding{ObjectMeta: meta(roleName), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: roleName}}
	binding.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"))
	for _, group := range []string{identity.ClusterGroup(s.AddOn.Namespace), clusterv1.GroupPrefixEKS + s.AddOn.Namespace} {
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group})
	}
	return account, role, binding
}

// marks tells whether labels hold those that are wanted.
func marks(have, want map[string]string) bool {
	for key, value := range want {
		if have[key] != value {
			return false
		}
	}
	return true
}
