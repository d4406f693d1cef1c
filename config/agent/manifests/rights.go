// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// Names in the manifests, which are those of the default Klusterlet.
const (
	workRole      = "kubectl-ocm:klusterlet-work:agent"
	executionRole = "kubectl-ocm:klusterlet-work:execution"
	adminBinding  = "kubectl-ocm:klusterlet-work:execution-admin"
)

// Agent says whose rights to return.
type Agent struct {
	// Klusterlet is the name of the Klusterlet, Namespace where its agent runs.
	Klusterlet, Namespace string
	// Narrow leaves out the binding to the role admin, and what would allow to get it.
	Narrow bool
	// Apart gives what registration needs to a ServiceAccount of its own, so that what applies
	// works has none of it.
	Apart bool
	// Proxy adds what the tunnel needs: the rights to act for users, to get Services, and to act as
	// accounts in the namespace of add-ons. Narrow leaves out the last: who may act as accounts may run
	// works as them, too.
	Proxy bool
	// Hosted leaves out the right to get Services: an agent that runs elsewhere does not reach them.
	Hosted bool
}

// WorkAccount returns the ServiceAccount of the agent of a Klusterlet: that of the whole agent,
// or of what applies works.
func WorkAccount(klusterlet string) string { return klusterlet + "-work-sa" }

// RegistrationAccount returns the ServiceAccount of a registration that is a process of its own.
func RegistrationAccount(klusterlet string) string { return klusterlet + "-registration-sa" }

// ProxyBinding returns the name of the ClusterRoleBinding, and of the RoleBinding in the namespace of
// add-ons, with which the agent of a Klusterlet acts for users of the hub and as their accounts.
func ProxyBinding(klusterlet string) string {
	return "kubectl-ocm:" + klusterlet + "-registration:proxy"
}

// MetricsBinding returns the name of the binding with which the processes that an operator runs for the
// agent of a Klusterlet ask who reads their metrics.
func MetricsBinding(klusterlet string) string { return "kubectl-ocm:" + klusterlet + ":metrics" }

// OptionalRights returns the names of the roles and bindings that an agent which is a process of its own
// has only if it is asked for, Proxy and without Narrow, or had while an operator ran it.
func OptionalRights(klusterlet string) []string {
	return []string{ProxyBinding(klusterlet), Agent{Klusterlet: klusterlet}.named(adminBinding), MetricsBinding(klusterlet)}
}

// account returns the ServiceAccount to which a binding of the manifests belongs.
func (o Agent) account(binding string) string {
	if o.Apart && strings.Contains(binding, ":klusterlet-registration:") {
		return RegistrationAccount(o.Klusterlet)
	}
	return WorkAccount(o.Klusterlet)
}

// Rights returns the ServiceAccounts of an agent with their roles and bindings.
func Rights(o Agent) ([]*unstructured.Unstructured, error) {
	objects, err := Read("rbac.yaml")
	if err != nil {
		return nil, err
	}
	if o.Proxy {
		tunnel, err := Read("proxy.yaml")
		if err != nil {
			return nil, err
		}
		objects = append(objects, tunnel...)
	}
	if o.Narrow {
		objects = slices.DeleteFunc(objects, func(u *unstructured.Unstructured) bool { return u.GetName() == adminBinding })
	}
	for _, u := range objects {
		if u.GetNamespace() == operatorv1.NamespaceAgent {
			u.SetNamespace(o.Namespace)
		}
		if err := each(u, "subjects", func(subject map[string]any) {
			subject["namespace"], subject["name"] = o.Namespace, o.account(u.GetName())
		}); err != nil {
			return nil, err
		}
		if err := each(u, "rules", func(rule map[string]any) { adaptRule(rule, u.GetName(), o) }); err != nil {
			return nil, err
		}
		if err := dropIdle(u); err != nil {
			return nil, err
		}
		if role, ok, _ := unstructured.NestedString(u.Object, "roleRef", "name"); ok {
			_ = unstructured.SetNestedField(u.Object, o.named(role), "roleRef", "name")
		}
		u.SetName(o.named(u.GetName()))
	}
	if o.Apart {
		account := objects[0].DeepCopy()
		account.SetName(RegistrationAccount(o.Klusterlet))
		objects = append([]*unstructured.Unstructured{account}, objects...)
	}
	return objects, nil
}

// named returns the name that an object of the manifests has for the Klusterlet of the
// agent.
func (o Agent) named(name string) string {
	for _, prefix := range []string{"kubectl-ocm:management:", "kubectl-ocm:", ""} {
		rest, ok := strings.CutPrefix(name, prefix+operatorv1.DefaultKlusterletName)
		if ok && (rest == "" || rest[0] == '-') {
			return prefix + o.Klusterlet + rest
		}
	}
	return name
}

// adaptRule names the objects of this agent in rules, and removes the verbs that narrow rights
// leave out. Only the default Klusterlet had other names in earlier releases.
func adaptRule(rule map[string]any, role string, o Agent) {
	// Policies have the same names for every Klusterlet.
	if names, ok := rule["resourceNames"].([]any); ok && !reflect.DeepEqual(rule["resources"], []any{"networkpolicies"}) {
		if o.Klusterlet != operatorv1.DefaultKlusterletName {
			names = slices.DeleteFunc(names, func(name any) bool { return slices.Contains(FormerRights(), name.(string)) })
		}
		for i, name := range names {
			names[i] = o.named(name.(string))
			if name == operatorv1.NamespaceAgent {
				names[i] = o.Namespace
			}
		}
		rule["resourceNames"] = names
	}
	if o.Hosted && reflect.DeepEqual(rule["resources"], []any{"services"}) {
		rule["verbs"] = []any{}
	}
	onAccounts := reflect.DeepEqual(rule["resources"], []any{"serviceaccounts"})
	if verbs, ok := rule["verbs"].([]any); ok && o.Narrow && (role == executionRole || role == workRole || onAccounts) {
		rule["verbs"] = slices.DeleteFunc(verbs, func(v any) bool { return v == "escalate" || v == "bind" || v == "impersonate" })
	}
}

// dropIdle removes rules without verbs.
func dropIdle(u *unstructured.Unstructured) error {
	rules, found, err := unstructured.NestedSlice(u.Object, "rules")
	if err != nil || !found {
		return err
	}
	rules = slices.DeleteFunc(rules, func(rule any) bool {
		verbs, ok := rule.(map[string]any)["verbs"].([]any)
		return ok && len(verbs) == 0
	})
	return unstructured.SetNestedSlice(u.Object, rules, "rules")
}

// FormerRights returns the names that roles and bindings of the agent had in earlier
// releases. Other charts use these names too, so each overwrote the other's objects.
func FormerRights() []string {
	return []string{
		"klusterlet", "open-cluster-management:klusterlet-registration:agent", "open-cluster-management:klusterlet-registration:addon-management",
		"open-cluster-management:klusterlet-work:agent", "open-cluster-management:klusterlet-work:execution",
		"open-cluster-management:klusterlet-work:aggregate", "open-cluster-management:klusterlet-work:execution-admin",
		"open-cluster-management:management:klusterlet-registration:agent", "open-cluster-management:management:klusterlet-work:agent",
	}
}

// each calls change with every map in the list in that field of u.
func each(u *unstructured.Unstructured, field string, change func(map[string]any)) error {
	list, found, err := unstructured.NestedSlice(u.Object, field)
	if err != nil || !found {
		return err
	}
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			change(m)
		}
	}
	return unstructured.SetNestedSlice(u.Object, list, field)
}
