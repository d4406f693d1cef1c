// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ManagedCluster represents on the hub a cluster that has joined it or asks to join it. The
// agent of that cluster creates it and reports its state; an administrator of the hub
// accepts it. The name is the name of the cluster and of the namespace on the hub that
// belongs to it, so it must be a DNS label.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=managedclusters,scope=Cluster,shortName={mcl,mcls}
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Hub Accepted",type=boolean,JSONPath=`.spec.hubAcceptsClient`
// +kubebuilder:printcolumn:name="Managed Cluster URLs",type=string,JSONPath=`.spec.managedClusterClientConfigs[*].url`
// +kubebuilder:printcolumn:name="Joined",type=string,JSONPath=`.status.conditions[?(@.type=="ManagedClusterJoined")].status`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="ManagedClusterConditionAvailable")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ManagedCluster struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the hub and the agent agree on for this cluster.
	// +optional
	Spec ManagedClusterSpec `json:"spec,omitempty"`

	// status is what was last observed of the cluster.
	// +optional
	Status ManagedClusterStatus `json:"status,omitzero"`
}

// ManagedClusterSpec is the desired state of a ManagedCluster.
type ManagedClusterSpec struct {
	// managedClusterClientConfigs lists addresses under which the API server of the managed
	// cluster can be reached. The hub does not connect to them; they are for people and
	// other tools.
	// +optional
	ManagedClusterClientConfigs []ClientConfig `json:"managedClusterClientConfigs,omitempty"`

	// hubAcceptsClient is true when an administrator of the hub accepts the cluster. Only
	// then does the hub create the namespace of the cluster and give its agent permissions
	// there. Setting it needs the permission to update the virtual resource
	// managedclusters/accept of the group register.open-cluster-management.io. Setting it
	// back to false revokes the permissions. The default is false.
	// +optional
	HubAcceptsClient bool `json:"hubAcceptsClient"`

	// leaseDurationSeconds is the time in seconds between two renewals of the
	// lease of the cluster. A cluster whose lease was not renewed for five times
	// this duration is shown as Unknown. The default is 60.
	// +optional
	// +kubebuilder:default=60
	LeaseDurationSeconds int32 `json:"leaseDurationSeconds,omitempty"`

	// taints keep placements from selecting this cluster unless they tolerate
	// them.
	// +optional
	Taints []Taint `json:"taints,omitempty"`
}

// ClientConfig is one address of the API server of a managed cluster.
type ClientConfig struct {
	// url is the address, with scheme https, for example https://10.0.0.1:6443.
	// +required
	URL string `json:"url"`

	// caBundle holds the PEM certificates of the authorities that signed the serving
	// certificate of the address. Empty means the caller's own trusted roots.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
}

// Taint marks a cluster so that placements that do not tolerate the mark avoid
// it.
type Taint struct {
	// key names the taint, in the form of a label key, at most 316 characters.
	// +required
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`
	// +kubebuilder:validation:MaxLength=316
	Key string `json:"key"`

	// value gives more detail about the taint, at most 1024 characters. A toleration with
	// operator Equal must name the same value.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value,omitempty"`

	// effect is what the taint does to placements that do not tolerate it. NoSelect removes
	// the cluster from every decision, including existing ones. PreferNoSelect selects the
	// cluster only if no other is left. NoSelectIfNew keeps the cluster where it is already
	// selected, and does not select it anywhere else.
	// +required
	Effect TaintEffect `json:"effect"`

	// timeAdded is when the taint was added or last changed. The hub sets it; values given
	// by a client are rejected or replaced.
	// +optional
	// +nullable
	TimeAdded *metav1.Time `json:"timeAdded,omitempty"`
}

// TaintEffect is what a taint does to placements that do not tolerate it.
//
// +kubebuilder:validation:Enum=NoSelect;PreferNoSelect;NoSelectIfNew
type TaintEffect string

// Effects of a taint.
const (
	// TaintEffectNoSelect removes the cluster from every decision.
	TaintEffectNoSelect TaintEffect = "NoSelect"
	// TaintEffectPreferNoSelect makes the cluster the last choice.
	TaintEffectPreferNoSelect TaintEffect = "PreferNoSelect"
	// TaintEffectNoSelectIfNew keeps existing decisions and makes no new ones.
	TaintEffectNoSelectIfNew TaintEffect = "NoSelectIfNew"
)

// ManagedClusterStatus is the observed state of a ManagedCluster.
type ManagedClusterStatus struct {
	// conditions report the progress and state of the cluster: HubAcceptedManagedCluster,
	// ManagedClusterJoined, ManagedClusterConditionAvailable,
	// ManagedClusterConditionClockSynced and others. The hub and the agent both write here.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// version holds the versions of the managed cluster.
	// +optional
	Version ManagedClusterVersion `json:"version,omitzero"`

	// capacity is the sum of the resources of all nodes. Resources that other writers
	// report here are kept.
	// +optional
	Capacity ResourceList `json:"capacity,omitempty"`

	// allocatable is the sum of the resources of the nodes that accept new pods. It is
	// empty when every node is cordoned.
	// +optional
	Allocatable ResourceList `json:"allocatable,omitempty"`

	// clusterClaims are the claims that the managed cluster makes about itself:
	// reserved ones first, then at most 20 (or as many as the Klusterlet allows)
	// others, each part sorted by name.
	// +optional
	ClusterClaims []ManagedClusterClaim `json:"clusterClaims,omitempty"`

	// managedNamespaces are the namespaces that the sets of this cluster ask
	// for, with the state of each on the managed cluster.
	// +optional
	// +listType=map
	// +listMapKey=clusterSet
	// +listMapKey=name
	ManagedNamespaces []ClusterSetManagedNamespace `json:"managedNamespaces,omitempty"`
}

// ManagedClusterVersion holds the versions of a managed cluster.
type ManagedClusterVersion struct {
	// kubernetes is the version of the API server, for example v1.36.3.
	// +optional
	Kubernetes string `json:"kubernetes,omitempty"`
}

// ResourceName names a kind of resource, for example cpu or memory.
type ResourceName string

// Names of resources that every cluster reports.
const (
	// ResourceCPU is processor time, in cores.
	ResourceCPU ResourceName = "cpu"
	// ResourceMemory is memory, in bytes.
	ResourceMemory ResourceName = "memory"
)

// ResourceList maps names of resources to amounts.
type ResourceList map[ResourceName]resource.Quantity

// ManagedClusterClaim is a statement of a managed cluster about itself.
type ManagedClusterClaim struct {
	// name of the claim, 1 to 253 characters.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// value of the claim, 1 to 1024 characters.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value,omitempty"`
}

// ClusterSetManagedNamespace is a namespace that a set wants on its clusters,
// with its state on one of them.
type ClusterSetManagedNamespace struct {
	// clusterSet is the name of the set that wants the namespace.
	// +required
	ClusterSet string `json:"clusterSet"`

	ManagedNamespaceConfig `json:",inline"`

	// conditions hold NamespaceAvailable, written by the agent.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ManagedNamespaceConfig names a namespace that the members of a set must have.
type ManagedNamespaceConfig struct {
	// name of the namespace, a DNS label of at most 63 characters.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
}

// ManagedClusterList is a list of ManagedClusters.
//
// +kubebuilder:object:root=true
type ManagedClusterList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the ManagedClusters.
	Items []ManagedCluster `json:"items"`
}
