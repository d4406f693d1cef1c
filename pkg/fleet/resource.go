// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	authenticationv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/authentication/v1beta1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1alpha1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	permissionv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/rbac/v1alpha1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
)

// The resources that the library reads and writes.
var (
	ManagedClusters      = clusterv1.GroupVersion.WithResource("managedclusters")
	ManagedClusterSets   = clusterv1beta2.GroupVersion.WithResource("managedclustersets")
	SetBindings          = clusterv1beta2.GroupVersion.WithResource("managedclustersetbindings")
	ManifestWorks        = workv1.GroupVersion.WithResource("manifestworks")
	AppliedManifestWorks = workv1.GroupVersion.WithResource("appliedmanifestworks")
	ClusterManagers      = operatorv1.GroupVersion.WithResource("clustermanagers")
	Klusterlets          = operatorv1.GroupVersion.WithResource("klusterlets")

	PlacementDecisions = schema.GroupVersionResource{Group: clusterv1.GroupVersion.Group, Version: "v1beta1", Resource: "placementdecisions"}
	Placements         = schema.GroupVersionResource{Group: clusterv1.GroupVersion.Group, Version: "v1beta1", Resource: "placements"}
	ClusterAddOns      = schema.GroupVersionResource{Group: "addon.open-cluster-management.io", Version: "v1alpha1", Resource: "managedclusteraddons"}

	ManagementAddOns = schema.GroupVersionResource{Group: ClusterAddOns.Group, Version: ClusterAddOns.Version, Resource: "clustermanagementaddons"}
	AddOnTemplates   = addonv1alpha1.GroupVersion.WithResource(addonv1alpha1.ResourceTemplate)
	PlacementScores  = clusterv1alpha1.GroupVersion.WithResource("addonplacementscores")
	ReplicaSets      = workv1alpha1.GroupVersion.WithResource("manifestworkreplicasets")

	ManagedAccounts    = authenticationv1beta1.GroupVersion.WithResource("managedserviceaccounts")
	ClusterPermissions = permissionv1alpha1.GroupVersion.WithResource(permissionv1alpha1.ResourceClusterPermissions)

	Namespaces      = core("namespaces")
	Secrets         = core("secrets")
	ConfigMaps      = core("configmaps")
	Pods            = core("pods")
	Events          = core("events")
	ServiceAccounts = core("serviceaccounts")
	Services        = core("services")

	Deployments      = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	Leases           = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	SigningRequests  = schema.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests"}
	Definitions      = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	SelfReviews      = schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "selfsubjectreviews"}
	SubjectReviews   = schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"}
	APIServices      = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	AccessReviews    = schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "selfsubjectaccessreviews"}
	ValidatingHooks  = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}
	MutatingHooks    = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}
	ClusterRoles     = rbac("clusterroles")
	ClusterBindings  = rbac("clusterrolebindings")
	Roles            = rbac("roles")
	RoleBindings     = rbac("rolebindings")
	clusterGroupPath = "/apis/" + clusterv1.GroupVersion.String()
)

func core(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: resource}
}

func rbac(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: resource}
}

// ResourceOf returns the resource of an object that we install. Their plurals are all regular.
func ResourceOf(u *unstructured.Unstructured) schema.GroupVersionResource {
	plural, _ := apimeta.UnsafeGuessKindToResource(u.GroupVersionKind())
	return plural
}
