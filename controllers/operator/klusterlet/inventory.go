// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/settings"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// parts returns the objects that an agent consists of besides its definitions: those of
// config/agent. They are listed here because importing that package only for the names would
// bloat the process.
func parts(k *operatorv1.Klusterlet, namespace string) []operatorv1.RelatedResourceMeta {
	rights := "rbac.authorization.k8s.io"
	out := []operatorv1.RelatedResourceMeta{
		{Version: "v1", Resource: "namespaces", Name: namespace},
		{Version: "v1", Resource: "namespaces", Name: operatorv1.NamespaceAgentAddOn},
		{Version: "v1", Resource: "serviceaccounts", Namespace: namespace, Name: k.Name + "-work-sa"},
		{Group: "apps", Version: "v1", Resource: "deployments", Namespace: namespace, Name: operatorv1.AgentDeployment(k.Name)},
	}
	for _, name := range []string{"", "-registration:agent", "-registration:addon-management", "-work:agent", "-work:execution", "-work:aggregate"} {
		for _, resource := range []string{"clusterroles", "clusterrolebindings"} {
			out = append(out, operatorv1.RelatedResourceMeta{Group: rights, Version: "v1", Resource: resource, Name: "kubectl-ocm:" + k.Name + name})
		}
	}
	for _, name := range []string{"-registration:agent", "-work:agent"} {
		for _, resource := range []string{"roles", "rolebindings"} {
			out = append(out, operatorv1.RelatedResourceMeta{
				Group:     rights,
				Version:   "v1",
				Resource:  resource,
				Namespace: namespace,
				Name:      "kubectl-ocm:management:" + k.Name + name,
			})
		}
	}
	return out
}

// setInventory sets the related resources of the agent and the generation of its Deployment
// in the status.
func (s State) setInventory(k *operatorv1.Klusterlet) {
	k.Status.RelatedResources = nil
	for _, u := range s.Wanted {
		k.Status.RelatedResources = append(k.Status.RelatedResources, operatorv1.RelatedResourceMeta{
			Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions", Name: u.GetName(),
		})
	}
	k.Status.RelatedResources = append(k.Status.RelatedResources, parts(k, s.Namespace)...)
	for _, name := range shared.PolicyNames() {
		if settings.Read(k).Policies {
			k.Status.RelatedResources = append(k.Status.RelatedResources, operatorv1.RelatedResourceMeta{
				Group: shared.PoliciesResource.Group, Version: "v1", Resource: shared.PoliciesResource.Resource, Namespace: s.Namespace, Name: name,
			})
		}
	}
	k.Status.Generations = nil
	if s.Deployment > 0 {
		k.Status.Generations = []operatorv1.GenerationStatus{{
			Group: "apps", Version: "v1", Resource: "deployments", Namespace: s.Namespace, Name: operatorv1.AgentDeployment(k.Name), LastGeneration: s.Deployment,
		}}
	}
}
