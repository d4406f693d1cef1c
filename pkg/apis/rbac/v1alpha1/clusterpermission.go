// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterPermission gives subjects rights on a managed cluster. It is in the namespace of
// that cluster on the hub, and the hub delivers its roles and bindings by a ManifestWork.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterpermissions,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
type ClusterPermission struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata. The namespace is the name of the
	// cluster.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec holds the roles and bindings.
	// +optional
	Spec ClusterPermissionSpec `json:"spec,omitempty"`

	// status reports whether they are applied.
	// +optional
	Status ClusterPermissionStatus `json:"status,omitzero"`
}

// ClusterPermissionSpec holds roles and bindings of a managed cluster.
type ClusterPermissionSpec struct {
	// validate reports in the status whether the roles exist on the managed cluster that
	// bindings refer to and this object does not create.
	// +optional
	Validate *bool `json:"validate,omitempty"`

	// clusterRole becomes a ClusterRole with the name of this object.
	// +optional
	ClusterRole *ClusterRole `json:"clusterRole,omitempty"`

	// clusterRoleBinding becomes a ClusterRoleBinding, unless clusterRoleBindings has any.
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.subject) || has(self.subjects)",message="set subject or subjects"
	ClusterRoleBinding *ClusterRoleBinding `json:"clusterRoleBinding,omitempty"`

	// clusterRoleBindings become ClusterRoleBindings.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(i, has(i.subject) || has(i.subjects))",message="set subject or subjects"
	ClusterRoleBindings []ClusterRoleBinding `json:"clusterRoleBindings,omitempty"`

	// roles become Roles with the name of this object.
	// +optional
	Roles []Role `json:"roles,omitempty"`

	// roleBindings become RoleBindings.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(i, has(i.subject) || has(i.subjects))",message="set subject or subjects"
	RoleBindings []RoleBinding `json:"roleBindings,omitempty"`
}

// ClusterRole is a ClusterRole to create.
type ClusterRole struct {
	// rules of the role.
	// +required
	Rules []rbacv1.PolicyRule `json:"rules"`
}

// ClusterRoleBinding is a ClusterRoleBinding to create.
type ClusterRoleBinding struct {
	// name of the binding. Empty means the name of the ClusterPermission.
	// +optional
	Name string `json:"name,omitempty"`

	// roleRef is the role to bind. Absent means the ClusterRole with the name of the
	// ClusterPermission.
	// +optional
	RoleRef *ClusterRoleRef `json:"roleRef,omitempty"`

	// subject gets the rights, unless subjects has any. A ManagedServiceAccount of the API
	// group authentication.open-cluster-management.io becomes its ServiceAccount.
	// +optional
	Subject *rbacv1.Subject `json:"subject,omitempty"`

	// subjects get the rights.
	// +optional
	Subjects []rbacv1.Subject `json:"subjects,omitempty"`
}

// ClusterRoleRef refers to a ClusterRole.
//
// +structType=atomic
type ClusterRoleRef struct {
	// apiGroup is rbac.authorization.k8s.io.
	// +required
	APIGroup string `json:"apiGroup"`

	// kind is ClusterRole.
	// +required
	Kind string `json:"kind"`

	// name of the ClusterRole.
	// +required
	Name string `json:"name"`
}

// Role is a Role to create, in one namespace or in several.
type Role struct {
	// namespace of the role. Exactly one of namespace and namespaceSelector must be set.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// namespaceSelector selects namespaces of the hub by their labels; the role is created in
	// the namespaces of the managed cluster that have the same names.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// rules of the role.
	// +required
	Rules []rbacv1.PolicyRule `json:"rules"`
}

// RoleBinding is a RoleBinding to create, in one namespace or in several.
type RoleBinding struct {
	// name of the binding. Empty means the name of the ClusterPermission, and so does any
	// name beside a namespaceSelector.
	// +optional
	Name string `json:"name,omitempty"`

	// namespace of the binding. Exactly one of namespace and namespaceSelector must be set.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// namespaceSelector selects namespaces of the hub by their labels; the binding is created
	// in the namespaces of the managed cluster that have the same names.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// roleRef is the role to bind.
	// +required
	RoleRef RoleRef `json:"roleRef"`

	// subject gets the rights, unless subjects has any. A ManagedServiceAccount of the API
	// group authentication.open-cluster-management.io becomes its ServiceAccount.
	// +optional
	Subject *rbacv1.Subject `json:"subject,omitempty"`

	// subjects get the rights.
	// +optional
	Subjects []rbacv1.Subject `json:"subjects,omitempty"`
}

// RoleRef refers to a Role or ClusterRole. apiGroup and name are both set or both empty.
type RoleRef struct {
	// kind is Role or ClusterRole.
	// +required
	Kind string `json:"kind"`

	// apiGroup is rbac.authorization.k8s.io. Empty, with an empty name, means the role with
	// the name of the ClusterPermission.
	// +optional
	APIGroup string `json:"apiGroup,omitempty"`

	// name of the role. Beside a namespaceSelector it is always that of the
	// ClusterPermission.
	// +optional
	Name string `json:"name,omitempty"`
}

// ClusterPermissionStatus is the observed state of a ClusterPermission.
type ClusterPermissionStatus struct {
	// conditions are Validation, AppliedRBACManifestWork and, with spec.validate,
	// ValidateRolesExist and ValidateClusterRolesExist.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// resourceStatus holds the state of every role and binding on the managed cluster.
	// +optional
	ResourceStatus *ResourceStatus `json:"resourceStatus,omitempty"`
}

// ResourceStatus holds the state of every role and binding.
type ResourceStatus struct {
	// clusterRoles are those that were sent.
	// +optional
	ClusterRoles []ClusterResource `json:"clusterRoles,omitempty"`

	// clusterRoleBindings are those that were sent.
	// +optional
	ClusterRoleBindings []ClusterResource `json:"clusterRoleBindings,omitempty"`

	// roles are those that were sent.
	// +optional
	Roles []NamespacedResource `json:"roles,omitempty"`

	// roleBindings are those that were sent.
	// +optional
	RoleBindings []NamespacedResource `json:"roleBindings,omitempty"`
}

// ClusterResource is the state of one cluster-scoped object.
type ClusterResource struct {
	// name of the object.
	// +required
	Name string `json:"name"`

	// condition holds Applied.
	// +optional
	Conditions []metav1.Condition `json:"condition,omitempty"`
}

// NamespacedResource is the state of one object in a namespace.
type NamespacedResource struct {
	// name of the object.
	// +required
	Name string `json:"name"`

	// namespace of the object.
	// +required
	Namespace string `json:"namespace"`

	// condition holds Applied.
	// +optional
	Conditions []metav1.Condition `json:"condition,omitempty"`
}

// ClusterPermissionList is a list of ClusterPermissions.
//
// +kubebuilder:object:root=true
type ClusterPermissionList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the ClusterPermissions.
	Items []ClusterPermission `json:"items"`
}
