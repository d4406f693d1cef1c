// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// kind is one kind of object in a backup.
type kind struct {
	name     string
	resource schema.GroupVersionResource
	// status is true when the file has the status, restored when it is written back: nobody else
	// can tell what a placement selected, or which configuration an add-on has.
	status, restored bool
}

// The kinds that are treated specially.
const (
	kindNamespace       = "Namespace"
	kindSecret          = "Secret"
	kindCluster         = "ManagedCluster"
	kindPlacement       = "Placement"
	kindWork            = "ManifestWork"
	kindAddOn           = "ManagedClusterAddOn"
	kindManagementAddOn = "ClusterManagementAddOn"
	kindClusterManager  = "ClusterManager"
	kindClusterRole     = "ClusterRole"
	kindClusterBinding  = "ClusterRoleBinding"
	kindRole            = "Role"
	kindRoleBinding     = "RoleBinding"
	kindAccount         = "ManagedServiceAccount"
	kindPermission      = "ClusterPermission"
)

// order has all kinds of a backup in the order in which they are restored. Decisions come before
// what follows them, and the add-ons of clusters before what would install them.
var order = []kind{
	{name: kindNamespace, resource: fleet.Namespaces},
	{name: kindSecret, resource: fleet.Secrets},
	{name: kindClusterRole, resource: fleet.ClusterRoles},
	{name: kindClusterBinding, resource: fleet.ClusterBindings},
	{name: kindRole, resource: fleet.Roles},
	{name: kindRoleBinding, resource: fleet.RoleBindings},
	{name: "ManagedClusterSet", resource: fleet.ManagedClusterSets},
	{name: kindCluster, resource: fleet.ManagedClusters, status: true},
	{name: "ManagedClusterSetBinding", resource: fleet.SetBindings},
	{name: kindPlacement, resource: fleet.Placements},
	{name: "PlacementDecision", resource: fleet.PlacementDecisions, status: true, restored: true},
	{name: "AddOnDeploymentConfig", resource: addonv1alpha1.GroupVersion.WithResource("addondeploymentconfigs")},
	{name: "AddOnTemplate", resource: fleet.AddOnTemplates},
	{name: "AddOnPlacementScore", resource: fleet.PlacementScores, status: true, restored: true},
	{name: kindAddOn, resource: fleet.ClusterAddOns, status: true, restored: true},
	{name: kindAccount, resource: fleet.ManagedAccounts},
	{name: kindPermission, resource: fleet.ClusterPermissions},
	{name: kindWork, resource: fleet.ManifestWorks},
	{name: kindManagementAddOn, resource: fleet.ManagementAddOns, status: true, restored: true},
	{name: "ManifestWorkReplicaSet", resource: fleet.ReplicaSets},
	{name: kindClusterManager, resource: fleet.ClusterManagers},
}

// rankOf returns the place of an object in the order; false for one that no backup has.
func rankOf(u *unstructured.Unstructured) (int, bool) {
	gvk := u.GroupVersionKind()
	i := slices.IndexFunc(order, func(k kind) bool {
		return k.name == gvk.Kind && k.resource.Group == gvk.Group && k.resource.Version == gvk.Version
	})
	return i, i >= 0
}
