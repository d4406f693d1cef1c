// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of every kind in this package.
const GroupName = "rbac.open-cluster-management.io"

// GroupVersion is the group and version under which the kinds of this package
// are served.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

// SchemeBuilder collects the kinds of this package; use AddToScheme to
// register them.
var SchemeBuilder = runtime.NewSchemeBuilder(addKinds)

// AddToScheme registers every kind of this package and its list in a scheme. It
// returns an error only if the scheme holds another type under the same kind.
var AddToScheme = SchemeBuilder.AddToScheme

// Resource qualifies a plural resource name with the group of this package.
func Resource(resource string) schema.GroupResource {
	return schema.GroupResource{Group: GroupName, Resource: resource}
}

func addKinds(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&ClusterPermission{}, &ClusterPermissionList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
