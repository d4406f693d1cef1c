// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent"
	"github.com/kubectl-ocm/kubectl-ocm/config/agent/manifests"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/member"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// adminRole is the built-in role that an agent without narrow rights has, and ofAdmin some of what
// it grants.
const adminRole = "admin"

var ofAdmin = []authorizationv1.ResourceAttributes{{Verb: "create", Resource: "configmaps"}, {Verb: "create", Group: "apps", Resource: "deployments"}}

// grants are the roles on a cluster that carry the label of a klusterlet, and which roles its agent
// is bound to.
type grants struct {
	rules map[rbacv1.RoleRef][]rbacv1.PolicyRule
	bound map[rbacv1.RoleRef]bool
}

// readGrants reads them by their label. What others grant the agent is not among them.
func (a *agentCheck) readGrants(ctx context.Context) (grants, error) {
	g := grants{map[rbacv1.RoleRef][]rbacv1.PolicyRule{}, map[rbacv1.RoleRef]bool{}}
	own := metav1.ListOptions{LabelSelector: operatorv1.LabelCreatedByKlusterlet + "=" + a.k.Name}
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: a.k.AgentNamespace(), Name: agent.ServiceAccount(a.k.Name)}
	for _, in := range []string{"", a.k.AgentNamespace(), operatorv1.NamespaceAgentAddOn} {
		roles, bindings := fleet.ClusterRoles, fleet.ClusterBindings
		if in != "" {
			roles, bindings = fleet.Roles, fleet.RoleBindings
		}
		// Roles and bindings have the same fields everywhere.
		listed, err := typed.List[rbacv1.ClusterRole](ctx, a.o.Spoke.Client, roles, in, own)
		if err != nil {
			return g, err
		}
		for i := range listed {
			g.rules[refTo(in, listed[i].Name)] = listed[i].Rules
		}
		bound, err := typed.List[rbacv1.ClusterRoleBinding](ctx, a.o.Spoke.Client, bindings, in, own)
		if err != nil {
			return g, err
		}
		for i := range bound {
			if slices.Contains(bound[i].Subjects, account) {
				g.bound[bound[i].RoleRef] = true
			}
		}
	}
	return g, nil
}

// rightsOf returns what rules grant in a namespace, or everywhere, one action each.
func rightsOf(rules []rbacv1.PolicyRule, namespace string) []authorizationv1.ResourceAttributes {
	var out []authorizationv1.ResourceAttributes
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, of := range rule.Resources {
				resource, part, _ := strings.Cut(of, "/")
				for _, name := range names {
					for _, verb := range rule.Verbs {
						out = append(out, authorizationv1.ResourceAttributes{
							Namespace: namespace, Verb: verb, Group: group, Resource: resource, Subresource: part, Name: name,
						})
					}
				}
			}
		}
	}
	return out
}

// refTo names a role in a namespace, or one of the whole cluster.
func refTo(namespace, name string) rbacv1.RoleRef {
	kind := "ClusterRole"
	if namespace != "" {
		kind = "Role"
	}
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}

// gives reports whether the agent has a right by the role in a binding of ours.
func (g *grants) gives(role rbacv1.RoleRef, right *authorizationv1.ResourceAttributes) bool {
	resource := right.Resource
	if right.Subresource != "" {
		resource += "/" + right.Subresource
	}
	return g.bound[role] && slices.ContainsFunc(g.rules[role], func(rule rbacv1.PolicyRule) bool {
		return holds(rule.APIGroups, right.Group) && holds(rule.Resources, resource) && holds(rule.Verbs, right.Verb) &&
			(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, right.Name))
	})
}

func holds(list []string, item string) bool {
	return slices.Contains(list, item) || slices.Contains(list, rbacv1.ResourceAll)
}

// isNarrow reports whether the agent was installed with narrow rights: without the role admin, and
// without the right to give it away.
func (g *grants) isNarrow() bool {
	if g.bound[refTo("", adminRole)] {
		return false
	}
	for role := range g.rules {
		if g.gives(role, &authorizationv1.ResourceAttributes{Verb: "escalate", Group: rbacv1.GroupName, Resource: "clusterroles"}) {
			return false
		}
	}
	return true
}

// unproven returns the rights of an agent's roles that it does not have by them.
func (g *grants) unproven(roles []*unstructured.Unstructured) ([]authorizationv1.ResourceAttributes, error) {
	var out []authorizationv1.ResourceAttributes
	for _, u := range roles {
		if u.GetKind() != "ClusterRole" && u.GetKind() != "Role" {
			continue
		}
		role, err := typed.FromUnstructured[rbacv1.ClusterRole](u)
		if err != nil {
			return nil, err
		}
		for _, right := range rightsOf(role.Rules, u.GetNamespace()) {
			if !g.gives(refTo(u.GetNamespace(), u.GetName()), &right) {
				out = append(out, right)
			}
		}
	}
	return out, nil
}

// hasRights reports whether the agent is ours, has its rights from a join, and is of this release: an
// operator restores those of the agents that it runs, and other releases need others.
func (a *agentCheck) hasRights(ctx context.Context) (bool, error) {
	if a.k.IsHosted() || a.k.DeletionTimestamp != nil {
		return false, nil
	}
	name := operatorv1.AgentDeployment(a.k.Name)
	d, err := typed.Get[appsv1.Deployment](ctx, a.o.Spoke.Client, fleet.Deployments, a.k.AgentNamespace(), name)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return false, nil
	case err != nil:
		return false, fleet.Explain("reading deployment "+name, a.o.Spoke, err)
	}
	return member.RunsOurs(d) == "run" && hub.Suits(a.o.Version, hub.TagOf(hub.ImageOf(d))), nil
}

// rights reports what the agent may not do on its cluster although its release needs it. It reads the
// agent's roles, and asks the API server only about what they do not grant: others may. Without the
// right to read or to ask, nothing is reported.
func (a *agentCheck) rights(ctx context.Context) ([]Finding, error) {
	if ok, err := a.hasRights(ctx); !ok {
		return nil, err
	}
	g, err := a.readGrants(ctx)
	if err != nil {
		return nil, a.unlessForbidden("reading the agent's roles", err)
	}
	c := a.k.Spec.RegistrationConfiguration
	narrow := g.isNarrow()
	roles, err := manifests.Rights(manifests.Agent{Klusterlet: a.k.Name, Namespace: a.k.AgentNamespace(), Narrow: narrow,
		Proxy: c != nil && slices.Contains(c.FeatureGates,
			operatorv1.FeatureGate{Feature: connectv1alpha1.GateClusterProxy, Mode: operatorv1.FeatureGateModeTypeEnable})})
	if err != nil {
		return nil, err
	}
	unproven, err := g.unproven(roles)
	if err != nil {
		return nil, err
	}
	other := a.k.Name
	if other == operatorv1.DefaultKlusterletName {
		other = ""
	}
	fix := fleet.Fix(RestoreRights.On(a.o.Spoke, "klusterlet", other))
	if !narrow && !g.bound[refTo("", adminRole)] {
		unproven, fix = append(unproven, ofAdmin...), a.join() // an upgrade takes the rights to be narrow
	}
	missing, err := lacking(ctx, a.o.Spoke, accountOf(a.k.AgentNamespace(), agent.ServiceAccount(a.k.Name)), unproven)
	switch {
	case err != nil:
		return nil, a.unlessForbidden("asking for the agent's rights", err)
	case len(missing) > 0:
		return []Finding{failure(CodeSpokeRights, "the agent lacks rights on its cluster", "it may not "+fleet.Listed(missing), fix)}, nil
	}
	return good(CodeSpokeRights, "the agent has its rights"), nil
}

func (a *agentCheck) unlessForbidden(doing string, err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return fleet.Explain(doing, a.o.Spoke, err)
}
