// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent"
	"github.com/kubectl-ocm/kubectl-ocm/config/agent/manifests"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// operatorManager is the field manager with which an operator of ours applies what an agent needs.
const operatorManager = "ocm.operator.agents"

// removeOldRoles removes roles and bindings of an earlier installation of the agent: those of earlier
// releases, whose names charts of others use, and those that it is no longer asked to have, or had while
// an operator ran it. They have its label, and this program or such an operator wrote them. Bindings go
// first, and the account of a registration apart goes last.
func (j *join) removeOldRoles(ctx context.Context, applied []*unstructured.Unstructured) error {
	old := j.oldRoles(applied)
	if j.Reads() || j.before == nil || len(old) == 0 {
		return nil
	}
	const addOns = operatorv1.NamespaceAgentAddOn
	namespace := j.before.Klusterlet.AgentNamespace()
	label := operatorv1.LabelCreatedByKlusterlet + "=" + j.Klusterlet
	for _, q := range []fleet.Query{
		{Resource: fleet.ClusterBindings, Labels: label}, {Resource: fleet.RoleBindings, Namespace: namespace, Labels: label},
		{Resource: fleet.RoleBindings, Namespace: addOns, Labels: label},
		{Resource: fleet.ClusterRoles, Labels: label}, {Resource: fleet.Roles, Namespace: namespace, Labels: label},
		{Resource: fleet.Roles, Namespace: addOns, Labels: label}, {Resource: fleet.ServiceAccounts, Namespace: namespace, Labels: label},
	} {
		items, err := fleet.ListAll(ctx, j.Spoke, q)
		if err != nil {
			return fleet.Explain("listing "+q.Resource.Resource, j.Spoke, err)
		}
		for i := range items {
			written := slices.ContainsFunc(items[i].GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
				return f.Manager == fleet.FieldManager || f.Manager == operatorManager
			})
			if !written || !slices.Contains(old, items[i].GetName()) {
				continue
			}
			if err := fleet.Remove(ctx, j.Spoke, &items[i]); err != nil {
				return fleet.Explain(fmt.Sprintf("removing %s, which the agent no longer has", fleet.Describe(&items[i])), j.Spoke, err)
			}
		}
	}
	return nil
}

// oldRoles returns the names of roles, bindings and accounts that an earlier installation may have left; where an
// operator runs the agent, it looks after them.
func (j *join) oldRoles(applied []*unstructured.Unstructured) []string {
	var old []string
	if j.Klusterlet == operatorv1.DefaultKlusterletName {
		old = agent.FormerRights()
	}
	if j.isServed() {
		return old
	}
	for _, name := range append(agent.OptionalRights(j.Klusterlet), manifests.RegistrationAccount(j.Klusterlet)) {
		if !slices.ContainsFunc(applied, func(u *unstructured.Unstructured) bool { return u.GetName() == name }) {
			old = append(old, name)
		}
	}
	return old
}
