// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// ManagedClusterSet is a group of ManagedClusters on the hub. Teams get permissions for a
// set, and use its clusters in a namespace that a ManagedClusterSetBinding ties to it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=managedclustersets,scope=Cluster,shortName={mclset,mclsets}
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Empty",type=string,JSONPath=`.status.conditions[?(@.type=="ClusterSetEmpty")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ManagedClusterSet struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which clusters are members and what the set requires of them. The default
	// selects the clusters that carry the label of the set.
	// +optional
	// +kubebuilder:default={clusterSelector: {selectorType: ExclusiveClusterSetLabel}}
	Spec ManagedClusterSetSpec `json:"spec,omitempty"`

	// status reports whether the set has members.
	// +optional
	Status ManagedClusterSetStatus `json:"status,omitzero"`
}

// ManagedClusterSetSpec is the desired state of a ManagedClusterSet.
type ManagedClusterSetSpec struct {
	// clusterSelector says which clusters are members. The default selects the clusters
	// that carry the label of the set.
	// +optional
	// +kubebuilder:default={selectorType: ExclusiveClusterSetLabel}
	ClusterSelector ManagedClusterSelector `json:"clusterSelector,omitzero"`

	// managedNamespaces are namespaces that every member of the set must have. The agents
	// create them. A namespace removed from this list is only unmarked, never deleted.
	// +optional
	// +listType=map
	// +listMapKey=name
	ManagedNamespaces []clusterv1.ManagedNamespaceConfig `json:"managedNamespaces,omitempty"`
}

// ManagedClusterSelector says which clusters are members of a set.
type ManagedClusterSelector struct {
	// selectorType is how members are found. ExclusiveClusterSetLabel: the label
	// cluster.open-cluster-management.io/clusterset of the cluster is the name of the set,
	// so that a cluster is in at most one such set. LabelSelector: the labels of the
	// cluster match labelSelector. The default is ExclusiveClusterSetLabel.
	// +required
	// +kubebuilder:default=ExclusiveClusterSetLabel
	SelectorType SelectorType `json:"selectorType,omitempty"`

	// labelSelector selects the members when selectorType is LabelSelector.
	// Absent selects no cluster; an empty one selects every cluster.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// SelectorType is how the members of a set are found.
//
// +kubebuilder:validation:Enum=ExclusiveClusterSetLabel;LabelSelector
type SelectorType string

// Ways to find the members of a set.
const (
	// SelectorTypeExclusiveClusterSetLabel selects clusters by the label
	// clusterv1.LabelClusterSet.
	SelectorTypeExclusiveClusterSetLabel SelectorType = "ExclusiveClusterSetLabel"
	// SelectorTypeLabelSelector selects clusters by a label selector.
	SelectorTypeLabelSelector SelectorType = "LabelSelector"
	// SelectorTypeLegacyClusterSetLabel is how v1beta1 named ExclusiveClusterSetLabel. No new
	// object can have it, but a hub may have stored one before it was upgraded.
	SelectorTypeLegacyClusterSetLabel SelectorType = "LegacyClusterSetLabel"
)

// ManagedClusterSetStatus is the observed state of a ManagedClusterSet.
type ManagedClusterSetStatus struct {
	// conditions hold ClusterSetEmpty: True when no cluster is a member, else
	// False with the number of members in the message.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ManagedClusterSetList is a list of ManagedClusterSets.
//
// +kubebuilder:object:root=true
type ManagedClusterSetList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the ManagedClusterSets.
	Items []ManagedClusterSet `json:"items"`
}
