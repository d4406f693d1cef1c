// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// tokenRoleSuffix ends the name of the role by which an agent asks for tokens.
const tokenRoleSuffix = "-token-role"

var accountsResource = corev1.SchemeGroupVersion.WithResource("serviceaccounts")

// TokenState is everything that a decision about the token driver needs.
type TokenState struct {
	// AddOn is the instance; nil when it is gone and only what it had is left.
	AddOn *addonv1alpha1.ManagedClusterAddOn
	// Cluster is its ManagedCluster; nil when there is none.
	Cluster *clusterv1.ManagedCluster
	// Account, Role and Binding are those of the names that TokenNames tells; nil when
	// there are none.
	Account, Role, Binding *TokenPart
	// Allow is the command by which a person gives the hub the rights that it may lack
	// for this.
	Allow string
	// Now is the time of the decision.
	Now time.Time
}

// TokenNames are the names of the account, and of role and binding, of an add-on.
func TokenNames(addOn string) (account, role string) {
	return addOn + addonv1alpha1.ServiceAccountSuffix, addOn + tokenRoleSuffix
}

// DecideToken keeps what the token driver needs in the namespace of the cluster: the
// account, and the right of the cluster's agent to ask for its tokens. A cluster that
// is not accepted keeps neither, and so no token that it was given. It is pure.
func DecideToken(s TokenState) reconcile.Plan {
	if s.AddOn == nil {
		return reconcile.Plan{Writes: s.leftovers()}
	}
	object := s.AddOn.DeepCopy()
	plan := reconcile.Plan{Object: object}
	if !HasToken(s.AddOn) {
		if s.AddOn.DeletionTimestamp == nil {
			plan.Writes = s.leftovers()
			removeCondition(object, addonv1alpha1.ConditionTokenInfrastructureReady)
		}
		return plan
	}
	if s.Cluster == nil || !s.Cluster.Spec.HubAcceptsClient {
		plan.Writes = s.leftovers()
		s.fail(
			object,
			fmt.Sprintf("cluster %s is not accepted, so that its agents get no tokens until somebody accepts it", s.AddOn.Namespace),
		)
		return plan
	}
	if s.AddOn.DeletionTimestamp != nil {
		return plan // it is good until the instance is gone
	}
	if other := s.foreign(); other != "" {
		s.fail(
			object,
			other+" is there and was made by somebody else, so that the agent of the cluster gets no token of it; delete it if nothing uses it, or install the add-on under another name",
		)
		plan.RequeueAfter = addonkit.RetryDelay // only what carries the mark is watched
		return plan
	}
	plan.Writes, plan.Order = s.repairs(), reconcile.Strict
	plan.OnFailure = &metav1.Condition{
		Type: addonv1alpha1.ConditionTokenInfrastructureReady, Status: metav1.ConditionFalse,
		Reason: addonv1alpha1.ReasonTokenInfrastructureApplyFailed, ObservedGeneration: object.Generation,
		Message: "What the token driver needs cannot be made. Where the hub has no right to, allow it by \"" + s.Allow + "\":",
	}
	if s.Account != nil && len(plan.Writes) == 0 {
		reconcile.SetCondition(&object.Status.Conditions, metav1.Condition{
			Type: addonv1alpha1.ConditionTokenInfrastructureReady, Status: metav1.ConditionTrue, Reason: addonv1alpha1.ReasonTokenInfrastructureReady,
			Message:            fmt.Sprintf(addonv1alpha1.MessageTokenInfrastructure, object.Namespace, object.Name, s.Account.UID),
			ObservedGeneration: object.Generation,
		}, s.Now)
	}
	return plan
}

func (s TokenState) fail(object *addonv1alpha1.ManagedClusterAddOn, message string) {
	reconcile.SetCondition(&object.Status.Conditions, metav1.Condition{
		Type: addonv1alpha1.ConditionTokenInfrastructureReady, Status: metav1.ConditionFalse,
		Reason: addonv1alpha1.ReasonTokenInfrastructureApplyFailed, Message: message, ObservedGeneration: object.Generation,
	}, s.Now)
}

// leftovers is what carries the mark of the token driver. The account goes last: with
// it every token that it gave ends.
func (s TokenState) leftovers() (out []reconcile.Write) {
	for _, p := range []*TokenPart{s.Binding, s.Role, s.Account} {
		if p != nil && p.Marked {
			out = append(out, reconcile.Remove{Target: p.target()})
		}
	}
	return out
}

// foreign names an object that stands in the way: an account that somebody else made
// may do more than the add-on shall, and a role of somebody else is not overwritten.
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

// repairs are the writes to what is wanted. A part of an instance of the same name
// that is gone is not taken over: its tokens are no longer good.
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

// objects are what is wanted.
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

// tokenRules are one account by its name: the agent of a cluster gets tokens of its
// add-ons, not of what else has an account there.
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
