// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	authenticationv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/authentication/v1beta1"
	multiclusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/multicluster/v1alpha1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	permissionv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/rbac/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// APIs are those that gates need and others may have installed.
type APIs struct {
	// Profiles is the ClusterProfile API. It belongs to another project: the hub creates it
	// where it is missing, and never changes or removes it.
	Profiles API
	// Permissions is the ClusterPermission API. One that somebody else has installed is left as
	// it is.
	Permissions API
	// Accounts is the ManagedServiceAccount API, which charts of the add-on install, too: it is
	// never changed or removed.
	Accounts API
	// Rival is true when the controller of another distribution serves ClusterPermissions.
	Rival bool
}

// API is an API as found; the zero value means that it is missing.
type API struct {
	// Found is true when the definition exists, and Served when the version that the hub uses is
	// established.
	Found, Served bool
	// Ours is true when this hub has installed it.
	Ours bool
	// Versions are the versions that the definition serves.
	Versions []string
}

// keepAPI returns what is kept of a definition; version is the one that the hub uses.
func keepAPI(version string) func(*unstructured.Unstructured) (API, bool) {
	return func(u *unstructured.Unstructured) (API, bool) {
		a := API{Found: true, Ours: u.GetLabels()[operatorv1.LabelCreatedByClusterManager] == hub.Name}
		f, _ := keepFound(u)
		versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
		for _, v := range versions {
			of, ok := v.(map[string]any)
			if name, _ := of["name"].(string); ok && of["served"] == true {
				a.Versions = append(a.Versions, name)
				a.Served = a.Served || f.established && name == version
			}
		}
		return a, true
	}
}

var (
	keepProfiles    = keepAPI(multiclusterv1alpha1.GroupVersion.Version)
	keepPermissions = keepAPI(permissionv1alpha1.GroupVersion.Version)
	keepAccounts    = keepAPI(authenticationv1beta1.GroupVersion.Version)
)

// rival is the Deployment of the controller that another distribution serves
// ClusterPermissions with.
const rival = "cluster-permission"

// apis returns the APIs as found.
func (l *leading) apis() (out APIs) {
	out.Profiles, _ = l.profiles.Get(reconcile.Key{Name: crd.ClusterProfiles})
	out.Permissions, _ = l.permissions.Get(reconcile.Key{Name: crd.ClusterPermissions})
	out.Accounts, _ = l.accounts.Get(reconcile.Key{Name: crd.ManagedServiceAccounts})
	other, found := l.rival.Get(reconcile.Key{Namespace: hub.Namespace, Name: rival})
	out.Rival = found && other.wanted > 0
	return out
}
