// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// tokenRoleSuffix ends the name of the role that lets an agent request tokens.
const tokenRoleSuffix = "-token-role"

var accountsResource = corev1.SchemeGroupVersion.WithResource("serviceaccounts")

// TokenState is everything that a decision about the token driver needs.
type TokenState struct {
	// AddOn is the instance; nil if it is gone and only its objects are left.
	AddOn *addonv1alpha1.ManagedClusterAddOn
	// Cluster is its ManagedCluster; nil if there is none.
	Cluster *clusterv1.ManagedCluster
	// Account, Role and Binding are those with the names that TokenNames returns; nil if
	// there are none.
	Account, Role, Binding *TokenPart
	// Allow is the command with which an administrator gives the hub the permissions that
	// it may lack for this.
	Allow string
	// Now is the time of the decision.
	Now time.Time
}

// TokenNames returns the names of the account, and of the role and binding, of an add-on.
func TokenNames(addOn string) (account, role string) {
	return addOn + addonv1alpha1.ServiceAccountSuffix, addOn + tokenRoleSuffix
}

// DecideToken keeps what the token driver needs in the namespace of the cluster: the
// account, and the permission of the cluster's agent to request its tokens. A cluster that
// is not accepted keeps neither, which also invalidates its tokens. It is pure.
func DecideToken(s TokenState) reconcile.Plan {
	if s.AddOn == nil {
		return reconcile.Plan{Writes: s.leftovers()}
	}
	object := s.AddOn.DeepCopy()
	plan := reconcile.Plan{Object: object}
	if !HasToken(s.AddOn) {
		if s.AddOn.DeletionTimestamp == nil {
			plan.Writes = s.leftovers()
			apimeta.RemoveStatusCondition(&object.Status.Conditions, addonv1alpha1.ConditionTokenInfrastructureReady)
		}
		return plan
	}
	if s.Cluster == nil || !s.Cluster.Spec.HubAcceptsClient {
		plan.Writes = s.leftovers()
		s.report(object, s.failure(fmt.Sprintf("cluster %s is not accepted, so its agents get no tokens until an administrator accepts it", s.AddOn.Namespace)))
		return plan
	}
	if s.AddOn.DeletionTimestamp != nil {
		return plan // the tokens stay valid until the instance is gone
	}
	if other := s.foreign(); other != "" {
		s.report(object, s.failure(other+" exists and was created by others, so the agent of the cluster gets no token for it; delete it if "+
			"nothing uses it, or install the add-on under another name"))
		plan.RequeueAfter = addonkit.RetryDelay // only what carries the mark is watched
		return plan
	}
	plan.Writes, plan.Order = s.repairs(), reconcile.Strict
	plan.OnFailure = new(s.failure("What the token driver needs cannot be created. If the hub lacks the permissions, grant them with \"" + s.Allow + "\":"))
	if s.Account != nil && len(plan.Writes) == 0 {
		s.report(object, metav1.Condition{
			Type: addonv1alpha1.ConditionTokenInfrastructureReady, Status: metav1.ConditionTrue, Reason: addonv1alpha1.ReasonTokenInfrastructureReady,
			Message:            fmt.Sprintf(addonv1alpha1.MessageTokenInfrastructure, object.Namespace, object.Name, s.Account.UID),
			ObservedGeneration: object.Generation,
		})
	}
	return plan
}

func (s TokenState) report(object *addonv1alpha1.ManagedClusterAddOn, c metav1.Condition) {
	reconcile.SetCondition(&object.Status.Conditions, c, s.Now)
}

func (s TokenState) failure(message string) metav1.Condition {
	return metav1.Condition{
		Type: addonv1alpha1.ConditionTokenInfrastructureReady, Status: metav1.ConditionFalse,
		Reason: addonv1alpha1.ReasonTokenInfrastructureApplyFailed, Message: message, ObservedGeneration: s.AddOn.Generation,
	}
}

// leftovers removes what carries the mark of the token driver. The account goes last, and
// with it every token that was issued for it.
func (s TokenState) leftovers() (out []reconcile.Write) {
	for _, p := range []*TokenPart{s.Binding, s.Role, s.Account} {
		if p != nil && p.Marked {
			out = append(out, reconcile.Remove{Target: p.target()})
		}
	}
	return out
}

// foreign names an object that is in the way: an account that others created may be able to
// do more than the add-on should, and a role that others created is not overwritten.
func (s TokenState) foreign() string {
	for _, p := range []*TokenPart{s.Account, s.Role, s.Binding} {
		if p == nil || p.Marked || p.Owner == s.AddOn.UID {
			continue
		}
		if p == s.Account || !p.Right {
			return p.target().String()
		}
	}
	return ""
}

// repairs returns the writes that reach the desired state. A part of a former instance of
// the same name is not taken over: its tokens are no longer valid.
func (s TokenState) repairs() (out []reconcile.Write) {
	account, role, binding := s.objects()
	stale := func(p *TokenPart) bool { return p.Owner != "" && p.Owner != s.AddOn.UID }
	renew := func(p *TokenPart, want reconcile.Object) {
		if p != nil {
			out = append(out, reconcile.Remove{Target: p.target()})
		}
		out = append(out, reconcile.Create{Object: want})
	}
	switch {
	case s.Account == nil || stale(s.Account):
		renew(s.Account, account)
	case !s.Account.Right:
		labels := map[string]any{}
		for key, value := range account.Labels {
			labels[key] = value
		}
		out = append(out, reconcile.Patch{Target: s.Account.target(), Body: map[string]any{"metadata": map[string]any{"labels": labels}}})
	}
	if s.Role == nil || stale(s.Role) || !s.Role.Right {
		renew(s.Role, role)
	}
	if s.Binding == nil || stale(s.Binding) || !s.Binding.Right {
		renew(s.Binding, binding)
	}
	return out
}

// objects returns the desired objects.
func (s TokenState) objects() (*corev1.ServiceAccount, *rbacv1.Role, *rbacv1.RoleBinding) {
	accountName, roleName := TokenNames(s.AddOn.Name)
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: s.AddOn.Namespace, Name: name, OwnerReferences: []metav1.OwnerReference{addonkit.Owner(s.AddOn)}, Labels: tokenLabels(s.AddOn.Name),
		}
	}
	account := &corev1.ServiceAccount{ObjectMeta: meta(accountName)}
	account.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	role := &rbacv1.Role{ObjectMeta: meta(roleName), Rules: tokenRules(s.AddOn.Name)}
	role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("Role"))
	binding := &rbacv1.RoleBinding{ObjectMeta: meta(roleName), RoleRef: tokenRole(s.AddOn.Name), Subjects: tokenSubjects(s.AddOn.Namespace)}
	binding.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"))
	return account, role, binding
}

func tokenLabels(addOn string) map[string]string {
	return map[string]string{addonv1alpha1.LabelTokenAddOn: addOn, addonv1alpha1.LabelTokenInfrastructure: "true"}
}

// tokenRules name a single account: the agent of a cluster gets tokens of its add-ons, not
// of other accounts in its namespace.
func tokenRules(addOn string) []rbacv1.PolicyRule {
	account, _ := TokenNames(addOn)
	return []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{account}, Verbs: []string{"create", "subscribe"},
	}}
}

func tokenRole(addOn string) rbacv1.RoleRef {
	_, role := TokenNames(addOn)
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role}
}

func tokenSubjects(cluster string) (out []rbacv1.Subject) {
	for _, group := range []string{identity.ClusterGroup(cluster), clusterv1.GroupPrefixEKS + cluster} {
		out = append(out, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group})
	}
	return out
}
