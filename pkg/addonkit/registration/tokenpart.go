// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// TokenPart is what a decision needs of an account, role or binding of the token driver.
// There is one of each per add-on and cluster, so little is kept.
type TokenPart struct {
	// Resource is its resource; Namespace, Name, UID and Version identify the object.
	Resource        schema.GroupVersionResource
	Namespace, Name string
	UID             types.UID
	Version         string
	// AddOn is the add-on that its name belongs to.
	AddOn string
	// Owner is the UID of the instance that owns it; empty for none.
	Owner types.UID
	// Marked reports whether it carries the mark of the token driver.
	Marked bool
	// Right reports whether its content is as desired.
	Right bool
}

// TokenAddOn returns the add-on that an account, role or binding belongs to by its name;
// false if it belongs to none.
func TokenAddOn(resource schema.GroupVersionResource, name string) (string, bool) {
	suffix := tokenRoleSuffix
	if resource == accountsResource {
		suffix = addonv1alpha1.ServiceAccountSuffix
	}
	addOn, ok := strings.CutSuffix(name, suffix)
	return addOn, ok && addOn != ""
}

// ReadTokenAccount reads an account; false if its name belongs to no add-on.
func ReadTokenAccount(o *corev1.ServiceAccount) (TokenPart, bool) {
	p, ok := part(o, accountsResource)
	p.Right = ok && labels.SelectorFromSet(tokenLabels(p.AddOn)).Matches(labels.Set(o.Labels))
	return p, ok
}

// ReadTokenRole reads a role; see ReadTokenAccount.
func ReadTokenRole(o *rbacv1.Role) (TokenPart, bool) {
	p, ok := part(o, rolesResource)
	p.Right = ok && reflect.DeepEqual(o.Rules, tokenRules(p.AddOn))
	return p, ok
}

// ReadTokenBinding reads a binding; see ReadTokenAccount.
func ReadTokenBinding(o *rbacv1.RoleBinding) (TokenPart, bool) {
	p, ok := part(o, bindingsResource)
	p.Right = ok && o.RoleRef == tokenRole(p.AddOn) && sameSubjects(o.Subjects, tokenSubjects(o.Namespace))
	return p, ok
}

func part(o metav1.Object, resource schema.GroupVersionResource) (TokenPart, bool) {
	addOn, ok := TokenAddOn(resource, o.GetName())
	p := TokenPart{
		Resource: resource, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), Version: o.GetResourceVersion(),
		AddOn: addOn, Marked: o.GetLabels()[addonv1alpha1.LabelTokenInfrastructure] == "true",
	}
	for _, owner := range o.GetOwnerReferences() {
		if owner.Kind == "ManagedClusterAddOn" && owner.Name == addOn {
			p.Owner = owner.UID
		}
	}
	return p, ok
}

func (p *TokenPart) target() reconcile.Target {
	return reconcile.Target{Resource: p.Resource, Namespace: p.Namespace, Name: p.Name, UID: p.UID, Version: p.Version}
}
