// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	permissionv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/rbac/v1alpha1"
)

// definitionsFor returns the names of the definitions that the hub applies: those that every hub
// has, and with its gate that of ClusterPermissions, unless somebody else has installed it.
func definitionsFor(f Features, permissions API) []string {
	if !f.ClusterPermission || permissions.Found && !permissions.Ours {
		return definitionNames
	}
	return append(slices.Clone(definitionNames), crd.ClusterPermissions)
}

// setPermissionsCondition sets the condition about ClusterPermissions while the gate is on, and
// removes it otherwise.
func setPermissionsCondition(s State, cm *operatorv1.ClusterManager, on bool) {
	c := metav1.Condition{Type: operatorv1.ConditionClusterPermissionsKept, Status: metav1.ConditionFalse}
	wanted := permissionv1alpha1.GroupVersion.Version
	switch is := s.Permissions; {
	case !on:
		apimeta.RemoveStatusCondition(&cm.Status.Conditions, c.Type)
		return
	case s.Rival:
		c.Reason = operatorv1.ReasonClusterPermissionsElsewhere
		c.Message = fmt.Sprintf("Deployment %s/%s serves ClusterPermissions, and this hub does not, so that they do not work against each other. "+
			"Delete it to let this hub take over what it has made", hub.Namespace, rival)
	case is.Served:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, operatorv1.ReasonClusterPermissionsServed, "ClusterPermissions are sent to their clusters"
	case is.Found && len(is.Versions) > 0 && !slices.Contains(is.Versions, wanted):
		c.Reason = operatorv1.ReasonClusterPermissionsNotServed
		c.Message = fmt.Sprintf("CustomResourceDefinition %s serves %s and not %s, and is left as it is: no ClusterPermission is sent. "+
			"Install a release of it that serves %[3]s, or delete it so that the hub installs its own",
			crd.ClusterPermissions, strings.Join(is.Versions, ", "), wanted)
	default:
		c.Reason = operatorv1.ReasonClusterPermissionsNotServed
		c.Message = fmt.Sprintf("Waiting for the API %s in version %s to be established; no ClusterPermission is sent until then", crd.ClusterPermissions, wanted)
	}
	setCondition(cm, s.Now, c)
}
