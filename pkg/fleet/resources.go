// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// The resources that the library reads and writes.
var (
	managedClusters      = clusterv1.GroupVersion.WithResource("managedclusters")
	managedClusterSets   = clusterv1beta2.GroupVersion.WithResource("managedclustersets")
	setBindings          = clusterv1beta2.GroupVersion.WithResource("managedclustersetbindings")
	manifestWorks        = workv1.GroupVersion.WithResource("manifestworks")
	appliedManifestWorks = workv1.GroupVersion.WithResource("appliedmanifestworks")
	clusterManagers      = operatorv1.GroupVersion.WithResource("clustermanagers")
	klusterlets          = operatorv1.GroupVersion.WithResource("klusterlets")

	placementDecisions = schema.GroupVersionResource{Group: clusterv1.GroupVersion.Group, Version: "v1beta1", Resource: "placementdecisions"}
	placements         = schema.GroupVersionResource{Group: clusterv1.GroupVersion.Group, Version: "v1beta1", Resource: "placements"}
	clusterAddOns      = schema.GroupVersionResource{Group: "addon.open-cluster-management.io", Version: "v1alpha1", Resource: "managedclusteraddons"}

	namespaces      = core("namespaces")
	secrets         = core("secrets")
	configMaps      = core("configmaps")
	pods            = core("pods")
	serviceAccounts = core("serviceaccounts")

	deployments      = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	leases           = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	signingRequests  = schema.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests"}
	definitions      = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	selfReviews      = schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "selfsubjectreviews"}
	subjectReviews   = schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"}
	accessReviews    = schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "selfsubjectaccessreviews"}
	validatingHooks  = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}
	mutatingHooks    = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}
	clusterRoles     = rbac("clusterroles")
	clusterBindings  = rbac("clusterrolebindings")
	roles            = rbac("roles")
	roleBindings     = rbac("rolebindings")
	coreServices     = core("services")
	endpointSlices   = schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}
	clusterGroupPath = "/apis/" + clusterv1.GroupVersion.String()
)

func core(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: resource}
}

func rbac(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: resource}
}

// resourceOf returns the resource of an object that we install. Their plurals
// all follow the rule.
func resourceOf(u *unstructured.Unstructured) schema.GroupVersionResource {
	plural, _ := apimeta.UnsafeGuessKindToResource(u.GroupVersionKind())
	return plural
}
