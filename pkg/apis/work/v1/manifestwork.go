// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ManifestWork is in the namespace of a cluster on the hub and holds objects that the agent
// of that cluster creates there, keeps in their desired state, and removes when they are
// removed from the list or when the ManifestWork is deleted.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=manifestworks,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].status`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Complete",type=string,JSONPath=`.status.conditions[?(@.type=="Complete")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Progressing",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Progressing")].status`
// +kubebuilder:printcolumn:name="Degraded",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Degraded")].status`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Applied")].message`
// +kubebuilder:storageversion
type ManifestWork struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata. The namespace is the name of the
	// cluster.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec holds the objects and how they are applied and removed.
	// +optional
	Spec ManifestWorkSpec `json:"spec,omitempty"`

	// status reports the state of the objects on the managed cluster.
	// +optional
	Status ManifestWorkStatus `json:"status,omitzero"`
}

// ManifestWorkSpec is the desired state of a ManifestWork.
type ManifestWorkSpec struct {
	// workload holds the objects to apply.
	// +optional
	Workload ManifestsTemplate `json:"workload,omitzero"`

	// deleteOption says what happens to the objects when the ManifestWork is deleted.
	// Absent means that they are deleted.
	// +optional
	DeleteOption *DeleteOption `json:"deleteOption,omitempty"`

	// manifestConfigs refine how single objects are applied and what is reported
	// back about them.
	// +optional
	ManifestConfigs []ManifestConfigOption `json:"manifestConfigs,omitempty"`

	// executor is the identity on the managed cluster with whose permissions the objects
	// are applied. Absent means the identity of the agent itself.
	// +optional
	Executor *ManifestWorkExecutor `json:"executor,omitempty"`
}

// ManifestsTemplate holds the objects of a ManifestWork.
type ManifestsTemplate struct {
	// manifests are the objects, each with apiVersion, kind and metadata. Together they may
	// take up to 500 KiB unless the hub is configured otherwise.
	// +optional
	Manifests []Manifest `json:"manifests,omitempty"`
}

// Manifest is one Kubernetes object of any kind.
type Manifest struct {
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:EmbeddedResource
	runtime.RawExtension `json:",inline"`
}

// ManifestWorkExecutor names the identity that applies the objects.
type ManifestWorkExecutor struct {
	// subject is the identity.
	// +optional
	Subject ManifestWorkExecutorSubject `json:"subject,omitzero"`
}

// ManifestWorkExecutorSubject is an identity on the managed cluster.
type ManifestWorkExecutorSubject struct {
	// type of the identity; ServiceAccount is the only one.
	// +required
	Type ExecutorSubjectType `json:"type"`

	// serviceAccount names the account when type is ServiceAccount.
	// +optional
	ServiceAccount *ManifestWorkSubjectServiceAccount `json:"serviceAccount,omitempty"`
}

// ExecutorSubjectType is the kind of identity that an executor names.
//
// +kubebuilder:validation:Enum=ServiceAccount
type ExecutorSubjectType string

// ExecutorSubjectTypeServiceAccount is an executor that is a ServiceAccount.
const ExecutorSubjectTypeServiceAccount ExecutorSubjectType = "ServiceAccount"

// ManifestWorkSubjectServiceAccount names a ServiceAccount of the managed
// cluster.
type ManifestWorkSubjectServiceAccount struct {
	// namespace of the account, 1 to 253 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$`
	Namespace string `json:"namespace"`

	// name of the account, 1 to 253 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$`
	Name string `json:"name"`
}

// DeleteOption says what happens to applied objects when their ManifestWork is deleted.
type DeleteOption struct {
	// propagationPolicy is Foreground to delete all objects and to keep the
	// ManifestWork until they are gone, Orphan to leave all of them on the
	// managed cluster, or SelectivelyOrphan to leave those that
	// selectivelyOrphans names. The default is Foreground.
	// +optional
	// +kubebuilder:default=Foreground
	PropagationPolicy DeletePropagationPolicyType `json:"propagationPolicy,omitempty"`

	// selectivelyOrphans names the objects to leave when propagationPolicy is
	// SelectivelyOrphan.
	// +optional
	SelectivelyOrphans *SelectivelyOrphans `json:"selectivelyOrphans,omitempty"`

	// ttlSecondsAfterFinished deletes the ManifestWork this many seconds after
	// it became Complete; 0 deletes it at once. Absent means never.
	// +optional
	TTLSecondsAfterFinished *int64 `json:"ttlSecondsAfterFinished,omitempty"`
}

// DeletePropagationPolicyType is what happens to objects on deletion.
//
// +kubebuilder:validation:Enum=Foreground;Orphan;SelectivelyOrphan
type DeletePropagationPolicyType string

// Deletion policies.
const (
	// DeletePropagationPolicyTypeForeground deletes the objects and waits for it.
	DeletePropagationPolicyTypeForeground DeletePropagationPolicyType = "Foreground"
	// DeletePropagationPolicyTypeOrphan leaves all objects.
	DeletePropagationPolicyTypeOrphan DeletePropagationPolicyType = "Orphan"
	// DeletePropagationPolicyTypeSelectivelyOrphan leaves the named objects.
	DeletePropagationPolicyTypeSelectivelyOrphan DeletePropagationPolicyType = "SelectivelyOrphan"
)

// SelectivelyOrphans names objects that stay on the managed cluster.
type SelectivelyOrphans struct {
	// orphaningRules name one object each. There are no wildcards.
	// +optional
	OrphaningRules []OrphaningRule `json:"orphaningRules,omitempty"`
}

// OrphaningRule names one object that stays on the managed cluster.
type OrphaningRule struct {
	// group of the resource; empty is the core group.
	// +optional
	Group string `json:"group,omitempty"`

	// resource is the plural name of the resource, for example deployments.
	// +required
	Resource string `json:"resource"`

	// name of the object.
	// +required
	Name string `json:"name"`

	// namespace of the object; empty for one without a namespace.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// ManifestWorkList is a list of ManifestWorks.
//
// +kubebuilder:object:root=true
type ManifestWorkList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the ManifestWorks.
	Items []ManifestWork `json:"items"`
}
