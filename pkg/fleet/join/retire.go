// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// removeOldRoles removes the agent's roles and bindings of earlier releases, whose names charts of
// others use: only those with the agent's label that this program wrote. Bindings go first.
func (j *join) removeOldRoles(ctx context.Context) error {
	if j.Reads() || j.before == nil || j.Klusterlet != operatorv1.DefaultKlusterletName {
		return nil
	}
	namespace := j.before.Klusterlet.AgentNamespace()
	label := operatorv1.LabelCreatedByKlusterlet + "=" + operatorv1.DefaultKlusterletName
	for _, q := range []fleet.Query{
		{Resource: fleet.ClusterBindings, Labels: label}, {Resource: fleet.RoleBindings, Namespace: namespace, Labels: label},
		{Resource: fleet.ClusterRoles, Labels: label}, {Resource: fleet.Roles, Namespace: namespace, Labels: label},
	} {
		items, err := fleet.ListAll(ctx, j.Spoke, q)
		if err != nil {
			return fleet.Explain("listing "+q.Resource.Resource, j.Spoke, err)
		}
		for i := range items {
			written := slices.ContainsFunc(items[i].GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return f.Manager == fleet.FieldManager })
			if !written || !slices.Contains(agent.FormerRights(), items[i].GetName()) {
				continue
			}
			if err := fleet.Remove(ctx, j.Spoke, &items[i]); err != nil {
				return fleet.Explain(fmt.Sprintf("removing %s, which has another name now", fleet.Describe(&items[i])), j.Spoke, err)
			}
		}
	}
	return nil
}
