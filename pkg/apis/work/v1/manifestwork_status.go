// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ManifestWorkStatus is the observed state of a ManifestWork. The agent writes
// it.
type ManifestWorkStatus struct {
	// conditions summarize the objects: Applied, Available, and the conditions that rules
	// set, such as Complete.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// resourceStatus holds the state of every object.
	// +optional
	ResourceStatus ManifestResourceStatus `json:"resourceStatus,omitzero"`
}

// ManifestResourceStatus holds the state of the objects of a ManifestWork.
type ManifestResourceStatus struct {
	// manifests hold one entry per object, in the order of the spec.
	// +optional
	Manifests []ManifestCondition `json:"manifests,omitempty"`
}

// ManifestCondition is the state of one object on the managed cluster.
type ManifestCondition struct {
	// resourceMeta says which object it is.
	// +required
	ResourceMeta ManifestResourceMeta `json:"resourceMeta"`

	// statusFeedback holds the values that feedback rules asked for.
	// +optional
	StatusFeedback StatusFeedbackResult `json:"statusFeedback,omitzero"`

	// conditions of the object: Applied, Available, StatusFeedbackSynced, and the
	// conditions that rules set.
	// +required
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions"`
}

// ManifestResourceMeta says which object an entry of the status is about.
type ManifestResourceMeta struct {
	// ordinal is the index of the object in the spec, counted from 0.
	// +required
	Ordinal int32 `json:"ordinal"`

	// group of the object; empty is the core group.
	// +optional
	Group string `json:"group,omitempty"`

	// version of the object.
	// +optional
	Version string `json:"version,omitempty"`

	// kind of the object.
	// +optional
	Kind string `json:"kind,omitempty"`

	// resource is the plural name of the resource; empty while the managed
	// cluster does not know the kind.
	// +optional
	Resource string `json:"resource,omitempty"`

	// name of the object.
	// +optional
	Name string `json:"name,omitempty"`

	// namespace of the object; empty for one without a namespace.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// StatusFeedbackResult holds the values that feedback rules asked for.
type StatusFeedbackResult struct {
	// values by name.
	// +optional
	// +listType=map
	// +listMapKey=name
	Values []FeedbackValue `json:"values,omitempty"`
}

// FeedbackValue is one value read from an applied object.
type FeedbackValue struct {
	// name that the rule gave to the value.
	// +required
	Name string `json:"name"`

	// fieldValue is the value.
	// +required
	FieldValue FieldValue `json:"fieldValue"`
}

// FieldValue is a value of one of four types.
type FieldValue struct {
	// type says which of the other fields holds the value.
	// +required
	Type ValueType `json:"type"`

	// integer is the value when type is Integer.
	// +optional
	Integer *int64 `json:"integer,omitempty"`

	// string is the value when type is String.
	// +optional
	String *string `json:"string,omitempty"`

	// boolean is the value when type is Boolean.
	// +optional
	Boolean *bool `json:"boolean,omitempty"`

	// jsonRaw is the value, an object or a list, as JSON text of at most 1024
	// characters when type is JsonRaw.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	JSONRaw *string `json:"jsonRaw,omitempty"`
}

// ValueType is the type of a feedback value.
//
// +kubebuilder:validation:Enum=Integer;String;Boolean;JsonRaw
type ValueType string

// Types of feedback values.
const (
	// ValueTypeInteger is a whole number.
	ValueTypeInteger ValueType = "Integer"
	// ValueTypeString is text.
	ValueTypeString ValueType = "String"
	// ValueTypeBoolean is true or false.
	ValueTypeBoolean ValueType = "Boolean"
	// ValueTypeJSONRaw is an object or a list as JSON text.
	ValueTypeJSONRaw ValueType = "JsonRaw"
)
