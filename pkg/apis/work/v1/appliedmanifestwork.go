// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AppliedManifestWork is on a managed cluster and records which objects the agent applied
// there for one ManifestWork. It owns those objects: they are deleted with it. Its name is
// the hub hash, a dash, and the name of the ManifestWork.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=appliedmanifestworks,scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Work",type=string,JSONPath=`.spec.manifestWorkName`
// +kubebuilder:printcolumn:name="Agent",type=string,priority=1,JSONPath=`.spec.agentID`
// +kubebuilder:printcolumn:name="Eviction",type=date,JSONPath=`.status.evictionStartTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:storageversion
type AppliedManifestWork struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which ManifestWork this is about.
	// +optional
	Spec AppliedManifestWorkSpec `json:"spec,omitempty"`

	// status lists the applied objects.
	// +optional
	Status AppliedManifestWorkStatus `json:"status,omitzero"`
}

// AppliedManifestWorkSpec says which ManifestWork the record is about.
type AppliedManifestWorkSpec struct {
	// hubHash is the SHA-256 of the address of the hub, in hexadecimal.
	// +required
	HubHash string `json:"hubHash"`

	// agentID is the identity of the agent that made this record.
	// +optional
	AgentID string `json:"agentID,omitempty"`

	// manifestWorkName is the name of the ManifestWork on the hub.
	// +required
	ManifestWorkName string `json:"manifestWorkName"`
}

// AppliedManifestWorkStatus lists what was applied.
type AppliedManifestWorkStatus struct {
	// appliedResources are the objects that were applied and not yet removed.
	// +optional
	AppliedResources []AppliedManifestResourceMeta `json:"appliedResources,omitempty"`

	// evictionStartTime is when the ManifestWork was first found missing on the hub. After
	// a grace period the record and its objects are removed.
	// +optional
	EvictionStartTime *metav1.Time `json:"evictionStartTime,omitempty"`
}

// AppliedManifestResourceMeta is one applied object.
type AppliedManifestResourceMeta struct {
	// group of the resource; empty is the core group.
	// +optional
	Group string `json:"group,omitempty"`

	// version of the resource in which it was applied.
	// +required
	Version string `json:"version"`

	// resource is the plural name of the resource, for example deployments.
	// +required
	Resource string `json:"resource"`

	// name of the object.
	// +required
	Name string `json:"name"`

	// namespace of the object; empty for one without a namespace.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// uid is the UID of the object. Only an object with this UID is removed.
	// +optional
	UID types.UID `json:"uid,omitempty"`
}

// AppliedManifestWorkList is a list of AppliedManifestWorks.
//
// +kubebuilder:object:root=true
type AppliedManifestWorkList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the AppliedManifestWorks.
	Items []AppliedManifestWork `json:"items"`
}
